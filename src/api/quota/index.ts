// What objects cost a ResourceQuota, without a store or a server: the API server charges with it, the quota controller
// counts with it.
export { QuotaAccount, textOf } from './account.ts'
export { type Change, type Charged, changesOf, chargeQuota } from './charge.ts'
export { missingConstraints } from './pod-constraints.ts'
export { podResources } from './pod-resources.ts'
export { type Contents, kindsOfKeys, tally } from './tally.ts'
export { type CountedKind, isCounted } from './usage.ts'
