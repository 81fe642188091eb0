// Computes a claim's usage: storage, iops and throughput, and the count and storage of its class. Each amount is the maximum of
// the request, both allocatedResources fields and the retained amount (for iops and throughput also of the capacity), so that
// lowering or removing a request does not free quota that is still allocated.
//   limits.iops     limits the sum over the namespace       requests.iops     limits each claim separately

import type { PersistentVolumeClaim } from '../kinds/claim/claim-schema.ts'
import { retainedIoOf } from '../kinds/claim/retained-io.ts'
import { claimClassName } from '../kinds/shared/class-names.ts'
import { amountOf, IO_RESOURCES, type ResourceList } from '../kinds/shared/provisioned-io.ts'
import { compareQuantities, isIntegerQuantity, parseQuantity, type Quantity, quantityToBytes } from '../quantity.ts'

const NANOS_PER_UNIT = 1_000_000_000n

export const CLASS_SUFFIX = '.storageclass.storage.k8s.io/'

/** Adds the amounts of a claim to `usage`, by quota key. */
export function addClaimAmounts(claim: PersistentVolumeClaim, usage: Map<string, Quantity>): void {
  const className = claimClassName(claim)
  if (className) usage.set(`${className}${CLASS_SUFFIX}persistentvolumeclaims`, parseQuantity('1'))
  const storage = chargedAmountOf(claim, 'storage')
  if (storage) {
    usage.set('requests.storage', storage)
    if (className) usage.set(`${className}${CLASS_SUFFIX}requests.storage`, storage)
  }
  for (const name of IO_RESOURCES) {
    const amount = includeCapacity(chargedAmountOf(claim, name), claim, name)
    if (!amount) continue
    usage.set(`limits.${name}`, amount)
    usage.set(`requests.${name}`, amount)
  }
}

/** Returns whether the key limits each claim separately instead of the sum. */
export const isPerClaimKey = (key: string): boolean => PER_CLAIM_KEYS.includes(key)
const PER_CLAIM_KEYS = IO_RESOURCES.map((name) => `requests.${name}`)

function chargedAmountOf(claim: PersistentVolumeClaim, name: string): Quantity | undefined {
  const { spec, status } = claim
  const lists = [spec?.resources?.requests, spec?.allocatedResources, status?.allocatedResources, retainedIoOf(claim)]
  return lists.map((list) => roundedAmountOf(list, name)).reduce(largestOf)
}

const largestOf = (a: Quantity | undefined, b: Quantity | undefined): Quantity | undefined =>
  a && b ? (compareQuantities(b, a) > 0 ? b : a) : (a ?? b)

/** Returns the maximum of the amount and the capacity, which is charged until the driver confirms a lower amount. */
function includeCapacity(
  amount: Quantity | undefined,
  { status }: PersistentVolumeClaim,
  name: string,
): Quantity | undefined {
  return amount && largestOf(amount, roundedAmountOf(status?.capacity, name))
}

function roundedAmountOf(list: ResourceList | undefined, name: string): Quantity | undefined {
  const amount = amountOf(list, name)
  return amount === undefined ? undefined : roundUp(parseQuantity(amount))
}

/** Rounds up to integers: 1001m is charged as 2. */
const roundUp = (amount: Quantity): Quantity =>
  isIntegerQuantity(amount) ? amount : { nanos: quantityToBytes(amount) * NANOS_PER_UNIT, format: amount.format }
