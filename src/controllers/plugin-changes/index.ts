// Public exports of the changes to volumes of a plugin.
export { createPluginChanges } from './plugin-changes.ts'
