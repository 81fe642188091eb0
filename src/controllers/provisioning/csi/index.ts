// The Provisioner of a CSI driver, and the controller that protects data sources while volumes are created from them.
export { type CsiProvisionerDeps, createCsiProvisioner } from './csi-provisioner.ts'
export { type CsiProvisionerOptions, DEFAULT_OPTIONS, type NodeDeployment } from './options.ts'
export { createSourceProtection, type SourceProtectionOptions } from './source-protection.ts'
