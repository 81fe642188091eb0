// Charges one write to one quota: computes the new usage from the object before and after the write, or the message of the
// rejection. Pure. Only an increase can exceed a quota, so while a quota is exceeded, objects can still be updated without
// an increase and deleted.
import type { KubeObject } from '../kind.ts'
import { addQuantities, compareQuantities, formatQuantity, type Quantity, subtractQuantities } from '../quantity.ts'
import { calculateUsage, type ListObjects } from './calculate-usage.ts'
import { isPerClaimKey } from './claim-usage.ts'
import type { QuotaAccount } from './quota-account.ts'
import { isInScope } from './scopes.ts'
import { type CountedKind, usageOf, ZERO } from './usage.ts'

/** An object before and after a write; undefined if it does not exist. */
export interface ObjectWrite {
  readonly kind: CountedKind
  readonly before: KubeObject | undefined
  readonly after: KubeObject | undefined
}

/** A change to the usage of one key. */
export interface Change {
  readonly key: string
  readonly before: Quantity
  readonly after: Quantity
}

/** Returns a function that computes the changes for a quota. The usage of the object is computed once for all quotas. */
export function createChangeCalculator({
  kind,
  before,
  after,
}: ObjectWrite): (account: QuotaAccount) => readonly Change[] {
  const usageBefore = usageOf(kind, before)
  const usageAfter = usageOf(kind, after)
  return ({ quota: { spec }, limits }) => {
    let changes: Change[] | undefined
    let wasCounted: boolean | undefined
    let isCounted: boolean | undefined
    for (const key of limits.keys()) {
      const oldUsage = usageBefore.get(key)
      const newUsage = usageAfter.get(key)
      if (!oldUsage && !newUsage) continue
      wasCounted ??= before !== undefined && isInScope(spec, kind, before)
      isCounted ??= after !== undefined && isInScope(spec, kind, after)
      const change = { key, before: (wasCounted && oldUsage) || ZERO, after: (isCounted && newUsage) || ZERO }
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
  /** False for status writes, because a rejection would not change the usage that they report. */
  readonly mayReject: boolean
  /** The objects of the namespace before this write. */
  readonly listObjects: ListObjects
}

export type ChargeResult =
  | { readonly is: 'charged'; readonly account: QuotaAccount }
  | { readonly is: 'exceeded'; readonly message: string }

export function chargeQuota(charge: Charge): ChargeResult {
  const { account, changes, mayReject } = charge
  const used = currentUsage(charge)
  let excesses: Excess[] | undefined
  for (const change of changes) {
    const { key, before, after } = change
    const current = used.get(key) ?? ZERO
    const limit = account.limits.get(key) ?? ZERO
    const requested = isPerClaimKey(key) ? after : subtractQuantities(after, before)
    const updated = isPerClaimKey(key)
      ? computeLargest(charge, change, current)
      : atLeastZero(addQuantities(current, requested))
    used.set(key, updated)
    const chargedAmount = isPerClaimKey(key) ? after : updated
    const isIncrease = compareQuantities(after, before) > 0
    if (isIncrease && compareQuantities(chargedAmount, limit) > 0) {
      excesses ??= []
      excesses.push({ key, requested, used: current, limited: limit })
    }
  }
  if (mayReject && excesses) return { is: 'exceeded', message: describeExcesses(account.name, excesses) }
  return { is: 'charged', account: account.with(used) }
}

/** Returns the usage in the status of the quota. Keys that the status does not have are counted. */
function currentUsage({ account, listObjects }: Charge): Map<string, Quantity> {
  const { quota, limits, used } = account
  if (used.size === limits.size) return new Map(used)
  const uncountedKeys = [...limits.keys()].filter((key) => !used.has(key))
  const countedUsage = calculateUsage(quota.spec, uncountedKeys, listObjects)
  return new Map([...limits.keys()].map((key) => [key, used.get(key) ?? countedUsage.get(key) ?? ZERO]))
}

/** Returns the largest amount after the write. Lists the other claims only if the largest claim shrinks or is deleted. */
function computeLargest(
  { account, uid, listObjects }: Charge,
  { key, before, after }: Change,
  current: Quantity,
): Quantity {
  if (compareQuantities(after, current) >= 0) return after
  if (compareQuantities(before, current) < 0) return current
  const listOthers: ListObjects = (kind) => listObjects(kind).filter(({ metadata }) => metadata.uid !== uid)
  const largest = calculateUsage(account.quota.spec, [key], listOthers).get(key) ?? ZERO
  return compareQuantities(after, largest) > 0 ? after : largest
}

const atLeastZero = (amount: Quantity): Quantity => (amount.nanos < 0n ? ZERO : amount)

interface Excess {
  readonly key: string
  readonly requested: Quantity
  readonly used: Quantity
  readonly limited: Quantity
}

/** Returns `exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10`. */
function describeExcesses(name: string, excesses: readonly Excess[]): string {
  const sorted = [...excesses].sort((a, b) => (a.key < b.key ? -1 : 1))
  const formatPart = (field: 'requested' | 'used' | 'limited') =>
    `${field}: ${sorted.map((excess) => `${excess.key}=${formatQuantity(excess[field])}`).join(',')}`
  return `exceeded quota: ${name}, ${formatPart('requested')}, ${formatPart('used')}, ${formatPart('limited')}`
}
