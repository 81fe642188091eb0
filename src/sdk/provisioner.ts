// The door for those who write a provisioner: `import { defineProvisioner, runProvisioner } from 'stowage/provisioner'`.
// What is listed here is published and kept; a unit test's counterpart is testing.ts. docs/tutorial/provisioners.md is the manual.
export { defineProvisioner } from '../controllers/provisioning/plugin/check-plugin.ts'
export type {
  AcceptedLabels,
  AccessMode,
  Call,
  ExistingVolume,
  LabelDeclarations,
  MadeVolume,
  ProvisionerPlugin,
  ProvisionRequest,
  VolumeMode,
  VolumeSource,
  VolumeSources,
} from '../controllers/provisioning/plugin/contract.ts'
export {
  Infeasible,
  NothingMade,
  NotMine,
  NotReached,
  TryAnotherNode,
} from '../controllers/provisioning/plugin/failures.ts'
export {
  type Parameter,
  type ParameterDeclarations,
  type ParameterValues,
  parameter,
} from '../controllers/provisioning/plugin/parameter.ts'
export { runProvisioner } from './run-provisioner.ts'
export type { ProvisionerLog, RunOptions } from './settings.ts'
