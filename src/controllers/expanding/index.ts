// The door of expanding.
export { type CannotExpandDeps, createCannotExpand } from './cannot-expand.ts'
export { canExpand, createExpanding, type ExpandingDeps } from './expanding.ts'
export type { ExpandingOptions } from './options.ts'
