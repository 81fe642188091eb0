// Validates references to fields of a pod and resources of its containers, in environment variables and
// downward API volumes.
import type { FieldErrors } from '../../field-errors.ts'
import { qualifiedNameProblems } from '../../names.ts'
import type { Infer } from '../../schema.ts'
import type { objectFieldSelector, resourceFieldSelector } from './pod-volumes-schema.ts'

/** Pod fields that a downward API volume can refer to, in addition to single labels and annotations. */
export const VOLUME_FIELDS = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
]
/** Pod fields that environment variables can refer to, in addition to single labels and annotations. */
export const ENV_FIELDS = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]

interface FieldReferenceOptions {
  readonly field: string
  readonly supportedFields: readonly string[]
}

export function validateFieldReference(
  { apiVersion = '', fieldPath }: Infer<typeof objectFieldSelector>,
  { field, supportedFields }: FieldReferenceOptions,
  errors: FieldErrors,
): void {
  if (apiVersion === '') errors.required(`${field}.apiVersion`)
  else if (fieldPath === '') errors.required(`${field}.fieldPath`)
  else if (apiVersion !== 'v1') {
    const detail = `error converting fieldPath: unsupported pod version: ${apiVersion}`
    errors.invalid(`${field}.fieldPath`, fieldPath, detail)
  } else validatePath(fieldPath, { field, supportedFields }, errors)
}

/** Validates a path such as `metadata.name` or `metadata.labels['app']`. */
function validatePath(path: string, { field, supportedFields }: FieldReferenceOptions, errors: FieldErrors): void {
  const match = /^(.*)\['(.*)'\]$/s.exec(path)
  if (!match) {
    if (!supportedFields.includes(path)) errors.notSupported(`${field}.fieldPath`, path, supportedFields)
    return
  }
  const [, mapPath = '', key = ''] = match
  if (mapPath === 'metadata.annotations') errors.invalidAll(field, key, qualifiedNameProblems(key.toLowerCase()))
  else if (mapPath === 'metadata.labels') errors.invalidAll(field, key, qualifiedNameProblems(key))
  else errors.invalid(field, mapPath, 'does not support subscript')
}

const SUPPORTED_RESOURCES = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
]

interface ResourceReferenceOptions {
  readonly field: string
  /** Whether containerName is required, as in a downward API volume, which belongs to no container. */
  readonly requiresContainer: boolean
}

export function validateResourceReference(
  { containerName = '', resource }: Infer<typeof resourceFieldSelector>,
  { field, requiresContainer }: ResourceReferenceOptions,
  errors: FieldErrors,
): void {
  if (requiresContainer && containerName === '') errors.required(`${field}.containerName`)
  else if (resource === '') errors.required(`${field}.resource`)
  else if (!SUPPORTED_RESOURCES.includes(resource) && !/^(requests|limits)\.hugepages-/.test(resource)) {
    errors.notSupported(`${field}.resource`, resource, SUPPORTED_RESOURCES)
  }
}
