// The admission plugins, in the order they run. A new rule is one file and one line here.
import { type AdmissionPlugin, createAdmissionChain } from './admission.ts'
import { claimResize } from './claim-resize.ts'
import { defaultStorageClass } from './default-storage-class.ts'
import { limitRange } from './limit-range.ts'
import { namespaceLifecycle } from './namespace-lifecycle.ts'
import { namespaceLimits } from './namespace-limits.ts'
import { resourceQuota } from './resource-quota.ts'
import { storageObjectInUseProtection } from './storage-object-in-use.ts'

const ADMISSION_PLUGINS: readonly AdmissionPlugin[] = [
  namespaceLifecycle,
  storageObjectInUseProtection,
  defaultStorageClass,
  limitRange,
  claimResize,
  namespaceLimits,
  resourceQuota, // last, so that a write rejected for another reason is not charged
]

export const standardAdmission = () => createAdmissionChain(ADMISSION_PLUGINS)
export type { AdmissionChain, AdmissionPlugin, AdmissionRequest } from './admission.ts'
export { BUILT_IN_NAMESPACES } from './namespace-lifecycle.ts'
export { QuotaRefusal, type RefusedObject } from './quota-refusal.ts'
