// Public exports of volume-changes, which expansion and modification share.
export type { Subject, VolumeChange } from './change.ts'
export {
  type ChangeThrottle,
  changeDelayed,
  createChangeThrottle,
  type ThrottleOptions,
} from './change-throttle.ts'
export { indexPodsByClaim, isInUse } from './in-use.ts'
export type { VolumeChangeOptions } from './options.ts'
export { createVolumeFilter, findSubject, type ServedNode } from './subject.ts'
export {
  changeKey,
  createVolumeChangeControllers,
  type VolumeChangeControllers,
} from './volume-change-controllers.ts'
