// Public exports of the binding controllers, which bind claims to volumes and set the phase of both.
export { planBindingOfNewVolume } from './bind-new-volume.ts'
export { type BindingOptions, createBindingControllers } from './binding-controllers.ts'
export { type BindingMetrics, createBindingMetrics } from './metrics.ts'
export type { InProcessProvisioner } from './plan-reclaim.ts'
