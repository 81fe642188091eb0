// Public exports of the attach-detach controllers and the attacher.

export { createAttacher } from './attacher/attacher.ts'
export type { AttacherOptions } from './attacher/options.ts'
export { createAttachingControllers } from './attaching-controllers.ts'
export { createAttachingMetrics } from './metrics.ts'
