// Entry point of the provisioner of CSI drivers and of the controller that protects data sources during a clone or restore.
export { createCsiProvisioner } from './csi-provisioner.ts'
export type { CsiProvisionerOptions, NodeDeployment } from './options.ts'
export { createSourceProtection, type SourceProtectionOptions } from './source-protection.ts'
