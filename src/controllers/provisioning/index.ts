// Public exports of the provisioning controllers, which create volumes for claims and delete released volumes with any
// Provisioner (provisioner.ts).
export { createProvisioningMetrics, type ProvisioningMetrics } from './metrics.ts'
export { type ProvisioningOptions, volumeNameOf } from './options.ts'
export type { Provisioner } from './provisioner.ts'
export { createProvisioningControllers } from './provisioning-controllers.ts'
export { releaseClaims } from './release-claims.ts'
