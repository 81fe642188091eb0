// Public exports of apply/: server-side apply, and tracking of field ownership in managedFields.
export { applyConfig, ConflictError } from './apply-config.ts'
export { findConfigProblems } from './config-problems.ts'
export { hasPath, LEAF as FIELD_SET_LEAF } from './field-set.ts'
export { LAST_APPLIED, LAST_APPLIED_MANAGER, lastAppliedFields, lastAppliedText } from './last-applied.ts'
export { type Entry, readEntries } from './managed-fields.ts'
export { describePath } from './path-element.ts'
export { objectShape, updatedShape } from './shape.ts'
export { type TrackedWrite, trackCreate, trackUpdate } from './track-update.ts'
