// The door of expanding.
export { canExpand, createExpanding, type ExpandingDeps } from './expanding.ts'
export type { ExpandingOptions } from './options.ts'
