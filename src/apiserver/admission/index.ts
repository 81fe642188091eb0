// The admission plugins, in the order in which they run. To add one, create a file and list it here.
import { type AdmissionPlugin, createAdmissionChain } from './admission.ts'
import { certificateRequester } from './certificate-requester.ts'
import { claimResize } from './claim-resize.ts'
import { defaultStorageClass } from './default-storage-class.ts'
import { firstConsumer } from './first-consumer.ts'
import { limitRange } from './limit-range.ts'
import { namespaceLifecycle } from './namespace-lifecycle.ts'
import { namespaceLimits } from './namespace-limits.ts'
import { priority } from './priority.ts'
import { resourceQuota } from './resource-quota.ts'
import { storageObjectInUseProtection } from './storage-object-in-use-protection.ts'

const ADMISSION_PLUGINS: readonly AdmissionPlugin[] = [
  namespaceLifecycle,
  certificateRequester,
  storageObjectInUseProtection,
  priority,
  defaultStorageClass,
  firstConsumer, // after the default class is set
  limitRange,
  claimResize,
  namespaceLimits,
  resourceQuota, // last, as in Kubernetes: a write that violates another rule is rejected for that rule
]

/** Returns the chain. Plugins that need more than the request are passed in; they run first. */
export const standardAdmission = (plugins: readonly AdmissionPlugin[] = []) =>
  createAdmissionChain([...plugins, ...ADMISSION_PLUGINS])
export type { AdmissionChain, AdmissionPlugin, AdmissionRequest } from './admission.ts'
export { BUILT_IN_NAMESPACES } from './namespace-lifecycle.ts'
export { type InvolvedObject, QuotaExceededError } from './quota-exceeded-error.ts'
