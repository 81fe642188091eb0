// Checks StorageClasses and VolumeAttributesClasses: provisioner, parameters, and immutability.
import { format, isEqualJson, mapBytes, type Report } from './findings.ts'
import { isProvisioner } from './names.ts'
import { checkTopologies } from './selectors.ts'

const PARAMETERS_MAX = 512
const PARAMETER_BYTES_MAX = 256 * 1024

export function checkStorageClass(storageClass: any, report: Report, old?: any): void {
  if (!isProvisioner(storageClass.provisioner ?? ''))
    report('provisioner', `${format(storageClass.provisioner)} is not valid`)
  checkParameters(storageClass.parameters ?? {}, report)
  // An empty policy is accepted for compatibility.
  if (!['', 'Delete', 'Retain'].includes(storageClass.reclaimPolicy)) {
    report('reclaimPolicy', `${format(storageClass.reclaimPolicy)} is not a valid policy`)
  }
  if (!['Immediate', 'WaitForFirstConsumer'].includes(storageClass.volumeBindingMode)) {
    report('volumeBindingMode', `${format(storageClass.volumeBindingMode)} is not a valid mode`)
  }
  checkTopologies(storageClass.allowedTopologies ?? [], 'allowedTopologies', report)
  for (const field of old ? ['provisioner', 'parameters', 'reclaimPolicy', 'volumeBindingMode'] : []) {
    if (!isEqualJson(storageClass[field], old[field])) report(field, 'cannot change')
  }
}

export function checkAttributesClass(attributesClass: any, report: Report, old?: any): void {
  if (!isProvisioner(attributesClass.driverName ?? ''))
    report('driverName', `${format(attributesClass.driverName)} is not valid`)
  const parameters = attributesClass.parameters ?? {}
  if (Object.keys(parameters).length === 0) report('parameters', 'at least one is required')
  checkParameters(parameters, report)
  if (!old && !attributesClass.metadata.finalizers?.includes('kubernetes.io/vac-protection')) {
    report('metadata.finalizers', 'the protection finalizer is missing')
  }
  for (const field of old ? ['driverName', 'parameters'] : []) {
    if (!isEqualJson(attributesClass[field], old[field])) report(field, 'cannot change')
  }
}

function checkParameters(parameters: Record<string, string>, report: Report): void {
  if (Object.keys(parameters).length > PARAMETERS_MAX) report('parameters', 'too many')
  if (mapBytes(parameters) > PARAMETER_BYTES_MAX) report('parameters', 'too large')
  if ('' in parameters) report('parameters', 'a key is empty')
}
