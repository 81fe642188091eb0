// Charges quotas inside the transaction that writes the object, and refuses what would exceed them: there is no moment
// in which two writes both fit, and nothing to undo when a write fails. What an object costs is ../../api/quota.
//
// Why this stays exact when several servers share the store and write at the same time. A transaction is done only if
// every key it has read with `find` is as it was, and:
//  1. a write reads the namespace's mark (namespace-limits.ts), which every new, changed or deleted quota rewrites.
//     So a write that did not see a quota was done before that quota was; one that did judged by its newest spec.
//  2. a write that changes what a quota counts rewrites that quota. So of two such writes one sees the other.
//  3. a new quota says nothing of what is used, and a changed one says nothing of what its change made unknown. Whoever
//     comes next counts it, here or in the quota controller, from what the store held when the quota was read. By 1
//     that holds everything done before the quota was, by 2 nothing has been done since, or the quota would have
//     changed and the count would be made again.

import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { ResourceQuota } from '../../api/kinds/resource-quota/resource-quota-schema.ts'
import {
  type Change,
  type Contents,
  changesOf,
  chargeQuota,
  isCounted,
  missingConstraints,
  type QuotaAccount,
} from '../../api/quota/index.ts'
import { forbidden } from '../../api/status-error.ts'
import type { AdmissionPlugin, AdmissionRequest, ObjectWrite } from './admission.ts'
import { accountsOf } from './namespace-limits.ts'
import { refusedByQuota } from './quota-refusal.ts'

const QUOTAS = { group: '', plural: 'resourcequotas' }

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
    const changes = changesOf({ kind, before: old, after })
    const contents: Contents = ({ group, plural }) => request.list(group, plural, request.namespace)
    const writes: ObjectWrite[] = []
    for (const account of accounts) {
      if (isQuota(resource) && account.name === request.name) continue // it is being written itself
      const changed = changes(account)
      if (changed.length > 0) writes.push(charged(request, account, changed, contents))
    }
    return writes
  },
}

const isQuota = ({ group, plural }: AdmissionRequest['resource']): boolean =>
  group === QUOTAS.group && plural === QUOTAS.plural

/** The bounds are in force at once. What is used of new keys, or of anything once the scope is another, is unknown. */
function statusAfterEdit(next: ResourceQuota, old: Readonly<ResourceQuota>): ResourceQuota['status'] {
  const hard = next.spec?.hard ?? {}
  const scope = (quota: Readonly<ResourceQuota>) => (quota.spec?.scopeSelector ?? null) as JsonValue
  const isSameScope = jsonEquals(scope(next), scope(old))
  const known = Object.entries(next.status?.used ?? {}).filter(([key]) => isSameScope && Object.hasOwn(hard, key))
  return { hard, used: Object.fromEntries(known) }
}

function checkConstraints({ resource, name, after }: AdmissionRequest, accounts: readonly QuotaAccount[]): void {
  for (const { quota } of accounts) {
    const missing = missingConstraints(quota, resource.stored, after)
    if (missing) throw forbidden(resource, name, `failed quota: ${quota.metadata.name}: ${missing}`)
  }
}

function charged(
  request: AdmissionRequest,
  account: QuotaAccount,
  changes: readonly Change[],
  contents: Contents,
): ObjectWrite {
  const { namespace, subresource, old, after, find } = request
  const { group, plural } = QUOTAS
  const { name } = account
  const { uid } = (after ?? old).metadata
  const outcome = chargeQuota({ account, changes, uid, mayRefuse: subresource !== 'status', contents })
  if (outcome.is === 'exceeded') {
    find(group, plural, namespace, name) // a refusal too must rest on how it is now; a write always does
    throw refusedByQuota(request, name, outcome.why)
  }
  return { group, plural, namespace, name, running: outcome.account }
}
