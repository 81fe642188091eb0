// Declares PersistentVolumeClaim, a user's request for storage.
import { ageColumn, nameColumn, volumeModeColumn } from '../../columns.ts'
import { defineKind, type RuleContext } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { isIntegerQuantity } from '../../quantity.ts'
import { shortAccessModes } from '../shared/access-modes.ts'
import { annotationOf, BETA_CLASS_ANNOTATION, BETA_CLASS_WARNING, claimClassName } from '../shared/class-names.ts'
import { droppedFieldMessage } from '../shared/gate-messages.ts'
import {
  amountOf,
  newIoAmounts,
  REQUESTS_AND_LIMITS,
  withClaimIoInBytes,
  withoutNewClaimIo,
} from '../shared/provisioned-io.ts'
import { prepareDataSources } from './claim-data-source.ts'
import { type PersistentVolumeClaim, type PersistentVolumeClaimSpec, persistentVolumeClaim } from './claim-schema.ts'
import { validateClaimSpec } from './claim-spec-rules.ts'
import { prepareClaimStatus, validateClaimStatus } from './claim-status-rules.ts'
import { validateClaimUpdate } from './claim-update-rules.ts'
import { withHighWaterMark, withLoweredMark } from './high-water-mark.ts'
import { setRetainedIo } from './retained-io.ts'

export const persistentVolumeClaimKind = defineKind<PersistentVolumeClaim>({
  group: '',
  versions: ['v1'],
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  singular: 'persistentvolumeclaim',
  shortNames: ['pvc'],
  namespaced: true,
  type: persistentVolumeClaim,

  nameErrors: dns1123SubdomainProblems,
  normalize(claim) {
    if (claim.spec) claim.spec = withClaimIoInBytes(claim.spec)
  },
  prepareForCreate(claim, context) {
    claim.spec = prepareSpec(claim.spec ?? {}, undefined, context)
    claim.status = { ...claim.status, phase: 'Pending' } // the status of the request was dropped; admission may have set conditions
    setRetainedIo(claim, undefined)
  },
  prepareForUpdate(next, old, context) {
    next.spec = prepareSpec(next.spec ?? {}, old.spec ?? {}, context)
    next.spec = withLoweredMark(next, context)
    setRetainedIo(next, old)
  },
  validate(claim, errors, { gates }, old) {
    validateClaimSpec(
      claim.spec ?? {},
      {
        field: 'spec',
        allowsAttributesClass:
          gates.enabled('VolumeAttributesClass') || old?.spec?.volumeAttributesClassName !== undefined,
        allowsAnyApiGroup: Boolean(old?.spec?.dataSource?.apiGroup ?? old?.spec?.dataSourceRef?.apiGroup),
        storedResources: old?.spec?.resources,
      },
      errors,
    )
  },
  validateUpdate: validateClaimUpdate,
  droppedFieldWarnings,
  warnings: (claim) => claimWarnings(claim),
  status: { acceptsMetadata: true, prepare: prepareClaimStatus, validate: validateClaimStatus },

  selectableFields: { name: (claim) => claim.metadata.name },
  columns: [
    nameColumn,
    {
      name: 'Status',
      type: 'string',
      doc: 'Phase of the claim, or Terminating while it is being deleted.',
      cell: ({ metadata, status }) => (metadata.deletionTimestamp ? 'Terminating' : status?.phase),
    },
    {
      name: 'Volume',
      type: 'string',
      doc: 'Name of the bound volume.',
      cell: ({ spec }) => spec?.volumeName,
    },
    {
      name: 'Capacity',
      type: 'string',
      doc: 'Size of the bound volume.',
      cell: ({ spec, status }) => (spec?.volumeName ? (amountOf(status?.capacity, 'storage') ?? '0') : ''),
    },
    {
      name: 'Access Modes',
      type: 'string',
      doc: 'Access modes of the bound volume.',
      cell: ({ spec, status }) => (spec?.volumeName ? shortAccessModes(status?.accessModes) : ''),
    },
    {
      name: 'StorageClass',
      type: 'string',
      doc: 'Storage class of the claim.',
      cell: (claim) => claimClassName(claim),
    },
    {
      name: 'VolumeAttributesClass',
      type: 'string',
      doc: 'Requested attributes class.',
      cell: ({ spec }) => spec?.volumeAttributesClassName ?? '<unset>',
    },
    ageColumn,
    volumeModeColumn,
  ],
  deleteReturnsObject: true,
})

function prepareSpec(
  spec: PersistentVolumeClaimSpec,
  storedSpec: PersistentVolumeClaimSpec | undefined,
  { gates }: RuleContext,
): PersistentVolumeClaimSpec {
  let preparedSpec = withClaimIoInBytes(spec)
  if (!gates.enabled('VolumeProvisionedIO')) preparedSpec = withoutNewClaimIo(preparedSpec, storedSpec)
  if (!gates.enabled('VolumeAttributesClass') && storedSpec?.volumeAttributesClassName === undefined) {
    const { volumeAttributesClassName: _dropped, ...withoutClass } = preparedSpec
    preparedSpec = withoutClass
  }
  preparedSpec = prepareDataSources(preparedSpec, storedSpec)
  return withHighWaterMark(preparedSpec, storedSpec, { isEnabled: gates.enabled('RecoverExpansionFailure') })
}

function droppedFieldWarnings(
  { spec }: PersistentVolumeClaim,
  old: PersistentVolumeClaim | undefined,
  { gates }: RuleContext,
): string[] {
  const warnings: string[] = []
  const className = spec?.volumeAttributesClassName
  const hadClass = old?.spec?.volumeAttributesClassName !== undefined
  if (className && !hadClass && !gates.enabled('VolumeAttributesClass')) {
    warnings.push(droppedFieldMessage('spec.volumeAttributesClassName', className, 'VolumeAttributesClass'))
  }
  for (const part of gates.enabled('VolumeProvisionedIO') ? [] : REQUESTS_AND_LIMITS) {
    const amounts = newIoAmounts(spec?.resources?.[part], old?.spec?.resources?.[part])
    for (const [name, amount] of amounts)
      warnings.push(droppedFieldMessage(`spec.resources.${part}[${name}]`, amount, 'VolumeProvisionedIO'))
  }
  return warnings
}

function claimWarnings(claim: PersistentVolumeClaim): string[] {
  const warnings: string[] = []
  if (annotationOf(claim, BETA_CLASS_ANNOTATION) !== undefined) warnings.push(BETA_CLASS_WARNING)
  for (const part of REQUESTS_AND_LIMITS) {
    const storage = amountOf(claim.spec?.resources?.[part], 'storage')
    if (storage === undefined || isIntegerQuantity(storage)) continue
    warnings.push(
      `spec.resources.${part}[storage]: fractional byte value ${JSON.stringify(storage)} is invalid, must be an integer`,
    )
  }
  return warnings
}
