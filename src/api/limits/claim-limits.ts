// Applies LimitRange items to claims: items of type PersistentVolumeClaim, and items of type Container that contain only
// iops and throughput. A claim without a request for iops or throughput does not violate a bound on it.

import type { PersistentVolumeClaim } from '../kinds/claim/claim-schema.ts'
import { limitsClaims } from '../kinds/limit-range/limit-range.ts'
import type { LimitRange, LimitRangeItem } from '../kinds/limit-range/limit-range-schema.ts'
import { amountOf, isIoResource, withClaimIoInBytes } from '../kinds/shared/provisioned-io.ts'
import { compareQuantities, isQuantity, parseQuantity, type Quantity } from '../quantity.ts'
import { describeMinViolation, describeRatioViolation, describeRequestMaxViolation } from './bounds.ts'

const CLAIM_TYPE = 'PersistentVolumeClaim'

/** Sets the default requests and limits of a new claim. `isSetByClass` returns whether the attributes class sets a resource. */
export function applyClaimDefaults(
  claim: PersistentVolumeClaim,
  range: Readonly<LimitRange>,
  isSetByClass: (name: string) => boolean,
): void {
  if (claim.spec) claim.spec = withClaimIoInBytes(claim.spec) // ranges are in bytes/s, so 100 (MiB/s) is more than 50Mi
  for (const item of itemsOf(range)) {
    const names = new Set([...Object.keys(item.defaultRequest ?? {}), ...Object.keys(item.default ?? {})])
    for (const name of names) {
      if (!isIoResource(name) && name !== 'storage') continue
      if (isIoResource(name) && isSetByClass(name)) continue
      setDefaults(claim, name, item)
    }
  }
}

function setDefaults(claim: PersistentVolumeClaim, name: string, item: LimitRangeItem): void {
  const { requests = {}, limits = {} } = claim.spec?.resources ?? {}
  const defaultLimit = amountOf(item.default, name)
  const request =
    amountOf(requests, name) ?? amountOf(limits, name) ?? amountOf(item.defaultRequest, name) ?? defaultLimit
  if (request === undefined) return
  const resources = { ...claim.spec?.resources, requests: { ...requests, [name]: request } }
  const limit = amountOf(limits, name) ?? defaultLimit
  // The default limit is not set on a claim that requests more; max still applies.
  const isWithinLimit = limit !== undefined && isQuantity(request) && compareQuantities(request, limit) <= 0
  if (isIoResource(name) && (isWithinLimit || amountOf(limits, name) !== undefined)) {
    resources.limits = { ...limits, [name]: limit as string }
  }
  claim.spec = { ...claim.spec, resources }
}

/**
 * Returns one message per violation of a range by a claim. An update of an existing claim (`old`) that keeps a request or
 * moves it towards a min or max does not violate it: the range may be newer than the claim, and the request of a failed
 * expansion can then be lowered. A limit-to-request ratio is checked if the request or the limit changes.
 */
export function findClaimViolations(
  { spec }: PersistentVolumeClaim,
  range: Readonly<LimitRange>,
  old?: PersistentVolumeClaim,
): string[] {
  const requestOf = (name: string) => quantityIn(spec?.resources?.requests, name)
  const limitOf = (name: string) => (isIoResource(name) ? quantityIn(spec?.resources?.limits, name) : undefined)
  const resourceOf = (name: string) => ({ type: CLAIM_TYPE, name, request: requestOf(name), limit: limitOf(name) })
  const isUnset = (name: string) => isIoResource(name) && requestOf(name) === undefined
  const { requests: oldRequests, limits: oldLimits } = old?.spec?.resources ?? {}
  const compareWithOld = (name: string) => compareOptional(requestOf(name), quantityIn(oldRequests, name))
  const isNotRaised = (name: string) => [-1, 0].includes(compareWithOld(name))
  const isNotLowered = (name: string) => [0, 1].includes(compareWithOld(name))
  const isUnchanged = (name: string) =>
    compareWithOld(name) === 0 && compareOptional(limitOf(name), quantityIn(oldLimits, name)) === 0
  return itemsOf(range)
    .flatMap(({ min, max, maxLimitRequestRatio }) => [
      ...sortedEntries(min).map(([name, amount]) =>
        isUnset(name) || isNotLowered(name) ? undefined : describeMinViolation(resourceOf(name), amount),
      ),
      ...sortedEntries(max).map(([name, amount]) =>
        isUnset(name) || isNotRaised(name) ? undefined : describeRequestMaxViolation(resourceOf(name), amount),
      ),
      ...sortedEntries(maxLimitRequestRatio).map(([name, ratio]) =>
        requestOf(name) && limitOf(name) && !isUnchanged(name)
          ? describeRatioViolation(resourceOf(name), ratio)
          : undefined,
      ),
    ])
    .filter((violation) => violation !== undefined)
}

/** Compares two amounts. Returns NaN if one of them is absent. */
const compareOptional = (newAmount: Quantity | undefined, oldAmount: Quantity | undefined): number =>
  newAmount && oldAmount ? compareQuantities(newAmount, oldAmount) : Number.NaN

const itemsOf = (range: Readonly<LimitRange>): readonly LimitRangeItem[] =>
  range.spec?.limits.filter(limitsClaims) ?? []

const quantityIn = (list: Record<string, string> | undefined, name: string): Quantity | undefined => {
  const amount = amountOf(list, name)
  return amount === undefined ? undefined : parseQuantity(amount)
}

const sortedEntries = (amounts: Record<string, string> = {}): [string, string][] =>
  Object.entries(amounts).sort(([a], [b]) => (a < b ? -1 : 1))
