// Declares CSIDriver: the capabilities and requirements of an installed driver.
import { ageColumn, nameColumn } from '../../columns.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { defineKind } from '../../kind.ts'
import { dns1123SubdomainProblems } from '../../names.ts'
import { isSameValue, validateImmutableField } from '../shared/changed-fields.ts'
import { type CSIDriver, type CSIDriverSpec, csiDriver, csiDriverSpec } from './csi-driver-schema.ts'

export const csiDriverKind = defineKind<CSIDriver>({
  group: 'storage.k8s.io',
  versions: ['v1'],
  kind: 'CSIDriver',
  plural: 'csidrivers',
  singular: 'csidriver',
  namespaced: false,
  type: csiDriver,

  nameErrors: dns1123SubdomainProblems,
  validate(object, errors) {
    const { spec } = object
    for (const [name, field] of REQUIRED_FIELDS) if (spec[name] === undefined) errors.required(field)
    if (spec.fsGroupPolicy !== undefined && !FS_GROUP_POLICIES.includes(spec.fsGroupPolicy)) {
      errors.notSupported('spec.fsGroupPolicy', spec.fsGroupPolicy, FS_GROUP_POLICIES)
    }
    validateTokenRequests(spec.tokenRequests, errors)
    for (const mode of spec.volumeLifecycleModes ?? []) {
      if (!LIFECYCLE_MODES.includes(mode)) errors.notSupported('spec.volumeLifecycleModes', mode, LIFECYCLE_MODES)
    }
    const period = spec.nodeAllocatableUpdatePeriodSeconds
    if (period !== undefined && period < UPDATE_PERIOD_SECONDS_MIN) {
      errors.invalid(
        'spec.nodeAllocatableUpdatePeriodSeconds',
        period,
        `must be greater than or equal to ${UPDATE_PERIOD_SECONDS_MIN} seconds`,
      )
    }
    if (spec.serviceAccountTokenInSecrets !== undefined && !spec.tokenRequests?.length) {
      errors.invalid(
        'spec.serviceAccountTokenInSecrets',
        spec.serviceAccountTokenInSecrets,
        'serviceAccountTokenInSecrets is set but no tokenRequests are specified',
      )
    }
  },
  validateUpdate(next, old, errors) {
    const { attachRequired, volumeLifecycleModes } = csiDriverSpec.fields
    validateImmutableField(
      {
        field: ATTACH_REQUIRED_FIELD,
        type: attachRequired.type,
        oldValue: old.spec.attachRequired,
        newValue: next.spec.attachRequired,
      },
      errors,
    )
    validateImmutableField(
      {
        field: 'spec.volumeLifecycleModes',
        type: volumeLifecycleModes.type,
        oldValue: old.spec.volumeLifecycleModes,
        newValue: next.spec.volumeLifecycleModes,
      },
      errors,
    )
  },
  warnings({ spec }, old) {
    if (!spec.tokenRequests?.length || spec.serviceAccountTokenInSecrets !== undefined) return []
    const { type } = csiDriverSpec.fields.tokenRequests
    return old && isSameValue(type, old.spec.tokenRequests, spec.tokenRequests) ? [] : [TOKEN_WARNING]
  },

  columns: [
    nameColumn,
    {
      name: 'AttachRequired',
      type: 'boolean',
      doc: 'Whether volumes must be attached to a node before they are mounted.',
      cell: ({ spec }) => spec.attachRequired ?? true,
    },
    {
      name: 'PodInfoOnMount',
      type: 'boolean',
      doc: 'Whether NodePublishVolume receives information about the pod.',
      cell: ({ spec }) => spec.podInfoOnMount ?? false,
    },
    {
      name: 'StorageCapacity',
      type: 'boolean',
      doc: 'Whether the scheduler considers CSIStorageCapacity objects.',
      cell: ({ spec }) => spec.storageCapacity ?? false,
    },
    {
      name: 'TokenRequests',
      type: 'string',
      doc: 'Audiences of the service account tokens that the driver receives.',
      cell: ({ spec }) => spec.tokenRequests?.map(({ audience }) => audience).join(',') ?? '<unset>',
    },
    {
      name: 'RequiresRepublish',
      type: 'boolean',
      doc: 'Whether NodePublishVolume is called periodically.',
      cell: ({ spec }) => spec.requiresRepublish ?? false,
    },
    {
      name: 'Modes',
      type: 'string',
      doc: 'Supported volume lifecycles.',
      cell: ({ spec }) => spec.volumeLifecycleModes?.join(',') || '<none>',
    },
    ageColumn,
  ],
  allowsUnconditionalUpdate: false,
  deleteReturnsObject: true,
  generationOf: ({ spec }) => spec,
})

// The Kubernetes messages misspell the field, and clients match on them.
const ATTACH_REQUIRED_FIELD = 'spec.attachedRequired'

const REQUIRED_FIELDS: readonly (readonly [keyof CSIDriverSpec, string])[] = [
  ['attachRequired', ATTACH_REQUIRED_FIELD],
  ['podInfoOnMount', 'spec.podInfoOnMount'],
  ['storageCapacity', 'spec.storageCapacity'],
  ['seLinuxMount', 'spec.seLinuxMount'],
  ['preventPodSchedulingIfMissing', 'spec.preventPodSchedulingIfMissing'],
]
const FS_GROUP_POLICIES: readonly string[] = ['File', 'None', 'ReadWriteOnceWithFSType']
const LIFECYCLE_MODES: readonly string[] = ['Persistent', 'Ephemeral']
const UPDATE_PERIOD_SECONDS_MIN = 10
const TOKEN_SECONDS_MIN = 600
const TOKEN_SECONDS_MAX = 2 ** 32
const TOKEN_WARNING =
  'spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible ' +
  'logging of tokens in volume attributes'

function validateTokenRequests(requests: CSIDriverSpec['tokenRequests'] = [], errors: FieldErrors): void {
  const audiences = new Set<string>()
  for (const [index, { audience, expirationSeconds }] of requests.entries()) {
    const field = `spec.tokenRequests[${index}]`
    if (audiences.has(audience)) {
      errors.duplicate(`${field}.audience`, audience)
      continue
    }
    audiences.add(audience)
    if (expirationSeconds === undefined) continue
    if (expirationSeconds < TOKEN_SECONDS_MIN) {
      errors.invalid(`${field}.expirationSeconds`, expirationSeconds, 'may not specify a duration less than 10 minutes')
    }
    if (expirationSeconds > TOKEN_SECONDS_MAX) {
      errors.invalid(
        `${field}.expirationSeconds`,
        expirationSeconds,
        'may not specify a duration larger than 2^32 seconds',
      )
    }
  }
}
