// Bulk operations on claims: selection, dry run, concurrency, progress, results and exit code. The operation on a single
// claim is in commands/grow and commands/migrate.

export { mapConcurrently } from '../../client/map-concurrently.ts'
export { type Claim, changeRecord, findRejection, patchClaim, refOf, startChange } from './claim-writes.ts'
export { type BulkDeps, CONCURRENT_REQUESTS_MAX } from './deps.ts'
export type { BulkRequest } from './flags.ts'
export { readLatestWarning } from './latest-warning.ts'
export { toSingleLine } from './progress-line.ts'
export { type ClaimResult, countResults, isComplete, resultName } from './results.ts'
export {
  createInterruptedError,
  exitUnlessSuccessful,
  findKnownResults,
  runBulk,
  shouldStartNothing,
} from './run-bulk.ts'
export type { ClaimStatus, ClaimTask, FinalStatus, StartResult } from './run-claims.ts'
export { selectClaims, sortNaturally } from './select-claims.ts'
export { withClaims, withClient } from './with-client.ts'
