// Public API of limits/: applies the defaults of LimitRanges to claims and pods and finds violations of their bounds.
export { applyClaimDefaults, findClaimViolations } from './claim-limits.ts'
export { applyPodDefaults, findPodViolations } from './pod-limits.ts'
