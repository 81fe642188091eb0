// Public entry of quota/: the usage of objects by quota key. Pure; the API server charges with it, the quota controller
// recounts with it.
export { QuotaAccount, textOf } from './account.ts'
export { type Change, changesOf, chargeQuota } from './charge.ts'
export { missingConstraints } from './pod-constraints.ts'
export { podResources } from './pod-resources.ts'
export { type Contents, kindsOfKeys, tally } from './tally.ts'
export { isCounted } from './usage.ts'
