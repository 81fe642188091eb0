// Public exports of the audit log.
export { type Audit, type AuditedRequest, createAudit } from './audit.ts'
export { type AuditLog, type AuditSink, createAuditLog } from './audit-log.ts'
export { defaultAuditPolicy } from './default-policy.ts'
export { parseAuditPolicy } from './policy.ts'
export { openRotatingFile } from './rotating-file.ts'
