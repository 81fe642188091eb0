// Public exports of the CSI provisioner, and of the controller that protects data sources during a clone or restore.
export { createCsiProvisioner } from './csi-provisioner.ts'
export { hasTopology } from './driver-capabilities.ts'
export type { CsiProvisionerOptions, NodeDeployment } from './options.ts'
export { createSourceProtection, type SourceProtectionOptions } from './source-protection.ts'
