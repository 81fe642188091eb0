// The public API for tests of provisioners: `import { testProvisioner } from 'stowage/provisioner/testing'`. Needs no cluster.
export { type ConformanceOptions, testProvisioner } from './conformance.ts'
export { type ProvisionerTrial, startTrial, type TrialClaim, type TrialOptions, type TrialVolume } from './trial.ts'
