// The public names of modifying: ControllerModifyVolume for the claims of one CSI driver.
export { createModifyingMetrics, type ModifyingMetrics } from './metrics.ts'
export { createModifying, type ModifyingDeps } from './modifying.ts'
export type { ModifyingOptions } from './options.ts'
