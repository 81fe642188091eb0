// The public names of expanding: ControllerExpandVolume for the claims of one CSI driver.
export { canExpand, createExpanding, type ExpandingDeps } from './expanding.ts'
export { createExpansionUnsupported, type ExpansionUnsupportedDeps } from './expansion-unsupported.ts'
export type { ExpandingOptions } from './options.ts'
