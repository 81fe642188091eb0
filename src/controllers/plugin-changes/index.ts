// Public exports of the changes to volumes of a plugin.
export { createPluginChanges, type PluginChangeDeps } from './plugin-changes.ts'
