// Charges one write to one quota: computes the new usage from the object before and after the write, or the message of the
// rejection. Pure. Only increases can exceed a quota, so objects of a quota that is exceeded already can still shrink,
// change or be deleted.
import type { KubeObject } from '../kind.ts'
import { addQuantities, compareQuantities, formatQuantity, type Quantity, subtractQuantities } from '../quantity.ts'
import type { QuotaAccount } from './account.ts'
import { isLargestKey } from './claim-usage.ts'
import { isInScope } from './scopes.ts'
import { type Contents, tally } from './tally.ts'
import { type CountedKind, usageOf, ZERO } from './usage.ts'

/** An object before and after a write; undefined if it does not exist. */
export interface ObjectWrite {
  readonly kind: CountedKind
  readonly before: KubeObject | undefined
  readonly after: KubeObject | undefined
}

/** The change of the usage of one key. */
export interface Change {
  readonly key: string
  readonly before: Quantity
  readonly after: Quantity
}

/** Returns a function that computes the changes for a quota. The usage of the object is computed once for all quotas. */
export function changesOf({ kind, before, after }: ObjectWrite): (account: QuotaAccount) => readonly Change[] {
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
  /** UID of the written object. */
  readonly uid: string
  /** False for status writes: they report a fact, which a rejection would not undo. */
  readonly mayReject: boolean
  /** The objects of the namespace before this write. */
  readonly contents: Contents
}

export type Charged =
  | { readonly is: 'charged'; readonly account: QuotaAccount }
  | { readonly is: 'exceeded'; readonly why: string }

export function chargeQuota(charge: Charge): Charged {
  const { account, changes, mayReject } = charge
  const used = currentUsage(charge)
  let exceeded: Excess[] | undefined
  for (const change of changes) {
    const { key, before, after } = change
    const now = used.get(key) ?? ZERO
    const limited = account.bounds.get(key) ?? ZERO
    const requested = isLargestKey(key) ? after : subtractQuantities(after, before)
    const next = isLargestKey(key) ? largestAfter(charge, change, now) : atLeastZero(addQuantities(now, requested))
    used.set(key, next)
    const compared = isLargestKey(key) ? after : next
    const rises = compareQuantities(after, before) > 0
    if (rises && compareQuantities(compared, limited) > 0) {
      exceeded ??= []
      exceeded.push({ key, requested, used: now, limited })
    }
  }
  if (mayReject && exceeded) return { is: 'exceeded', why: describe(account.name, exceeded) }
  return { is: 'charged', account: account.with(used) }
}

/** The usage in the status of the quota; keys without one are counted. */
function currentUsage({ account, contents }: Charge): Map<string, Quantity> {
  const { quota, bounds, used } = account
  if (used.size === bounds.size) return new Map(used)
  const uncounted = [...bounds.keys()].filter((key) => !used.has(key))
  const counted = tally(quota.spec, uncounted, contents)
  return new Map([...bounds.keys()].map((key) => [key, used.get(key) ?? counted.get(key) ?? ZERO]))
}

/** The other claims are examined only if the largest claim itself shrinks or is deleted. */
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
