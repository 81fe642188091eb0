// Validates references from environment variables and files of a pod to fields of the pod and resources of containers.
import type { FieldErrors } from '../../field-errors.ts'
import { qualifiedNameProblems } from '../../names.ts'
import type { Infer } from '../../schema.ts'
import type { objectFieldSelector, resourceFieldSelector } from './pod-volumes-schema.ts'

/** Fields that files can contain. */
export const VOLUME_FIELDS = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
]
/** Fields that environment variables can contain. */
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
  readonly allowed: readonly string[]
}

export function validateFieldReference(
  { apiVersion = '', fieldPath }: Infer<typeof objectFieldSelector>,
  { field, allowed }: FieldReferenceOptions,
  errors: FieldErrors,
): void {
  if (apiVersion === '') errors.required(`${field}.apiVersion`)
  else if (fieldPath === '') errors.required(`${field}.fieldPath`)
  else if (apiVersion !== 'v1') {
    const detail = `error converting fieldPath: unsupported pod version: ${apiVersion}`
    errors.invalid(`${field}.fieldPath`, fieldPath, detail)
  } else validatePath(fieldPath, { field, allowed }, errors)
}

/** `metadata.labels['app']` refers to one label. */
function validatePath(path: string, { field, allowed }: FieldReferenceOptions, errors: FieldErrors): void {
  const subscripted = /^(.*)\['(.*)'\]$/s.exec(path)
  if (!subscripted) {
    if (!allowed.includes(path)) errors.notSupported(`${field}.fieldPath`, path, allowed)
    return
  }
  const [, owner = '', key = ''] = subscripted
  if (owner === 'metadata.annotations') errors.invalidAll(field, key, qualifiedNameProblems(key.toLowerCase()))
  else if (owner === 'metadata.labels') errors.invalidAll(field, key, qualifiedNameProblems(key))
  else errors.invalid(field, owner, 'does not support subscript')
}

const RESOURCES = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
]

interface ResourceReferenceOptions {
  readonly field: string
  /** Files belong to the pod, so a reference in them must name the container. */
  readonly containerRequired: boolean
}

export function validateResourceReference(
  { containerName = '', resource }: Infer<typeof resourceFieldSelector>,
  { field, containerRequired }: ResourceReferenceOptions,
  errors: FieldErrors,
): void {
  if (containerRequired && containerName === '') errors.required(`${field}.containerName`)
  else if (resource === '') errors.required(`${field}.resource`)
  else if (!RESOURCES.includes(resource) && !/^(requests|limits)\.hugepages-/.test(resource)) {
    errors.notSupported(`${field}.resource`, resource, RESOURCES)
  }
}
