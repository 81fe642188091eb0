// Calculates the usage of a namespace from all its objects, for new and changed quotas and for verification. charge-quota.ts
// computes the same usage incrementally.

import type { KubeObject } from '../kind.ts'
import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { addQuantities, compareQuantities, type Quantity } from '../quantity.ts'
import { CLASS_SUFFIX, isPerClaimKey } from './claim-usage.ts'
import { isPodKey } from './pod-usage.ts'
import { isInScope } from './scopes.ts'
import { CLAIMS, type GroupResource, isCounted, isCountedByName, PODS, usageOf, ZERO } from './usage.ts'

/** Returns all stored objects of a kind in the quota's namespace. */
export type ListObjects = (kind: GroupResource) => readonly KubeObject[]

export function calculateUsage(
  spec: ResourceQuota['spec'],
  keys: readonly string[],
  listObjects: ListObjects,
): Map<string, Quantity> {
  const usedAmounts = new Map<string, Quantity>(keys.map((key) => [key, ZERO]))
  for (const kind of kindsOfKeys(keys)) {
    for (const object of listObjects(kind)) {
      if (!isInScope(spec, kind, object)) continue
      for (const [key, amount] of usageOf(kind, object)) {
        const total = usedAmounts.get(key)
        if (total) usedAmounts.set(key, isPerClaimKey(key) ? maximum(total, amount) : addQuantities(total, amount))
      }
    }
  }
  return usedAmounts
}

const maximum = (a: Quantity, b: Quantity): Quantity => (compareQuantities(a, b) >= 0 ? a : b)

/** Returns the kinds whose objects are charged to these keys. */
export function kindsOfKeys(keys: readonly string[]): readonly GroupResource[] {
  const kinds = new Map<string, GroupResource>()
  for (const key of keys) {
    const kind = kindOfKey(key)
    if (kind && isCounted(kind)) kinds.set(`${kind.plural}.${kind.group}`, kind)
  }
  return [...kinds.values()]
}

function kindOfKey(key: string): GroupResource | undefined {
  if (key.startsWith('count/')) {
    const [plural = '', ...group] = key.slice('count/'.length).split('.')
    return { plural, group: group.join('.') }
  }
  if (isClaimKey(key)) return CLAIMS
  if (isPodKey(key)) return PODS
  return isCountedByName(key) ? { group: '', plural: key } : undefined
}

const isClaimKey = (key: string): boolean => CLAIM_KEYS.includes(key) || key.includes(CLASS_SUFFIX)
const CLAIM_KEYS = [
  'persistentvolumeclaims',
  'requests.storage',
  'limits.iops',
  'limits.throughput',
  'requests.iops',
  'requests.throughput',
]
