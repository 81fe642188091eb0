// Counts from scratch: what all objects of a namespace use of some keys of a quota.
// Charging adds up the same amounts write by write (charge.ts); this is for quotas that are new or changed, and for
// seeing whether that went right.

import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { addQuantities, compareQuantities, type Quantity } from '../quantity.ts'
import { CLASS_SUFFIX, isLargestKey } from './claim-usage.ts'
import { isPodKey } from './pod-usage.ts'
import { isInScope } from './scopes.ts'
import { CLAIMS, type CountedKind, isCounted, isCountedByName, PODS, usageOf, ZERO } from './usage.ts'

/** All stored objects of a kind in the quota's namespace. */
export type Contents = (kind: CountedKind) => readonly any[]

export function tally(spec: ResourceQuota['spec'], keys: readonly string[], contents: Contents): Map<string, Quantity> {
  const used = new Map<string, Quantity>(keys.map((key) => [key, ZERO]))
  for (const kind of kindsOfKeys(keys)) {
    for (const object of contents(kind)) {
      if (!isInScope(spec, kind, object)) continue
      for (const [key, amount] of usageOf(kind, object)) {
        const before = used.get(key)
        if (before) used.set(key, isLargestKey(key) ? larger(before, amount) : addQuantities(before, amount))
      }
    }
  }
  return used
}

const larger = (a: Quantity, b: Quantity): Quantity => (compareQuantities(a, b) >= 0 ? a : b)

/** Whose objects count for these keys; keys that nothing counts for name no kind. */
export function kindsOfKeys(keys: readonly string[]): readonly CountedKind[] {
  const kinds = new Map<string, CountedKind>()
  for (const key of keys) {
    const kind = kindOfKey(key)
    if (kind && isCounted(kind)) kinds.set(`${kind.plural}.${kind.group}`, kind)
  }
  return [...kinds.values()]
}

function kindOfKey(key: string): CountedKind | undefined {
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
