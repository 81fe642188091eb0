// LimitRange items for claims: of type PersistentVolumeClaim, or of type Container with nothing but iops and throughput.
// Requests count; limits exist for iops and throughput alone. A claim that asks for no iops is not made to by a bound.

import type { PersistentVolumeClaim } from '../kinds/claim/claim-schema.ts'
import { limitsClaims } from '../kinds/limit-range/limit-range.ts'
import type { LimitRange, LimitRangeItem } from '../kinds/limit-range/limit-range-schema.ts'
import { amountOf, isIoResource, withClaimIoInBytes } from '../kinds/shared/provisioned-io.ts'
import { compareQuantities, isQuantity, parseQuantity, type Quantity } from '../quantity.ts'
import { tooFarApart, tooLittle, tooMuchRequested } from './bounds.ts'

const TYPE = 'PersistentVolumeClaim'

/** Gives a new claim what it leaves open, except what its attributes class says (`fromClass`). */
export function applyClaimDefaults(
  claim: PersistentVolumeClaim,
  range: Readonly<LimitRange>,
  fromClass: (name: string) => boolean,
): void {
  if (claim.spec) claim.spec = withClaimIoInBytes(claim.spec) // as the range has it: 100 (MiB/s) is more than 50Mi
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
  // A claim that asks for more than the usual limit means it: max has the last word, not default.
  const fits = limit !== undefined && isQuantity(request) && compareQuantities(request, limit) <= 0
  if (isIoResource(name) && (fits || amountOf(limits, name) !== undefined)) {
    resources.limits = { ...limits, [name]: limit as string }
  }
  claim.spec = { ...claim.spec, resources }
}

/**
 * What is wrong with a claim by this range, one sentence each. Of a claim that exists (`old`), what comes closer to a bound
 * or stays as it was is not: the range may be younger, and a growth that fails must not be held where it is.
 */
export function claimViolations(
  { spec }: PersistentVolumeClaim,
  range: Readonly<LimitRange>,
  old?: PersistentVolumeClaim,
): string[] {
  const requested = (name: string) => quantityIn(spec?.resources?.requests, name)
  const limited = (name: string) => (isIoResource(name) ? quantityIn(spec?.resources?.limits, name) : undefined)
  const bounded = (name: string) => ({ type: TYPE, name, request: requested(name), limit: limited(name) })
  const isOpen = (name: string) => isIoResource(name) && requested(name) === undefined
  const { requests: requestsBefore, limits: limitsBefore } = old?.spec?.resources ?? {}
  const change = (name: string) => order(requested(name), quantityIn(requestsBefore, name))
  const isNoMore = (name: string) => [-1, 0].includes(change(name))
  const isNoLess = (name: string) => [0, 1].includes(change(name))
  const isSame = (name: string) => change(name) === 0 && order(limited(name), quantityIn(limitsBefore, name)) === 0
  return itemsOf(range)
    .flatMap(({ min, max, maxLimitRequestRatio }) => [
      ...entries(min).map(([name, amount]) =>
        isOpen(name) || isNoLess(name) ? undefined : tooLittle(bounded(name), amount),
      ),
      ...entries(max).map(([name, amount]) =>
        isOpen(name) || isNoMore(name) ? undefined : tooMuchRequested(bounded(name), amount),
      ),
      ...entries(maxLimitRequestRatio).map(([name, ratio]) =>
        requested(name) && limited(name) && !isSame(name) ? tooFarApart(bounded(name), ratio) : undefined,
      ),
    ])
    .filter((violation) => violation !== undefined)
}

/** Not a number where there is nothing to compare with. */
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
