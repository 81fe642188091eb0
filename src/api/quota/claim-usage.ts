// What a claim asks for: storage, iops and throughput. Each counts at the largest of what is requested and what was
// promised before (both allocated fields), so that growing and shrinking quickly never frees quota.
//   limits.iops     sums this over the namespace       requests.iops     bounds each single claim
import { claimClassName } from '../kinds/class-names.ts'
import { amountOf, IO_RESOURCES } from '../kinds/provisioned-io.ts'
import { compareQuantities, parseQuantity, type Quantity, quantityIsInteger, quantityToBytes } from '../quantity.ts'
import type { PersistentVolumeClaim } from '../types/claim.ts'

const NANOS = 1_000_000_000n

export const CLASS_SUFFIX = '.storageclass.storage.k8s.io/'

export function claimAmounts(claim: PersistentVolumeClaim): [string, Quantity][] {
  const amounts: [string, Quantity][] = []
  const className = claimClassName(claim)
  if (className) amounts.push([`${className}${CLASS_SUFFIX}persistentvolumeclaims`, parseQuantity('1')])
  const storage = heldOf(claim, 'storage')
  if (storage) {
    amounts.push(['requests.storage', storage])
    if (className) amounts.push([`${className}${CLASS_SUFFIX}requests.storage`, storage])
  }
  for (const name of IO_RESOURCES) {
    const held = withProvided(heldOf(claim, name), claim, name)
    if (held) amounts.push([`limits.${name}`, held], [`requests.${name}`, held])
  }
  return amounts
}

/** Keys that bound the largest single claim instead of the sum. */
export const isLargestKey = (key: string): boolean => LARGEST_KEYS.includes(key)
const LARGEST_KEYS = IO_RESOURCES.map((name) => `requests.${name}`)

function heldOf({ spec, status }: PersistentVolumeClaim, name: string): Quantity | undefined {
  const lists = [spec?.resources?.requests, spec?.allocatedResources, status?.allocatedResources]
  let held: Quantity | undefined
  for (const list of lists) {
    const amount = amountOf(list, name)
    if (amount === undefined) continue
    const whole = wholeUnits(parseQuantity(amount))
    if (!held || compareQuantities(whole, held) > 0) held = whole
  }
  return held
}

/** Until the driver has confirmed less, what it provides to a claim that asks for it counts as well. */
function withProvided(
  held: Quantity | undefined,
  { status }: PersistentVolumeClaim,
  name: string,
): Quantity | undefined {
  const provided = amountOf(status?.capacity, name)
  if (!held || provided === undefined) return held
  const whole = wholeUnits(parseQuantity(provided))
  return compareQuantities(whole, held) > 0 ? whole : held
}

/** Nobody can be given part of a byte: 1001m is charged as 2. */
const wholeUnits = (amount: Quantity): Quantity =>
  quantityIsInteger(amount) ? amount : { nanos: quantityToBytes(amount) * NANOS, format: amount.format }
