// Bulk operations on claims: selection, concurrency, progress and results. What happens to one claim is the command's:
// commands/grow and commands/migrate.
export { type BulkDeps, CONCURRENT_REQUESTS, INTERRUPTED } from './deps.ts'
export { latestWarning } from './latest-warning.ts'
export { mapConcurrently } from './map-concurrently.ts'
export { endLine, oneLine, type Progress, plainProgress, silentProgress, terminalProgress } from './progress.ts'
export { type ClaimResult, countOf, tableOf } from './results.ts'
export { type ClaimStatus, type ClaimWork, type FinalStatus, runClaims } from './run-claims.ts'
export { type Selection, selectClaims } from './select-claims.ts'
