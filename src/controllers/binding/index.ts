// Public exports of the binding controllers, which bind claims to volumes and set the phase of both.
export { planBindingOfNewVolume } from './bind-new-volume.ts'
export { createBindingControllers } from './binding-controllers.ts'
export { createBindingMetrics } from './metrics.ts'
export { type ClaimAction, planClaim } from './plan-claim.ts'
export { type RunningProvisioner, RunningProvisioners } from './running-provisioners.ts'
export { createVolumeIndex } from './volume-index.ts'
