// What one object counts for, by quota key. Every stored object is one of its kind; claims and pods also ask for amounts.
// Events come and go by themselves and are never counted.
import { parseQuantity, type Quantity } from '../quantity.ts'
import { addClaimAmounts } from './claim-usage.ts'
import { podAmounts } from './pod-usage.ts'

export type Usage = ReadonlyMap<string, Quantity>

/** The kind as the store names it. */
export interface CountedKind {
  readonly group: string
  readonly plural: string
}

export const CLAIMS: CountedKind = { group: '', plural: 'persistentvolumeclaims' }
export const PODS: CountedKind = { group: '', plural: 'pods' }

export const isSameKind = (a: CountedKind, b: CountedKind): boolean => a.plural === b.plural && a.group === b.group

export const isCounted = ({ plural }: CountedKind): boolean => plural !== 'events'

/** Kinds that have a key of their own, older than `count/`. */
const COUNTED_BY_NAME = ['persistentvolumeclaims', 'configmaps', 'secrets', 'resourcequotas']

export const isCountedByName = (key: string): boolean => COUNTED_BY_NAME.includes(key)

export const ONE = parseQuantity('1')
export const ZERO = parseQuantity('0')

const NOTHING: Usage = new Map()

export function usageOf(kind: CountedKind, object: any): Usage {
  if (object === undefined) return NOTHING
  const usage = new Map<string, Quantity>()
  for (const key of countKeysOf(kind)) usage.set(key, ONE)
  if (isSameKind(kind, CLAIMS)) addClaimAmounts(object, usage)
  if (isSameKind(kind, PODS)) for (const [key, amount] of podAmounts(object)) usage.set(key, amount)
  return usage
}

/** By which keys an object counts as one of its kind. */
function countKeysOf(kind: CountedKind): readonly string[] {
  const known = countKeys.get(kind)
  if (known) return known
  const { group, plural } = kind
  const keys = [group ? `count/${plural}.${group}` : `count/${plural}`]
  if (group === '' && isCountedByName(plural)) keys.push(plural)
  countKeys.set(kind, keys)
  return keys
}
const countKeys = new WeakMap<CountedKind, readonly string[]>()
