// The door of changing: the frame of everything that changes volumes of bound claims.
export type { Change, Subject } from './change.ts'
export {
  type ChangingControllers,
  type ChangingDeps,
  changeKey,
  createChangingControllers,
} from './changing-controllers.ts'
export type { ChangingOptions } from './options.ts'
export { type ChangeBudget, createPace, delayed, type Pace, type PaceOptions } from './pace.ts'
export type { ServedNode } from './subjects.ts'
export { followUsers, isInUse, isOver } from './users.ts'
