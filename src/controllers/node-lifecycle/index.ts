// The door of node lifecycle.
export { createNodeLifecycleMetrics, type NodeLifecycleMetrics } from './metrics.ts'
export {
  createNodeLifecycleControllers,
  type NodeLifecycleControllers,
  type NodeLifecycleDeps,
  type NodeLifecycleOptions,
} from './node-lifecycle-controllers.ts'
