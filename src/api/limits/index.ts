// What LimitRanges do to single objects, without a store or a server: fill in what is missing, and say what is too
// little, too much or too far apart.
export { applyClaimDefaults, claimViolations } from './claim-limits.ts'
export { applyPodDefaults, podViolations } from './pod-limits.ts'
