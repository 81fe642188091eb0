// Provisioning: creates volumes for claims and deletes released ones, with any Provisioner (provisioner.ts).
export { createProvisioningMetrics, type ProvisioningMetrics } from './metrics.ts'
export type { ProvisioningOptions } from './options.ts'
export type { DeleteResult, Failure, NewVolume, Provisioner, ProvisionRequest, ProvisionResult } from './provisioner.ts'
export {
  createProvisioningControllers,
  type ProvisioningControllers,
  type ProvisioningDeps,
} from './provisioning-controllers.ts'
