// The door for tests of a provisioner: `import { testProvisioner } from 'stowage/provisioner/testing'`. No cluster needed.
export { type ConformanceOptions, testProvisioner } from './conformance.ts'
export { type ProvisionerTrial, startTrial, type TrialClaim, type TrialOptions, type TrialVolume } from './trial.ts'
