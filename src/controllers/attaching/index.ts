// The door of attaching.
export { type Attacher, type AttacherDeps, createAttacher } from './attacher/attacher.ts'
export type { AttacherOptions } from './attacher/options.ts'
export {
  type AttachingControllers,
  type AttachingDeps,
  type AttachingOptions,
  createAttachingControllers,
} from './attaching-controllers.ts'
export { type AttachingMetrics, createAttachingMetrics } from './metrics.ts'
export { attachedVolumeNameOf, attachmentNameOf } from './names.ts'
