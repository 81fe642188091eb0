// The usage of a claim: storage, iops and throughput. Each is the maximum of the request and both allocatedResources
// fields, so that raising and lowering a request quickly never frees quota.
//   limits.iops     limits the sum over the namespace       requests.iops     limits each single claim

import type { PersistentVolumeClaim } from '../kinds/claim/claim-schema.ts'
import { claimClassName } from '../kinds/shared/class-names.ts'
import { amountOf, IO_RESOURCES, type ResourceList } from '../kinds/shared/provisioned-io.ts'
import { compareQuantities, parseQuantity, type Quantity, quantityIsInteger, quantityToBytes } from '../quantity.ts'

const NANOS = 1_000_000_000n

export const CLASS_SUFFIX = '.storageclass.storage.k8s.io/'

/** Adds the amounts by quota key. */
export function addClaimAmounts(claim: PersistentVolumeClaim, usage: Map<string, Quantity>): void {
  const className = claimClassName(claim)
  if (className) usage.set(`${className}${CLASS_SUFFIX}persistentvolumeclaims`, parseQuantity('1'))
  const storage = chargedOf(claim, 'storage')
  if (storage) {
    usage.set('requests.storage', storage)
    if (className) usage.set(`${className}${CLASS_SUFFIX}requests.storage`, storage)
  }
  for (const name of IO_RESOURCES) {
    const charged = withCapacity(chargedOf(claim, name), claim, name)
    if (!charged) continue
    usage.set(`limits.${name}`, charged)
    usage.set(`requests.${name}`, charged)
  }
}

/** Keys that limit the largest single claim instead of the sum. */
export const isLargestKey = (key: string): boolean => LARGEST_KEYS.includes(key)
const LARGEST_KEYS = IO_RESOURCES.map((name) => `requests.${name}`)

function chargedOf({ spec, status }: PersistentVolumeClaim, name: string): Quantity | undefined {
  const requested = wholeAmountOf(spec?.resources?.requests, name)
  return largestOf(
    largestOf(requested, wholeAmountOf(spec?.allocatedResources, name)),
    wholeAmountOf(status?.allocatedResources, name),
  )
}

const largestOf = (a: Quantity | undefined, b: Quantity | undefined): Quantity | undefined =>
  a && b ? (compareQuantities(b, a) > 0 ? b : a) : (a ?? b)

/** The capacity of a claim with a request counts as well, until the driver has confirmed a lower amount. */
function withCapacity(
  charged: Quantity | undefined,
  { status }: PersistentVolumeClaim,
  name: string,
): Quantity | undefined {
  return charged && largestOf(charged, wholeAmountOf(status?.capacity, name))
}

function wholeAmountOf(list: ResourceList | undefined, name: string): Quantity | undefined {
  const amount = amountOf(list, name)
  return amount === undefined ? undefined : wholeUnits(parseQuantity(amount))
}

/** Rounds up to integers: 1001m is charged as 2. */
const wholeUnits = (amount: Quantity): Quantity =>
  quantityIsInteger(amount) ? amount : { nanos: quantityToBytes(amount) * NANOS, format: amount.format }
