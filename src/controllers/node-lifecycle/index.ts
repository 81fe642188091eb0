// Public exports of the node lifecycle controllers.
export { unknownConditions } from './conditions.ts'
export { createNodeLifecycleMetrics, type NodeLifecycleMetrics } from './metrics.ts'
export {
  createNodeLifecycleControllers,
  type NodeLifecycleOptions,
} from './node-lifecycle-controllers.ts'
export { desiredTaints } from './taints.ts'
