// What one write does to one quota: pure, from the object before and after it to the new `used`, or to a refusal.
// Only what rises is judged, so an object of a quota that is over its bounds already may still shrink, change or go.
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
  quantitySign,
  subtractQuantities,
} from '../quantity.ts'
import type { ResourceQuota } from '../types/quota.ts'
import { isLargestKey } from './claim-usage.ts'
import { isInScope } from './scopes.ts'
import { type Contents, tally } from './tally.ts'
import { type CountedKind, type Usage, usageOf, ZERO } from './usage.ts'

/** An object before and after a write; undefined: it is not there. */
export interface Passage {
  readonly kind: CountedKind
  readonly before: any
  readonly after: any
}

/** What a write changes of one key. */
export interface Change {
  readonly key: string
  readonly before: Quantity
  readonly after: Quantity
}

/** Finds what a write changes of any quota's keys. What the object uses is worked out once for all of them. */
export function changesOf({ kind, before, after }: Passage): (quota: Readonly<ResourceQuota>) => readonly Change[] {
  const usageBefore = usageOf(kind, before)
  const usageAfter = usageOf(kind, after)
  return ({ spec }) => {
    const keys = Object.keys(spec?.hard ?? {}).filter((key) => usageBefore.has(key) || usageAfter.has(key))
    if (keys.length === 0) return NO_CHANGES
    const counted = (object: any, usage: Usage): Usage =>
      object !== undefined && isInScope(spec, kind, object) ? usage : NO_USAGE
    const was = counted(before, usageBefore)
    const is = counted(after, usageAfter)
    return keys
      .map((key) => ({ key, before: was.get(key) ?? ZERO, after: is.get(key) ?? ZERO }))
      .filter((change) => compareQuantities(change.before, change.after) !== 0)
  }
}

const NO_CHANGES: readonly Change[] = []
const NO_USAGE: Usage = new Map()

export interface Charge {
  readonly quota: Readonly<ResourceQuota>
  readonly changes: readonly Change[]
  /** Of the object that is written. */
  readonly uid: string
  /** A status says what is; refusing it would not make it untrue. */
  readonly mayRefuse: boolean
  /** The namespace before this write. */
  readonly contents: Contents
}

export type Charged =
  | { readonly is: 'charged'; readonly status: NonNullable<ResourceQuota['status']> }
  | { readonly is: 'exceeded'; readonly why: string }

export function chargeQuota(charge: Charge): Charged {
  const { quota, changes, mayRefuse } = charge
  const hard = quota.spec?.hard ?? {}
  const used = knownUse(charge)
  const exceeded: Excess[] = []
  for (const change of changes) {
    const { key, before, after } = change
    const now = used.get(key) ?? ZERO
    const requested = isLargestKey(key) ? after : subtractQuantities(after, before)
    const next = isLargestKey(key) ? largestAfter(charge, change, now) : atLeastZero(addQuantities(now, requested))
    used.set(key, next)
    const judged = isLargestKey(key) ? after : next
    const rises = compareQuantities(after, before) > 0
    if (rises && compareQuantities(judged, hard[key] ?? '0') > 0) {
      exceeded.push({ key, requested: formatQuantity(requested), used: formatQuantity(now), limited: hard[key] ?? '0' })
    }
  }
  if (mayRefuse && exceeded.length > 0) return { is: 'exceeded', why: describe(quota.metadata.name ?? '', exceeded) }
  const said = textOf(used)
  parsed.set(said, used)
  return { is: 'charged', status: { hard, used: said } }
}

/** What the quota says of each of its keys; what it does not say yet is counted. */
function knownUse({ quota: { spec, status }, contents }: Charge): Map<string, Quantity> {
  const keys = Object.keys(spec?.hard ?? {})
  const said = status?.used ?? {}
  const uncounted = keys.filter((key) => !Object.hasOwn(said, key))
  const counted = uncounted.length > 0 ? tally(spec, uncounted, contents) : undefined
  const read = parsed.get(said)
  return new Map(keys.map((key) => [key, counted?.get(key) ?? read?.get(key) ?? parseQuantity(said[key] ?? '0')]))
}

/** What was charged last, as numbers: in a busy namespace the next charge follows at once. */
const parsed = new WeakMap<object, ReadonlyMap<string, Quantity>>()

/** Only when the largest claim itself shrinks or goes must the others be looked at. */
function largestAfter({ quota, uid, contents }: Charge, { key, before, after }: Change, now: Quantity): Quantity {
  if (compareQuantities(after, now) >= 0) return after
  if (compareQuantities(before, now) < 0) return now
  const others: Contents = (kind) => contents(kind).filter(({ metadata }) => metadata.uid !== uid)
  const largest = tally(quota.spec, [key], others).get(key) ?? ZERO
  return compareQuantities(after, largest) > 0 ? after : largest
}

const atLeastZero = (amount: Quantity): Quantity => (quantitySign(amount) < 0 ? ZERO : amount)

/** Written as it is read back: a sum of a binary format that no binary suffix fits is a decimal number. */
export const textOf = (used: ReadonlyMap<string, Quantity>): Record<string, string> =>
  Object.fromEntries([...used].map(([key, amount]) => [key, canonicalQuantity(formatQuantity(amount))]))

interface Excess {
  readonly key: string
  readonly requested: string
  readonly used: string
  readonly limited: string
}

/** `exceeded quota: team, requested: requests.storage=10Gi, used: requests.storage=95Gi, limited: requests.storage=100Gi` */
function describe(name: string, exceeded: readonly Excess[]): string {
  const sorted = [...exceeded].sort((a, b) => (a.key < b.key ? -1 : 1))
  const part = (field: 'requested' | 'used' | 'limited') =>
    `${field}: ${sorted.map((one) => `${one.key}=${one[field]}`).join(',')}`
  return `exceeded quota: ${name}, ${part('requested')}, ${part('used')}, ${part('limited')}`
}
