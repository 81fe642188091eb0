// The public names of node-lifecycle.
export { unknownConditions } from './conditions.ts'
export { timestamp } from './context.ts'
export { createNodeLifecycleMetrics, type NodeLifecycleMetrics } from './metrics.ts'
export {
  createNodeLifecycleControllers,
  type NodeLifecycleControllers,
  type NodeLifecycleDeps,
  type NodeLifecycleOptions,
} from './node-lifecycle-controllers.ts'
export { taintsDue } from './taints.ts'
