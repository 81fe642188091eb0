// Charges quotas inside the transaction that writes the object, and rejects writes that would exceed them. Two concurrent
// writes can never both use the last free unit, and a failed write needs no rollback. ../../api/quota computes the usage
// of an object.
//
// Usage stays exact even if several servers write to the same store concurrently. A transaction succeeds only if every
// key that it has read with `find` is unchanged, and:
//  1. A write of a counted kind reads the namespace's limits record (namespace-limits.ts), and a write that creates or
//     deletes a quota, or changes its spec, rewrites the record. So a write applies the newest spec of each quota.
//  2. A write that changes the usage of a quota rewrites that quota. So two such writes are serialized.
//  3. A new quota has no usage in its status, and a changed quota lacks the keys whose usage the change has invalidated.
//     The next write or the quota controller counts them from the store. By 1, the count includes all objects that were
//     written before the quota; by 2, the transaction is retried if an object is written during the count.

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
import { quotaAccountsOf } from './namespace-limits.ts'
import { quotaExceeded } from './quota-exceeded-error.ts'

export const resourceQuota: AdmissionPlugin = {
  name: 'ResourceQuota',
  mutate({ operation, resource, subresource, object, oldObject }) {
    const isSpecUpdate = operation === 'UPDATE' && subresource === '' && isQuota(resource)
    if (isSpecUpdate && object.status) object.status = statusAfterSpecUpdate(object, oldObject as ResourceQuota)
  },
  validate(request) {
    const { resource, operation, oldObject, resultingObject } = request
    const kind = resource.storedKind
    if (!kind.namespaced || !isCounted(kind)) return undefined
    const accounts = quotaAccountsOf(request)
    if (accounts.length === 0) return undefined
    if (operation === 'CREATE') checkConstraints(request, accounts)
    const changesOf = createChangeCalculator({
      kind,
      oldObject: oldObject as KubeObject | undefined,
      newObject: resultingObject,
    })
    const listObjects: ListObjects = ({ group, plural }) =>
      request.list({ group, plural, namespaced: true }, request.namespace)
    const writes: Write[] = []
    for (const account of accounts) {
      if (isQuota(resource) && account.name === request.name) continue // this write replaces that quota
      const accountChanges = changesOf(account)
      if (accountChanges.length > 0) writes.push(planCharge(request, account, accountChanges, listObjects))
    }
    return writes
  },
}

const isQuota = ({ group, plural }: AdmissionRequest['resource']): boolean =>
  group === resourceQuotaKind.group && plural === resourceQuotaKind.plural

/**
 * Returns the status with the new limits. Keeps the usage of keys that are still limited, or none after a change of the scope
 * selector. The next write or the quota controller counts the missing keys.
 */
function statusAfterSpecUpdate(newQuota: ResourceQuota, old: Readonly<ResourceQuota>): ResourceQuota['status'] {
  const hard = newQuota.spec?.hard ?? {}
  const scopeOf = (quota: Readonly<ResourceQuota>) => (quota.spec?.scopeSelector ?? null) as JsonValue
  const isSameScope = jsonEquals(scopeOf(newQuota), scopeOf(old))
  const validUsage = Object.entries(newQuota.status?.used ?? {}).filter(
    ([key]) => isSameScope && Object.hasOwn(hard, key),
  )
  return { hard, used: Object.fromEntries(validUsage) }
}

function checkConstraints(
  { resource, name, resultingObject }: AdmissionRequest,
  accounts: readonly QuotaAccount[],
): void {
  for (const { quota } of accounts) {
    const missingMessage = describeMissingConstraints(quota, resource.storedKind, resultingObject)
    if (missingMessage) throw forbidden(resource, name, `failed quota: ${quota.metadata.name}: ${missingMessage}`)
  }
}

function planCharge(
  request: AdmissionRequest,
  account: QuotaAccount,
  changes: readonly Change[],
  listObjects: ListObjects,
): Write {
  const { namespace, subresource, oldObject, resultingObject, find } = request
  const { name } = account
  const { uid } = (resultingObject ?? oldObject).metadata
  const outcome = chargeQuota({ account, changes, uid, canReject: subresource !== 'status', listObjects })
  if (outcome.is === 'exceeded') {
    find(resourceQuotaKind, namespace, name) // a condition: the transaction runs again if the quota has changed
    throw quotaExceeded(request, name, outcome.message)
  }
  return new CoalescableWrite(objectKey(resourceQuotaKind, namespace, name), outcome.account)
}
