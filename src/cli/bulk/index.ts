// Bulk operations on claims: selection, dry run, concurrency, progress, results and exit code. One claim's operation is the
// command's: commands/grow and commands/migrate.
export { type Claim, changeRecord, patchClaim, refOf, rejectionOf, startClaim } from './claim-writes.ts'
export { type BulkDeps, CONCURRENT_REQUESTS } from './deps.ts'
export type { BulkRequest } from './flags.ts'
export { latestWarning } from './latest-warning.ts'
export { mapConcurrently } from './map-concurrently.ts'
export { oneLine } from './progress-line.ts'
export { type ClaimResult, countOf, isComplete, jsonText, resultName, tableOf } from './results.ts'
export { exitWith, interrupted, knownResults, runBulk, startsNothing, withClaims, withServer } from './run-bulk.ts'
export type { ClaimStatus, ClaimWork, FinalStatus, StartResult } from './run-claims.ts'
export { inNaturalOrder, selectClaims } from './select-claims.ts'
