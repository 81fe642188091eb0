// Charges one write to one quota: computes the new usage from the object before and after the write, or the message of the
// rejection. Pure. Only an increase can exceed a quota, so while a quota is exceeded, objects can still be deleted, and
// updated without an increase.
import type { KubeObject } from '../kind.ts'
import { addQuantities, compareQuantities, formatQuantity, type Quantity, subtractQuantities } from '../quantity.ts'
import { calculateUsage, type ListObjects } from './calculate-usage.ts'
import { isPerClaimKey } from './claim-usage.ts'
import type { QuotaAccount } from './quota-account.ts'
import { isInScope } from './scopes.ts'
import { type GroupResource, usageOf, ZERO } from './usage.ts'

/** An object before and after a write; undefined if it does not exist. */
export interface ObjectWrite {
  readonly kind: GroupResource
  readonly oldObject: KubeObject | undefined
  readonly newObject: KubeObject | undefined
}

/** A change to the usage of one key. */
export interface Change {
  readonly key: string
  readonly oldAmount: Quantity
  readonly newAmount: Quantity
}

/** Returns a function that computes the changes for a quota. The object's usage is computed once for all quotas. */
export function createChangeCalculator({
  kind,
  oldObject,
  newObject,
}: ObjectWrite): (account: QuotaAccount) => readonly Change[] {
  const oldUsageByKey = usageOf(kind, oldObject)
  const newUsageByKey = usageOf(kind, newObject)
  return ({ quota: { spec }, limits }) => {
    let changes: Change[] | undefined
    let wasCounted: boolean | undefined
    let isCounted: boolean | undefined
    for (const key of limits.keys()) {
      const oldUsage = oldUsageByKey.get(key)
      const newUsage = newUsageByKey.get(key)
      if (!oldUsage && !newUsage) continue
      wasCounted ??= oldObject !== undefined && isInScope(spec, kind, oldObject)
      isCounted ??= newObject !== undefined && isInScope(spec, kind, newObject)
      const change = { key, oldAmount: (wasCounted && oldUsage) || ZERO, newAmount: (isCounted && newUsage) || ZERO }
      if (compareQuantities(change.oldAmount, change.newAmount) === 0) continue
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
  /** False for a status write: it reports usage that already exists, so a rejection would not reduce the usage. */
  readonly canReject: boolean
  /** The objects of the namespace before this write. */
  readonly listObjects: ListObjects
}

export type ChargeResult =
  | { readonly is: 'charged'; readonly account: QuotaAccount }
  | { readonly is: 'exceeded'; readonly message: string }

export function chargeQuota(charge: Charge): ChargeResult {
  const { account, changes, canReject } = charge
  const usedAmounts = currentUsage(charge)
  let excesses: Excess[] | undefined
  for (const change of changes) {
    const { key, oldAmount, newAmount } = change
    const currentAmount = usedAmounts.get(key) ?? ZERO
    const limit = account.limits.get(key) ?? ZERO
    const requestedAmount = isPerClaimKey(key) ? newAmount : subtractQuantities(newAmount, oldAmount)
    const updatedAmount = isPerClaimKey(key)
      ? computeLargestAmount(charge, change, currentAmount)
      : raiseToZero(addQuantities(currentAmount, requestedAmount))
    usedAmounts.set(key, updatedAmount)
    const chargedAmount = isPerClaimKey(key) ? newAmount : updatedAmount
    const isIncrease = compareQuantities(newAmount, oldAmount) > 0
    if (isIncrease && compareQuantities(chargedAmount, limit) > 0) {
      excesses ??= []
      excesses.push({ key, requested: requestedAmount, used: currentAmount, limited: limit })
    }
  }
  if (canReject && excesses) return { is: 'exceeded', message: describeExcesses(account.name, excesses) }
  return { is: 'charged', account: account.withUsage(usedAmounts) }
}

/** Returns the usage of all keys. Keys whose usage the account does not know are counted from the stored objects. */
function currentUsage({ account, listObjects }: Charge): Map<string, Quantity> {
  const { quota, limits, used: usedAmounts } = account
  if (usedAmounts.size === limits.size) return new Map(usedAmounts)
  const uncountedKeys = [...limits.keys()].filter((key) => !usedAmounts.has(key))
  const countedUsage = calculateUsage(quota.spec, uncountedKeys, listObjects)
  return new Map([...limits.keys()].map((key) => [key, usedAmounts.get(key) ?? countedUsage.get(key) ?? ZERO]))
}

/** Returns the largest amount after the write. Lists the other claims only if the largest claim shrinks or is deleted. */
function computeLargestAmount(
  { account, uid, listObjects }: Charge,
  { key, oldAmount, newAmount }: Change,
  currentAmount: Quantity,
): Quantity {
  if (compareQuantities(newAmount, currentAmount) >= 0) return newAmount
  if (compareQuantities(oldAmount, currentAmount) < 0) return currentAmount
  const listOtherObjects: ListObjects = (kind) => listObjects(kind).filter(({ metadata }) => metadata.uid !== uid)
  const largest = calculateUsage(account.quota.spec, [key], listOtherObjects).get(key) ?? ZERO
  return compareQuantities(newAmount, largest) > 0 ? newAmount : largest
}

const raiseToZero = (amount: Quantity): Quantity => (amount.nanos < 0n ? ZERO : amount)

interface Excess {
  readonly key: string
  readonly requested: Quantity
  readonly used: Quantity
  readonly limited: Quantity
}

/** Returns `exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10`. */
function describeExcesses(name: string, excesses: readonly Excess[]): string {
  const sortedExcesses = [...excesses].sort((a, b) => (a.key < b.key ? -1 : 1))
  const formatPart = (field: 'requested' | 'used' | 'limited') =>
    `${field}: ${sortedExcesses.map((excess) => `${excess.key}=${formatQuantity(excess[field])}`).join(',')}`
  return `exceeded quota: ${name}, ${formatPart('requested')}, ${formatPart('used')}, ${formatPart('limited')}`
}
