// Public exports of volume modification.
export { createModifyingMetrics, type ModifyingMetrics } from './metrics.ts'
export type { ModificationDriver } from './modification-driver.ts'
export { createModifying } from './modifying.ts'
export type { ModifyingOptions } from './options.ts'
