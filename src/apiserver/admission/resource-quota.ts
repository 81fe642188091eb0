// Charges quotas inside the transaction that writes the object, and rejects writes that would exceed them: two writes can
// never both fit into the last free unit, and a failed write needs no undo. The cost of an object is in ../../api/quota.
//
// Why this stays exact when several servers share the store and write at the same time. A transaction succeeds only if
// every key it has read with `find` is unchanged, and:
//  1. a write reads the namespace's limits record (namespace-limits.ts), which every created, changed or deleted quota
//     rewrites. So a write that did not see a quota was done before the quota existed; one that did used its newest spec.
//  2. a write that changes the usage of a quota rewrites that quota. So of two such writes one sees the other.
//  3. a new quota has no usage in its status, and a changed one lacks the keys whose usage its change invalidated. The
//     next write or the quota controller counts them from the store as of the moment it read the quota. By 1 that includes
//     everything written before the quota; by 2 nothing was written since, or the quota would have changed and the
//     transaction would be retried.

import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { KubeObject } from '../../api/kind.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import {
  type Change,
  chargeQuota,
  createChangeCalculator,
  describeMissingConstraints,
  isCounted,
  type ListObjects,
  type QuotaAccount,
} from '../../api/quota/index.ts'
import { forbidden } from '../../api/status-error.ts'
import type { Write } from '../../store/index.ts'
import { objectKey } from '../keys.ts'
import { CoalescableWrite } from '../objects/coalescable-write.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'
import { accountsOf } from './namespace-limits.ts'
import { refusedByQuota } from './quota-refusal.ts'

export const resourceQuota: AdmissionPlugin = {
  name: 'ResourceQuota',
  mutate({ operation, resource, subresource, object, old }) {
    const isEdit = operation === 'UPDATE' && subresource === '' && isQuota(resource)
    if (isEdit && object.status) object.status = statusAfterEdit(object, old as ResourceQuota)
  },
  validate(request) {
    const { resource, operation, old, after } = request
    const kind = resource.stored
    if (!kind.namespaced || !isCounted(kind)) return undefined
    const accounts = accountsOf(request)
    if (accounts.length === 0) return undefined
    if (operation === 'CREATE') checkConstraints(request, accounts)
    const changes = createChangeCalculator({ kind, before: old as KubeObject | undefined, after })
    const contents: ListObjects = ({ group, plural }) =>
      request.list({ group, plural, namespaced: true }, request.namespace)
    const writes: Write[] = []
    for (const account of accounts) {
      if (isQuota(resource) && account.name === request.name) continue // this write replaces it
      const changed = changes(account)
      if (changed.length > 0) writes.push(charged(request, account, changed, contents))
    }
    return writes
  },
}

const isQuota = ({ group, plural }: AdmissionRequest['resource']): boolean =>
  group === resourceQuotaKind.group && plural === resourceQuotaKind.plural

/** New limits apply at once. The usage of new keys is unknown, and so is all usage after a change of scope. */
function statusAfterEdit(next: ResourceQuota, old: Readonly<ResourceQuota>): ResourceQuota['status'] {
  const hard = next.spec?.hard ?? {}
  const scope = (quota: Readonly<ResourceQuota>) => (quota.spec?.scopeSelector ?? null) as JsonValue
  const isSameScope = jsonEquals(scope(next), scope(old))
  const known = Object.entries(next.status?.used ?? {}).filter(([key]) => isSameScope && Object.hasOwn(hard, key))
  return { hard, used: Object.fromEntries(known) }
}

function checkConstraints({ resource, name, after }: AdmissionRequest, accounts: readonly QuotaAccount[]): void {
  for (const { quota } of accounts) {
    const missing = describeMissingConstraints(quota, resource.stored, after)
    if (missing) throw forbidden(resource, name, `failed quota: ${quota.metadata.name}: ${missing}`)
  }
}

function charged(
  request: AdmissionRequest,
  account: QuotaAccount,
  changes: readonly Change[],
  contents: ListObjects,
): Write {
  const { namespace, subresource, old, after, find } = request
  const { name } = account
  const { uid } = (after ?? old).metadata
  const outcome = chargeQuota({ account, changes, uid, mayReject: subresource !== 'status', listObjects: contents })
  if (outcome.is === 'exceeded') {
    find(resourceQuotaKind, namespace, name) // a rejection, too, must rest on the quota's current state
    throw refusedByQuota(request, name, outcome.message)
  }
  return new CoalescableWrite(objectKey(resourceQuotaKind, namespace, name), outcome.account)
}
