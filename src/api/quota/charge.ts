// What one write does to one quota: pure, from the object before and after it to the new use, or to a refusal.
// Only what rises is judged, so an object of a quota that is over its bounds already may still shrink, change or go.
import { addQuantities, compareQuantities, formatQuantity, type Quantity, subtractQuantities } from '../quantity.ts'
import type { QuotaAccount } from './account.ts'
import { isLargestKey } from './claim-usage.ts'
import { isInScope } from './scopes.ts'
import { type Contents, tally } from './tally.ts'
import { type CountedKind, usageOf, ZERO } from './usage.ts'

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
export function changesOf({ kind, before, after }: Passage): (account: QuotaAccount) => readonly Change[] {
  const usageBefore = usageOf(kind, before)
  const usageAfter = usageOf(kind, after)
  return ({ quota: { spec }, bounds }) => {
    let changes: Change[] | undefined
    let wasCounted: boolean | undefined
    let isCounted: boolean | undefined
    for (const key of bounds.keys()) {
      const was = usageBefore.get(key)
      const is = usageAfter.get(key)
      if (!was && !is) continue
      wasCounted ??= before !== undefined && isInScope(spec, kind, before)
      isCounted ??= after !== undefined && isInScope(spec, kind, after)
      const change = { key, before: (wasCounted && was) || ZERO, after: (isCounted && is) || ZERO }
      if (compareQuantities(change.before, change.after) === 0) continue
      changes ??= []
      changes.push(change)
    }
    return changes ?? NO_CHANGES
  }
}

const NO_CHANGES: readonly Change[] = []

export interface Charge {
  readonly account: QuotaAccount
  readonly changes: readonly Change[]
  /** Of the object that is written. */
  readonly uid: string
  /** A status says what is; refusing it would not make it untrue. */
  readonly mayRefuse: boolean
  /** The namespace before this write. */
  readonly contents: Contents
}

export type Charged =
  | { readonly is: 'charged'; readonly account: QuotaAccount }
  | { readonly is: 'exceeded'; readonly why: string }

export function chargeQuota(charge: Charge): Charged {
  const { account, changes, mayRefuse } = charge
  const used = knownUse(charge)
  let exceeded: Excess[] | undefined
  for (const change of changes) {
    const { key, before, after } = change
    const now = used.get(key) ?? ZERO
    const limited = account.bounds.get(key) ?? ZERO
    const requested = isLargestKey(key) ? after : subtractQuantities(after, before)
    const next = isLargestKey(key) ? largestAfter(charge, change, now) : atLeastZero(addQuantities(now, requested))
    used.set(key, next)
    const judged = isLargestKey(key) ? after : next
    const rises = compareQuantities(after, before) > 0
    if (rises && compareQuantities(judged, limited) > 0) {
      exceeded ??= []
      exceeded.push({ key, requested, used: now, limited })
    }
  }
  if (mayRefuse && exceeded) return { is: 'exceeded', why: describe(account.name, exceeded) }
  return { is: 'charged', account: account.with(used) }
}

/** What the quota says of each of its keys; what it does not say yet is counted. */
function knownUse({ account, contents }: Charge): Map<string, Quantity> {
  const { quota, bounds, used } = account
  if (used.size === bounds.size) return new Map(used)
  const uncounted = [...bounds.keys()].filter((key) => !used.has(key))
  const counted = tally(quota.spec, uncounted, contents)
  return new Map([...bounds.keys()].map((key) => [key, used.get(key) ?? counted.get(key) ?? ZERO]))
}

/** Only when the largest claim itself shrinks or goes must the others be looked at. */
function largestAfter({ account, uid, contents }: Charge, { key, before, after }: Change, now: Quantity): Quantity {
  if (compareQuantities(after, now) >= 0) return after
  if (compareQuantities(before, now) < 0) return now
  const others: Contents = (kind) => contents(kind).filter(({ metadata }) => metadata.uid !== uid)
  const largest = tally(account.quota.spec, [key], others).get(key) ?? ZERO
  return compareQuantities(after, largest) > 0 ? after : largest
}

const atLeastZero = (amount: Quantity): Quantity => (amount.nanos < 0n ? ZERO : amount)

interface Excess {
  readonly key: string
  readonly requested: Quantity
  readonly used: Quantity
  readonly limited: Quantity
}

/** `exceeded quota: team, requested: requests.storage=10Gi, used: requests.storage=95Gi, limited: requests.storage=100Gi` */
function describe(name: string, exceeded: readonly Excess[]): string {
  const sorted = [...exceeded].sort((a, b) => (a.key < b.key ? -1 : 1))
  const part = (field: 'requested' | 'used' | 'limited') =>
    `${field}: ${sorted.map((one) => `${one.key}=${formatQuantity(one[field])}`).join(',')}`
  return `exceeded quota: ${name}, ${part('requested')}, ${part('used')}, ${part('limited')}`
}
