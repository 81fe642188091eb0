// The binding controllers: bind claims to volumes, and volumes to the phase they are in.
export { bindingOfNew } from './bind-new-volume.ts'
export { type BindingOptions, createBindingControllers } from './binding-controllers.ts'
export { type BindingMetrics, createBindingMetrics } from './metrics.ts'
export type { InProcessProvisioner } from './plan-reclaim.ts'
