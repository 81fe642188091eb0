// Declares PersistentVolume: a volume in the cluster, created by a provisioner or an administrator.

import { timestamp } from '../../../base/timestamps.ts'
import { ageColumn, nameColumn, volumeModeColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind, type RuleContext } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { shortAccessModes } from '../shared/access-modes.ts'
import { annotationOf, BETA_CLASS_ANNOTATION, BETA_CLASS_WARNING, volumeClassName } from '../shared/class-names.ts'
import { nodeSelectorTermWarnings } from '../shared/deprecated-labels.ts'
import { droppedFieldMessage } from '../shared/gate-messages.ts'
import { amountOf, isIoResource, newIoAmounts, withIoInBytes, withoutNewIo } from '../shared/provisioned-io.ts'
import { type PersistentVolume, type PersistentVolumeSpec, persistentVolume } from './volume-schema.ts'
import { type VolumeSourceName, volumeSources } from './volume-source-rules.ts'
import { validateVolumeSpec } from './volume-spec-rules.ts'
import { validateVolumeUpdate } from './volume-update-rules.ts'

export const persistentVolumeKind = defineKind<PersistentVolume>({
  group: '',
  versions: ['v1'],
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  singular: 'persistentvolume',
  shortNames: ['pv'],
  namespaced: false,
  type: persistentVolume,

  nameErrors: dns1123SubdomainProblems,
  normalize({ spec }) {
    if (spec?.capacity) spec.capacity = withIoInBytes(spec.capacity)
  },
  prepareForCreate(volume, context) {
    volume.spec = prepareSpec(volume.spec ?? {}, undefined, context)
    volume.status = { phase: 'Pending', lastPhaseTransitionTime: timestamp(context.nowMs) }
  },
  prepareForUpdate(next, old, context) {
    next.spec = prepareSpec(next.spec ?? {}, old.spec ?? {}, context)
  },
  validate(volume, errors, { gates }, old) {
    validateVolumeSpec(
      volume.spec ?? {},
      {
        volumeName: volume.metadata.name ?? '',
        allowsAttributesClass:
          gates.enabled('VolumeAttributesClass') || old?.spec?.volumeAttributesClassName !== undefined,
        allowsIo: gates.enabled('VolumeProvisionedIO') || Object.keys(old?.spec?.capacity ?? {}).some(isIoResource),
        storedCapacity: old?.spec?.capacity,
      },
      errors,
    )
    validateMountOptions(volume, errors)
  },
  validateUpdate: validateVolumeUpdate,
  droppedFieldWarnings,
  warnings: (volume) => volumeWarnings(volume),
  status: {
    acceptsMetadata: true,
    prepare(next, old, { nowMs }) {
      next.status = { ...next.status }
      next.status.phase ??= 'Pending'
      const hasPhaseChanged = next.status.phase !== old.status?.phase
      const requestedTime = next.status.lastPhaseTransitionTime
      const storedTime = old.status?.lastPhaseTransitionTime
      if (hasPhaseChanged && (requestedTime === undefined || requestedTime === storedTime)) {
        next.status.lastPhaseTransitionTime = timestamp(nowMs)
      } else if (requestedTime === undefined && storedTime !== undefined) {
        next.status.lastPhaseTransitionTime = storedTime
      }
    },
  },

  selectableFields: { name: (volume) => volume.metadata.name },
  columns: [
    nameColumn,
    {
      name: 'Capacity',
      type: 'string',
      doc: 'Size of the volume.',
      cell: ({ spec }) => amountOf(spec?.capacity, 'storage') ?? '0',
    },
    {
      name: 'Access Modes',
      type: 'string',
      doc: 'Access modes of the volume.',
      cell: ({ spec }) => shortAccessModes(spec?.accessModes),
    },
    {
      name: 'Reclaim Policy',
      type: 'string',
      doc: 'What happens to the volume after its claim is deleted.',
      cell: ({ spec }) => spec?.persistentVolumeReclaimPolicy,
    },
    {
      name: 'Status',
      type: 'string',
      doc: 'Phase of the volume, or Terminating while it is being deleted.',
      cell: ({ metadata, status }) => (metadata.deletionTimestamp ? 'Terminating' : status?.phase),
    },
    {
      name: 'Claim',
      type: 'string',
      doc: 'Claim that the volume is bound to, as namespace/name.',
      cell: ({ spec }) => (spec?.claimRef ? `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}` : ''),
    },
    { name: 'StorageClass', type: 'string', doc: 'Storage class of the volume.', cell: volumeClassName },
    {
      name: 'VolumeAttributesClass',
      type: 'string',
      doc: 'Attributes class of the volume.',
      cell: ({ spec }) => spec?.volumeAttributesClassName ?? '<unset>',
    },
    {
      name: 'Reason',
      type: 'string',
      doc: 'Machine-readable reason for the phase.',
      cell: ({ status }) => status?.reason,
    },
    ageColumn,
    volumeModeColumn,
  ],
  deleteReturnsObject: true,
})

function prepareSpec(
  spec: PersistentVolumeSpec,
  storedSpec: PersistentVolumeSpec | undefined,
  { gates }: RuleContext,
): PersistentVolumeSpec {
  const preparedSpec = { ...spec }
  if (preparedSpec.capacity) preparedSpec.capacity = withIoInBytes(preparedSpec.capacity)
  if (!gates.enabled('VolumeProvisionedIO'))
    preparedSpec.capacity = withoutNewIo(preparedSpec.capacity, storedSpec?.capacity)
  if (!gates.enabled('VolumeAttributesClass') && storedSpec?.volumeAttributesClassName === undefined) {
    delete preparedSpec.volumeAttributesClassName
  }
  return preparedSpec
}

function droppedFieldWarnings(
  { spec }: PersistentVolume,
  old: PersistentVolume | undefined,
  { gates }: RuleContext,
): string[] {
  const warnings: string[] = []
  const className = spec?.volumeAttributesClassName
  const hadClass = old?.spec?.volumeAttributesClassName !== undefined
  if (className && !hadClass && !gates.enabled('VolumeAttributesClass')) {
    warnings.push(droppedFieldMessage('spec.volumeAttributesClassName', className, 'VolumeAttributesClass'))
  }
  if (gates.enabled('VolumeProvisionedIO')) return warnings
  for (const [name, amount] of newIoAmounts(spec?.capacity, old?.spec?.capacity))
    warnings.push(droppedFieldMessage(`spec.capacity[${name}]`, amount, 'VolumeProvisionedIO'))
  return warnings
}

const MOUNT_OPTIONS_ANNOTATION = 'volume.beta.kubernetes.io/mount-options'

const MOUNT_OPTIONS_SOURCES: ReadonlySet<VolumeSourceName> = new Set<VolumeSourceName>([
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'nfs',
  'rbd',
  'quobyte',
  'iscsi',
  'cinder',
  'cephfs',
  'azureFile',
  'vsphereVolume',
  'azureDisk',
  'photonPersistentDisk',
])

function validateMountOptions(volume: PersistentVolume, errors: FieldErrors): void {
  if (annotationOf(volume, MOUNT_OPTIONS_ANNOTATION) === undefined) return
  if (volumeSources(volume.spec ?? {}).some((source) => MOUNT_OPTIONS_SOURCES.has(source))) return
  errors.forbidden(
    `metadata.annotations.${MOUNT_OPTIONS_ANNOTATION}`,
    'may not specify mount options for this volume type',
  )
}

/** Warnings for sources whose plugins were removed from Kubernetes. Volumes with such a source cannot be mounted. */
const REMOVED_SOURCE_WARNINGS: Partial<Record<VolumeSourceName, string>> = {
  cephfs: 'spec.cephfs: deprecated in v1.28, non-functional in v1.31+',
  photonPersistentDisk: 'spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+',
  scaleIO: 'spec.scaleIO: deprecated in v1.16, non-functional in v1.22+',
  storageos: 'spec.storageOS: deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'spec.glusterfs: deprecated in v1.25, non-functional in v1.26+',
  rbd: 'spec.rbd: deprecated in v1.28, non-functional in v1.31+',
}

function volumeWarnings(volume: PersistentVolume): string[] {
  const { spec = {} } = volume
  const warnings: string[] = []
  if (annotationOf(volume, BETA_CLASS_ANNOTATION) !== undefined) warnings.push(BETA_CLASS_WARNING)
  if (annotationOf(volume, MOUNT_OPTIONS_ANNOTATION) !== undefined) {
    warnings.push(
      `metadata.annotations[${MOUNT_OPTIONS_ANNOTATION}]: ` +
        'deprecated since v1.31; use "mountOptions" attribute instead',
    )
  }
  if (spec.persistentVolumeReclaimPolicy === 'Recycle') {
    warnings.push(
      'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. ' +
        'Instead, the recommended approach is to use dynamic provisioning.',
    )
  }
  spec.nodeAffinity?.required?.nodeSelectorTerms.forEach((term, index) => {
    warnings.push(...nodeSelectorTermWarnings(term, `spec.nodeAffinity.required.nodeSelectorTerms[${index}]`))
  })
  for (const source of volumeSources(spec)) {
    const warning = REMOVED_SOURCE_WARNINGS[source]
    if (warning) warnings.push(warning)
  }
  return warnings
}
