// Rule `growth`: automatic growth requests at most the maximum of the claim's policy, and only while no expansion is pending; it
// lowers a request only after the driver has rejected it, and never below the capacity; and a volume that grows
// automatically never gets larger than the maximum. Rule `quota` checks the charge. At rest, no rejected growth is left. Reads
// the annotations without the code of the controller. Applies to the workload `auto-grow` only.
import { quantityToBytes } from '../../api/quantity.ts'
import type { ObjectOf, View } from '../engine/view.ts'
import { type CheckContext, isDeleting, type Problem } from './context.ts'

const POLICY = 'stowage.dev/auto-grow'
const RECORD = 'stowage.dev/auto-grown'
const REJECTED_STATUS = 'ControllerResizeInfeasible'

export function checkGrowth({ view, report }: Pick<CheckContext, 'view' | 'report'>): void {
  /** Claims for which a user once requested more than their maximum: their volumes may be larger. */
  const uidsOfUserSizes = new Set<string>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'claim' || !change.next) continue
      const { old, next } = change
      const isGrowth = old !== undefined && recordOf(old) !== recordOf(next)
      if (!isGrowth && isAboveMaximum(next)) uidsOfUserSizes.add(next.metadata.uid ?? '')
      if (!old) continue
      if (isGrowth) checkRequest(change.key, old, next)
      checkCapacity(change.key, old, next)
    }
  })

  function checkRequest(key: string, old: ObjectOf<'claim'>, next: ObjectOf<'claim'>): void {
    const [from, to, capacity] = [requestOf(old), requestOf(next), capacityOf(old)]
    if (to > from) {
      // The policy in `old` is the one that the controller read: its patch has the resourceVersion as a precondition.
      const maximum = maximumOf(old)
      if (maximum === undefined) report('growth', `claim ${key} grew from ${from} to ${to} without a policy`)
      else if (to > maximum) report('growth', `claim ${key} grew to ${to}, beyond its maximum ${maximum}`)
      if (from > capacity || pendingStatusOf(old) !== undefined)
        report('growth', `claim ${key} grew to ${to} while an expansion from ${capacity} to ${from} was pending`)
    } else if (to < from) {
      if (pendingStatusOf(old) !== REJECTED_STATUS)
        report(
          'growth',
          `the request of claim ${key} was lowered from ${from} to ${to}, but the driver has not rejected it`,
        )
      if (to < capacity)
        report('growth', `the request of claim ${key} was lowered to ${to}, below its capacity ${capacity}`)
    }
  }

  function checkCapacity(key: string, old: ObjectOf<'claim'>, next: ObjectOf<'claim'>): void {
    const maximum = maximumInRecord(next)
    if (maximum === undefined || uidsOfUserSizes.has(next.metadata.uid ?? '')) return
    if (capacityOf(old) <= maximum && capacityOf(next) > maximum && capacityOf(old) > 0n)
      report('growth', `claim ${key} has ${capacityOf(next)}, beyond the maximum ${maximum} of its growth`)
  }
}

/** Returns the claims whose rejected growth was not lowered. */
export const findGrowthProblems = ({ claims }: Pick<View, 'claims'>): Problem[] =>
  [...claims].flatMap(([key, claim]): Problem[] => {
    const isRejected = pendingStatusOf(claim) === REJECTED_STATUS && requestOf(claim) > capacityOf(claim)
    const target = recordOf(claim)?.split(' ')[2]
    const isOwn = target !== undefined && target === claim.spec?.resources?.requests?.storage
    if (!isRejected || !isOwn || isDeleting(claim) || maximumOf(claim) === undefined) return []
    return [{ rule: 'growth', text: `the driver rejected the growth of claim ${key}, and its request was not lowered` }]
  })

const recordOf = ({ metadata }: ObjectOf<'claim'>): string | undefined => metadata.annotations?.[RECORD]
const pendingStatusOf = ({ status }: ObjectOf<'claim'>): string | undefined =>
  status?.allocatedResourceStatuses?.storage
const toBytes = (text: string | undefined): bigint => (text === undefined ? 0n : quantityToBytes(text))
const requestOf = ({ spec }: ObjectOf<'claim'>): bigint => toBytes(spec?.resources?.requests?.storage)
const capacityOf = ({ status }: ObjectOf<'claim'>): bigint => toBytes(status?.capacity?.storage)

/** Returns the maximum of the policy, or undefined if there is no valid policy. */
export function maximumOf({ metadata }: ObjectOf<'claim'>): bigint | undefined {
  const text = /(?:^|,)max=(\d+[GM]i)(?:,|$)/.exec(metadata.annotations?.[POLICY] ?? '')?.[1]
  return text === undefined ? undefined : quantityToBytes(text)
}

/** Returns the maximum of the growth that set the current request; undefined if a user has set it. */
function maximumInRecord(claim: ObjectOf<'claim'>): bigint | undefined {
  const [, , target, maximum] = recordOf(claim)?.split(' ') ?? []
  return maximum !== undefined && target === claim.spec?.resources?.requests?.storage
    ? quantityToBytes(maximum)
    : undefined
}

const isAboveMaximum = (claim: ObjectOf<'claim'>): boolean => {
  const maximum = maximumOf(claim)
  return maximum === undefined || requestOf(claim) > maximum
}
