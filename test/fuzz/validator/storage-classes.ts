// StorageClass and VolumeAttributesClass: provisioner and parameters, both immutable.
import { mapBytes, type Say, same, show } from './findings.ts'
import { isProvisioner } from './names.ts'
import { checkTopologies } from './selectors.ts'

const PARAMETERS_MAX = 512
const PARAMETER_BYTES_MAX = 256 * 1024

export function checkStorageClass(storageClass: any, say: Say, old?: any): void {
  if (!isProvisioner(storageClass.provisioner ?? '')) say('provisioner', `${show(storageClass.provisioner)} is none`)
  checkParameters(storageClass.parameters ?? {}, say)
  // An empty policy is accepted for compatibility; otherwise only the two.
  if (!['', 'Delete', 'Retain'].includes(storageClass.reclaimPolicy)) {
    say('reclaimPolicy', `${show(storageClass.reclaimPolicy)} is no policy`)
  }
  if (!['Immediate', 'WaitForFirstConsumer'].includes(storageClass.volumeBindingMode)) {
    say('volumeBindingMode', `${show(storageClass.volumeBindingMode)} is no mode`)
  }
  checkTopologies(storageClass.allowedTopologies ?? [], 'allowedTopologies', say)
  for (const field of old ? ['provisioner', 'parameters', 'reclaimPolicy', 'volumeBindingMode'] : []) {
    if (!same(storageClass[field], old[field])) say(field, 'cannot change')
  }
}

export function checkAttributesClass(attributesClass: any, say: Say, old?: any): void {
  if (!isProvisioner(attributesClass.driverName ?? '')) say('driverName', `${show(attributesClass.driverName)} is none`)
  const parameters = attributesClass.parameters ?? {}
  if (Object.keys(parameters).length === 0) say('parameters', 'at least one is wanted')
  checkParameters(parameters, say)
  if (!old && !attributesClass.metadata.finalizers?.includes('kubernetes.io/vac-protection')) {
    say('metadata.finalizers', 'the protection is missing')
  }
  for (const field of old ? ['driverName', 'parameters'] : []) {
    if (!same(attributesClass[field], old[field])) say(field, 'cannot change')
  }
}

function checkParameters(parameters: Record<string, string>, say: Say): void {
  if (Object.keys(parameters).length > PARAMETERS_MAX) say('parameters', 'too many')
  if (mapBytes(parameters) > PARAMETER_BYTES_MAX) say('parameters', 'too large')
  if ('' in parameters) say('parameters', 'a key is empty')
}
