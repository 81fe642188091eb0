// What a claim asks for: storage, iops and throughput. Each counts at the largest of what is requested and what was
// promised before (both allocated fields), so that growing and shrinking quickly never frees quota.
//   limits.iops     sums this over the namespace       requests.iops     bounds each single claim

import type { PersistentVolumeClaim } from '../kinds/claim/claim-schema.ts'
import { claimClassName } from '../kinds/shared/class-names.ts'
import { amountOf, IO_RESOURCES, type ResourceList } from '../kinds/shared/provisioned-io.ts'
import { compareQuantities, parseQuantity, type Quantity, quantityIsInteger, quantityToBytes } from '../quantity.ts'

const NANOS = 1_000_000_000n

export const CLASS_SUFFIX = '.storageclass.storage.k8s.io/'

/** Adds them by quota key. */
export function addClaimAmounts(claim: PersistentVolumeClaim, usage: Map<string, Quantity>): void {
  const className = claimClassName(claim)
  if (className) usage.set(`${className}${CLASS_SUFFIX}persistentvolumeclaims`, parseQuantity('1'))
  const storage = heldOf(claim, 'storage')
  if (storage) {
    usage.set('requests.storage', storage)
    if (className) usage.set(`${className}${CLASS_SUFFIX}requests.storage`, storage)
  }
  for (const name of IO_RESOURCES) {
    const held = withProvided(heldOf(claim, name), claim, name)
    if (!held) continue
    usage.set(`limits.${name}`, held)
    usage.set(`requests.${name}`, held)
  }
}

/** Keys that bound the largest single claim instead of the sum. */
export const isLargestKey = (key: string): boolean => LARGEST_KEYS.includes(key)
const LARGEST_KEYS = IO_RESOURCES.map((name) => `requests.${name}`)

function heldOf({ spec, status }: PersistentVolumeClaim, name: string): Quantity | undefined {
  const requested = wholeAmountOf(spec?.resources?.requests, name)
  return largestOf(
    largestOf(requested, wholeAmountOf(spec?.allocatedResources, name)),
    wholeAmountOf(status?.allocatedResources, name),
  )
}

const largestOf = (a: Quantity | undefined, b: Quantity | undefined): Quantity | undefined =>
  a && b ? (compareQuantities(b, a) > 0 ? b : a) : (a ?? b)

/** Until the driver has confirmed less, what it provides to a claim that asks for it counts as well. */
function withProvided(
  held: Quantity | undefined,
  { status }: PersistentVolumeClaim,
  name: string,
): Quantity | undefined {
  return held && largestOf(held, wholeAmountOf(status?.capacity, name))
}

function wholeAmountOf(list: ResourceList | undefined, name: string): Quantity | undefined {
  const amount = amountOf(list, name)
  return amount === undefined ? undefined : wholeUnits(parseQuantity(amount))
}

/** Nobody can be given part of a byte: 1001m is charged as 2. */
const wholeUnits = (amount: Quantity): Quantity =>
  quantityIsInteger(amount) ? amount : { nanos: quantityToBytes(amount) * NANOS, format: amount.format }
