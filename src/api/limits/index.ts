// Public exports of limits/: applies LimitRange defaults to claims and pods, and finds violations of LimitRange bounds.
export { applyClaimDefaults, findClaimViolations } from './claim-limits.ts'
export { applyPodDefaults, findPodViolations } from './pod-limits.ts'
