// The public API for provisioners: `import { defineProvisioner, runProvisioner } from '@stowage/provisioner'`. The API for their
// tests is testing.ts; the manual is docs/tutorial/provisioners.md.
export { defineProvisioner } from '../controllers/provisioning/plugin/check-plugin.ts'
export type {
  AcceptedLabels,
  AccessMode,
  Call,
  ExistingVolume,
  ExpandedVolume,
  ExpandRequest,
  LabelDeclarations,
  ModifyRequest,
  ProvisionedVolume,
  ProvisionerPlugin,
  ProvisionRequest,
  VolumeMode,
  VolumeSource,
  VolumeSources,
} from '../controllers/provisioning/plugin/contract.ts'
export {
  IgnoredError,
  InfeasibleError,
  NotCreatedError,
  RescheduleError,
  UnreachableError,
} from '../controllers/provisioning/plugin/failures.ts'
export {
  type Parameter,
  type ParameterDeclarations,
  type ParameterValues,
  parameter,
} from '../controllers/provisioning/plugin/parameter.ts'
export { runProvisioner } from './run-provisioner.ts'
export type { ProvisionerLog, RunOptions } from './settings.ts'
