// The condition ReadyForFirstConsumer of claims whose class has the binding mode WaitForFirstConsumer. Tools that create claims
// wait for it, because such a claim is not bound before a pod uses it. The write that binds the claim removes the condition:
// clients expect a bound claim without conditions unless its volume is being expanded or modified.
//
//   status   reason                 when
//   True     WaitForFirstConsumer   the volume is provisioned or bound when a pod uses the claim
//   False    StorageClassNotFound   the class was deleted
//   False    ImmediateBinding       the class was recreated with immediate binding: no consumer is needed
//
// The API server sets the condition when it creates the claim (apiserver/admission). The binding controller (controllers/binding)
// updates it later, if possible in a write that it makes anyway.
import { timestamp } from '../../../base/timestamps.ts'
import type { PersistentVolumeClaim } from './claim-schema.ts'

export const READY_FOR_FIRST_CONSUMER = 'ReadyForFirstConsumer'

type Claim = Readonly<PersistentVolumeClaim>
type Condition = NonNullable<NonNullable<PersistentVolumeClaim['status']>['conditions']>[number]

export interface Readiness {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

export const WAITS_FOR_FIRST_CONSUMER: Readiness = {
  status: 'True',
  reason: 'WaitForFirstConsumer',
  message: 'The volume is provisioned or bound when a pod uses the claim.',
}
export const CLASS_NOT_FOUND: Readiness = {
  status: 'False',
  reason: 'StorageClassNotFound',
  message: 'The class of the claim does not exist.',
}
export const BINDS_IMMEDIATELY: Readiness = {
  status: 'False',
  reason: 'ImmediateBinding',
  message: 'The class of the claim binds immediately: wait for the phase Bound.',
}

export const readinessOf = ({ status }: Claim): Condition | undefined =>
  status?.conditions?.find(({ type }) => type === READY_FOR_FIRST_CONSUMER)

export const conditionsWithoutReadiness = ({ status }: Claim): Condition[] =>
  status?.conditions?.filter(({ type }) => type !== READY_FOR_FIRST_CONSUMER) ?? []

/**
 * Returns the complete new list of conditions, or undefined if the claim already has the condition. If `nowMs` is
 * absent, a transition has no time.
 */
export function conditionsWith(claim: Claim, readiness: Readiness, nowMs?: number): Condition[] | undefined {
  const current = readinessOf(claim)
  if (current?.status === readiness.status && current.reason === readiness.reason) return undefined
  const now = nowMs === undefined ? undefined : timestamp(nowMs)
  const lastTransitionTime = current?.status === readiness.status ? (current.lastTransitionTime ?? now) : now
  const time = lastTransitionTime === undefined ? {} : { lastTransitionTime }
  return [...conditionsWithoutReadiness(claim), { type: READY_FOR_FIRST_CONSUMER, ...readiness, ...time }]
}
