// Public exports of the controllers that expand and modify a plugin's volumes.
export { createPluginChanges } from './plugin-changes.ts'
