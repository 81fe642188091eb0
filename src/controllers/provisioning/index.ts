// Entry point of the provisioning controllers, which create volumes for claims and delete released volumes with any
// Provisioner (provisioner.ts).
export { createProvisioningMetrics, type ProvisioningMetrics } from './metrics.ts'
export { type ProvisioningOptions, volumeNameOf } from './options.ts'
export type { DeleteResult, Failure, NewVolume, Provisioner, ProvisionRequest, ProvisionResult } from './provisioner.ts'
export {
  createProvisioningControllers,
  type ProvisioningControllers,
  type ProvisioningDeps,
} from './provisioning-controllers.ts'
export { type ReleasedClaims, releaseClaims, type UnreleasedClaim } from './release-claims.ts'
