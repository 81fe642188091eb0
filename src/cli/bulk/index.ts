// Operations on sets of claims: which claims, how many at once, how far each is, and what came of it.
// What is done with a claim is the command's: grow.ts, migrate.ts.
export { ASKED_AT_ONCE, type ClaimSetDeps, INTERRUPTED } from './command.ts'
export { inLanes } from './in-lanes.ts'
export { latestWarning } from './latest-warning.ts'
export { endLine, oneLine, type Progress, plainProgress, silentProgress, terminalProgress } from './progress.ts'
export { type ClaimResult, countOf, tableOf } from './results.ts'
export { type ClaimWork, type Ended, runClaims, type Standing } from './run-claims.ts'
export { type Selection, selectClaims } from './select-claims.ts'
