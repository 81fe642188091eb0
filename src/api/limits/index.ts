// Public entry of limits/: applies the defaults of LimitRanges to claims and pods and finds violations of their bounds.
// Pure; limit-range admission in the API server uses it.
export { applyClaimDefaults, claimViolations } from './claim-limits.ts'
export { applyPodDefaults, podViolations } from './pod-limits.ts'
