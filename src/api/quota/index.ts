// Public API of quota/: the usage of objects by quota key. Pure. The API server charges writes with it, and the quota
// controller recalculates usage with it.

export { calculateUsage, kindsOfKeys, type ListObjects } from './calculate-usage.ts'
export { type Change, chargeQuota, createChangeCalculator } from './charge-quota.ts'
export { describeMissingConstraints } from './pod-constraints.ts'
export { podResources } from './pod-resources.ts'
export { formatAmounts, QuotaAccount } from './quota-account.ts'
export { isCounted } from './usage.ts'
