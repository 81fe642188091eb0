// Operations on sets of claims: which claims, how many at once, how far each is, and what came of it.
// What is done with a claim is the command's: grow.ts, migrate.ts.
export { type BulkDeps, CONCURRENT_REQUESTS, INTERRUPTED } from './deps.ts'
export { latestWarning } from './latest-warning.ts'
export { mapConcurrently } from './map-concurrently.ts'
export { endLine, oneLine, type Progress, plainProgress, silentProgress, terminalProgress } from './progress.ts'
export { type ClaimResult, countOf, tableOf } from './results.ts'
export { type ClaimStatus, type ClaimWork, type FinalStatus, runClaims } from './run-claims.ts'
export { type Selection, selectClaims } from './select-claims.ts'
