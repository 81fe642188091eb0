// Public exports of volume expansion.
export { canExpand, createExpanding, type ExpandingDeps } from './expanding.ts'
export type { ExpansionDriver } from './expansion-driver.ts'
export { createExpansionUnsupported } from './expansion-unsupported.ts'
export type { ExpandingOptions } from './options.ts'
export { planExpansion } from './plan-expansion.ts'
