// Public exports for changing a plugin's volumes.
export { createPluginChanges } from './plugin-changes.ts'
