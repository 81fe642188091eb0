// A CSI driver as a provisioner of volumes.
export { type CsiProvisionerDeps, createCsiProvisioner } from './csi-provisioner.ts'
export { type CsiProvisionerOptions, DEFAULT_OPTIONS, type NodeDeployment } from './options.ts'
export { createSourceProtection, type SourceProtectionOptions } from './source-protection.ts'
