// Public entry of apply/: field sets, managedFields, and how writes change an object and the ownership of its fields.
export { applyConfig, ConflictError } from './apply-config.ts'
export { configProblems } from './config-problems.ts'
export { hasPath } from './field-set.ts'
export { LAST_APPLIED, LAST_APPLIED_MANAGER, lastAppliedFields, lastAppliedText } from './last-applied.ts'
export { type Entry, readEntries } from './managers.ts'
export { describePath } from './path-element.ts'
export { objectShape } from './shape.ts'
export { type TrackedWrite, trackCreate, trackUpdate } from './track-update.ts'
