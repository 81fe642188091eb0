// Computes the usage of one object by quota key: 1 for the object itself, plus the amounts of claims and pods. Quotas do not
// count events, because they expire (isCounted).
import type { KubeObject } from '../kind.ts'
import type { PersistentVolumeClaim } from '../kinds/claim/claim-schema.ts'
import type { Pod } from '../kinds/pod/pod-schema.ts'
import { parseQuantity, type Quantity } from '../quantity.ts'
import { addClaimAmounts } from './claim-usage.ts'
import { podAmounts } from './pod-usage.ts'

export type Usage = ReadonlyMap<string, Quantity>

/** The API group and plural name under which the objects of a kind are stored. */
export interface GroupResource {
  readonly group: string
  readonly plural: string
}

export const CLAIMS: GroupResource = { group: '', plural: 'persistentvolumeclaims' }
export const PODS: GroupResource = { group: '', plural: 'pods' }

export const isSameKind = (a: GroupResource, b: GroupResource): boolean => a.plural === b.plural && a.group === b.group

export const isCounted = ({ plural }: GroupResource): boolean => plural !== 'events'

/** Kinds whose objects are all counted by a quota key without the prefix `count/`. The key `pods` excludes terminated pods. */
const PLURALS_WITH_NAME_KEY = ['persistentvolumeclaims', 'configmaps', 'secrets', 'resourcequotas']

export const isCountedByName = (key: string): boolean => PLURALS_WITH_NAME_KEY.includes(key)

const ONE = parseQuantity('1')
export const ZERO = parseQuantity('0')

const NO_USAGE: Usage = new Map()

export function usageOf(kind: GroupResource, object: KubeObject | undefined): Usage {
  if (object === undefined) return NO_USAGE
  const usage = new Map<string, Quantity>()
  for (const key of countKeysOf(kind)) usage.set(key, ONE)
  if (isSameKind(kind, CLAIMS)) addClaimAmounts(object as PersistentVolumeClaim, usage)
  if (isSameKind(kind, PODS)) for (const [key, amount] of podAmounts(object as Pod)) usage.set(key, amount)
  return usage
}

/** Returns the quota keys that count objects of the kind. */
function countKeysOf(kind: GroupResource): readonly string[] {
  const cachedKeys = countKeysByKind.get(kind)
  if (cachedKeys) return cachedKeys
  const { group, plural } = kind
  const keys = [group ? `count/${plural}.${group}` : `count/${plural}`]
  if (group === '' && isCountedByName(plural)) keys.push(plural)
  countKeysByKind.set(kind, keys)
  return keys
}
const countKeysByKind = new WeakMap<GroupResource, readonly string[]>()
