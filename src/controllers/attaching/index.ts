// Public exports of the attach-detach controllers and the attacher.

export { type Attacher, type AttacherDeps, createAttacher } from './attacher/attacher.ts'
export type { AttacherOptions } from './attacher/options.ts'
export {
  type AttachingControllers,
  type AttachingDeps,
  type AttachingOptions,
  createAttachingControllers,
} from './attaching-controllers.ts'
export { type AttachingMetrics, createAttachingMetrics } from './metrics.ts'
