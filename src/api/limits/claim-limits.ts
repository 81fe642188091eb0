// Applies LimitRange items to claims: those of type PersistentVolumeClaim, and those of type Container that contain only
// iops and throughput. Requests are compared; limits exist for iops and throughput only. A bound on iops does not force a
// claim to request iops.

import type { PersistentVolumeClaim } from '../kinds/claim/claim-schema.ts'
import { limitsClaims } from '../kinds/limit-range/limit-range.ts'
import type { LimitRange, LimitRangeItem } from '../kinds/limit-range/limit-range-schema.ts'
import { amountOf, isIoResource, withClaimIoInBytes } from '../kinds/shared/provisioned-io.ts'
import { compareQuantities, isQuantity, parseQuantity, type Quantity } from '../quantity.ts'
import { belowMin, ratioAboveMax, requestAboveMax } from './bounds.ts'

const TYPE = 'PersistentVolumeClaim'

/** Sets the default requests and limits of a new claim, except those that its attributes class sets (`fromClass`). */
export function applyClaimDefaults(
  claim: PersistentVolumeClaim,
  range: Readonly<LimitRange>,
  fromClass: (name: string) => boolean,
): void {
  if (claim.spec) claim.spec = withClaimIoInBytes(claim.spec) // the unit of the range: 100 (MiB/s) is more than 50Mi
  for (const item of itemsOf(range)) {
    const names = new Set([...Object.keys(item.defaultRequest ?? {}), ...Object.keys(item.default ?? {})])
    for (const name of names) {
      if (!isIoResource(name) && name !== 'storage') continue
      if (isIoResource(name) && fromClass(name)) continue
      fillIn(claim, name, item)
    }
  }
}

function fillIn(claim: PersistentVolumeClaim, name: string, item: LimitRangeItem): void {
  const { requests = {}, limits = {} } = claim.spec?.resources ?? {}
  const byDefault = amountOf(item.default, name)
  const request = amountOf(requests, name) ?? amountOf(limits, name) ?? amountOf(item.defaultRequest, name) ?? byDefault
  if (request === undefined) return
  const resources = { ...claim.spec?.resources, requests: { ...requests, [name]: request } }
  const limit = amountOf(limits, name) ?? byDefault
  // A claim that requests more than the default limit gets no default limit; max still applies.
  const fits = limit !== undefined && isQuantity(request) && compareQuantities(request, limit) <= 0
  if (isIoResource(name) && (fits || amountOf(limits, name) !== undefined)) {
    resources.limits = { ...limits, [name]: limit as string }
  }
  claim.spec = { ...claim.spec, resources }
}

/**
 * The violations of a range by a claim, one message each. For an existing claim (`old`), an amount that stays the same or
 * moves towards the bound is no violation: the range may be newer than the claim, and it must stay possible to lower the
 * request of a failed expansion.
 */
export function claimViolations(
  { spec }: PersistentVolumeClaim,
  range: Readonly<LimitRange>,
  old?: PersistentVolumeClaim,
): string[] {
  const requested = (name: string) => quantityIn(spec?.resources?.requests, name)
  const limited = (name: string) => (isIoResource(name) ? quantityIn(spec?.resources?.limits, name) : undefined)
  const bounded = (name: string) => ({ type: TYPE, name, request: requested(name), limit: limited(name) })
  const isUnset = (name: string) => isIoResource(name) && requested(name) === undefined
  const { requests: requestsBefore, limits: limitsBefore } = old?.spec?.resources ?? {}
  const change = (name: string) => order(requested(name), quantityIn(requestsBefore, name))
  const isNoMore = (name: string) => [-1, 0].includes(change(name))
  const isNoLess = (name: string) => [0, 1].includes(change(name))
  const isSame = (name: string) => change(name) === 0 && order(limited(name), quantityIn(limitsBefore, name)) === 0
  return itemsOf(range)
    .flatMap(({ min, max, maxLimitRequestRatio }) => [
      ...entries(min).map(([name, amount]) =>
        isUnset(name) || isNoLess(name) ? undefined : belowMin(bounded(name), amount),
      ),
      ...entries(max).map(([name, amount]) =>
        isUnset(name) || isNoMore(name) ? undefined : requestAboveMax(bounded(name), amount),
      ),
      ...entries(maxLimitRequestRatio).map(([name, ratio]) =>
        requested(name) && limited(name) && !isSame(name) ? ratioAboveMax(bounded(name), ratio) : undefined,
      ),
    ])
    .filter((violation) => violation !== undefined)
}

/** NaN if one of the amounts is absent. */
const order = (now: Quantity | undefined, before: Quantity | undefined): number =>
  now && before ? compareQuantities(now, before) : Number.NaN

const itemsOf = (range: Readonly<LimitRange>): readonly LimitRangeItem[] =>
  range.spec?.limits.filter(limitsClaims) ?? []

const quantityIn = (list: Record<string, string> | undefined, name: string): Quantity | undefined => {
  const amount = amountOf(list, name)
  return amount === undefined ? undefined : parseQuantity(amount)
}

const entries = (amounts: Record<string, string> = {}): [string, string][] =>
  Object.entries(amounts).sort(([a], [b]) => (a < b ? -1 : 1))
