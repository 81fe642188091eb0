// Public exports of quota/: computes the usage of objects by quota key, charges writes to quotas, and finds containers without
// the requests or limits that a quota requires. Pure.

export { calculateUsage, kindsOfKeys, type ListObjects } from './calculate-usage.ts'
export { type Change, chargeQuota, createChangeCalculator } from './charge-quota.ts'
export { describeMissingConstraints } from './pod-constraints.ts'
export { podResources } from './pod-resources.ts'
export { formatAmounts, QuotaAccount } from './quota-account.ts'
export { isCounted } from './usage.ts'
