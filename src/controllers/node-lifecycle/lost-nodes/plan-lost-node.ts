// Plans the phase of a lost node, with its taints and conditions. Pure. read-facts.ts reads the facts;
// reconcile-lost-node.ts applies the plan.
//
//   phase        entered when                                                      conditions that are True
//   InService    the node reports, and has no quarantine taint                     none
//   Unreachable  its heartbeats are missing                                        Unreachable
//   Fenced       an administrator has confirmed that the machine is off, even if   Unreachable, Fenced
//                the out-of-service taint was removed before the node returned
//   Lost         no attachment and no pod that must leave is left on the node      Unreachable, Fenced, Lost
//   Cleaned      its lease and its capacity objects are deleted, and no claim      Unreachable, Fenced, Lost, Cleaned
//                waits for a volume on it
//   Quarantined  the fenced node reports again; its agent has not unmounted the    Fenced, Quarantined
//                volumes of removed pods
//
// A fenced node that reports again stays Quarantined until its agent has confirmed this fence and unmounted the volumes
// of removed pods. Then it is InService.

import {
  isConfirmedOff,
  isOutOfService,
  OUT_OF_SERVICE_TAINT,
  QUARANTINE_TAINT,
  quarantineOf,
  RELEASED_FENCE,
} from '../../../api/kinds/node/fencing.ts'
import type { Node, Taint } from '../../../api/kinds/node/node-schema.ts'
import { type NodeCondition, readyConditionOf } from '../conditions.ts'

export const LOST_NODE_CONDITIONS = ['Unreachable', 'Fenced', 'Lost', 'Cleaned', 'Quarantined'] as const
export type LostNodeCondition = (typeof LOST_NODE_CONDITIONS)[number]
export type NodePhase = 'InService' | LostNodeCondition

const TRUE_CONDITIONS: Readonly<Record<NodePhase, readonly LostNodeCondition[]>> = {
  InService: [],
  Unreachable: ['Unreachable'],
  Fenced: ['Unreachable', 'Fenced'],
  Lost: ['Unreachable', 'Fenced', 'Lost'],
  Cleaned: ['Unreachable', 'Fenced', 'Lost', 'Cleaned'],
  Quarantined: ['Fenced', 'Quarantined'],
}

export interface LostNodeFacts {
  readonly node: Readonly<Node>
  /** Whether neither the lease nor the status was written for the grace period, by the clock of this process. */
  readonly isSilent: boolean
  /** Pods of the node that do not tolerate its taints, or are being deleted. */
  readonly leavingPodCount: number
  readonly attachmentCount: number
  /** The lease of the node, capacity objects that select no other node, and claims that wait for a volume on it. */
  readonly ownObjectCount: number
  /** Volumes that the node reports to be in use and that none of its pods use. */
  readonly staleVolumes: readonly string[]
}

export interface LostNodePlan {
  readonly phase: NodePhase
  readonly message: string
  /** The taints to write; undefined if the node has them. */
  readonly taints?: readonly Taint[]
  /** The conditions to write. */
  readonly conditions: readonly NodeCondition[]
  /** Whether the lease and the capacity objects of the node are to be deleted, and the claims released. */
  readonly removesOwnObjects: boolean
}

export function planLostNode(facts: LostNodeFacts, { now, fenceId }: { now: string; fenceId: string }): LostNodePlan {
  const { phase, message } = choosePhase(facts)
  const taints = planTaints(facts.node, phase, now, fenceId)
  return {
    phase,
    message,
    ...(taints ? { taints } : {}),
    conditions: planConditions(facts.node, phase, message, now),
    removesOwnObjects:
      facts.isSilent && isConfirmedOff(facts.node) && (phase === 'Fenced' || phase === 'Lost' || phase === 'Cleaned'),
  }
}

function choosePhase(facts: LostNodeFacts): Pick<LostNodePlan, 'phase' | 'message'> {
  const { node, leavingPodCount, attachmentCount, ownObjectCount } = facts
  const ready = readyConditionOf(node)?.status
  const fence = quarantineOf(node)
  if (ready === 'True') {
    // A taint on a node that has never stopped reporting only evicts its pods, as in Kubernetes.
    if (fence === undefined) return { phase: 'InService', message: 'the node reports' }
    const quarantineReason = explainQuarantine(facts, fence)
    return quarantineReason === undefined
      ? { phase: 'InService', message: 'the node has returned and has unmounted the volumes of removed pods' }
      : { phase: 'Quarantined', message: quarantineReason }
  }
  if (!isOutOfService(node)) {
    const silence = 'the node has stopped reporting; its pods may still run and write to their volumes'
    if (fence !== undefined)
      return {
        phase: 'Fenced',
        message: `${silence}. The taint ${OUT_OF_SERVICE_TAINT} was removed before the node returned`,
      }
    if (ready !== 'Unknown') return { phase: 'InService', message: 'the node reports, or has no agent' }
    const command = `stowage node fence ${node.metadata.name} --confirm-off`
    return { phase: 'Unreachable', message: `${silence}. After the machine is powered off, run: ${command}` }
  }
  const remaining = [count(leavingPodCount, 'pod'), count(attachmentCount, 'attachment')].filter(Boolean)
  if (remaining.length > 0)
    return {
      phase: 'Fenced',
      message: `the machine is confirmed to be off; waiting for the removal of ${remaining.join(' and ')} of the node`,
    }
  if (!isConfirmedOff(node))
    return {
      phase: 'Fenced',
      message: "the machine is confirmed to be off; waiting for the node's Ready condition to become Unknown",
    }
  return ownObjectCount > 0
    ? {
        phase: 'Lost',
        message: `the machine is confirmed to be off; waiting for the deletion or release of ${count(ownObjectCount, 'object')} of the node`,
      }
    : { phase: 'Cleaned', message: 'the machine is confirmed to be off, and all objects of the node are deleted' }
}

const count = (amount: number, noun: string): string =>
  amount === 0 ? '' : `${amount} ${noun}${amount === 1 ? '' : 's'}`

/** Returns the reason why a node that reports again must stay in quarantine, or undefined if it may leave. */
function explainQuarantine({ node, leavingPodCount, staleVolumes }: LostNodeFacts, fence: string): string | undefined {
  if (staleVolumes.length > 0)
    return `the node has returned and still uses volumes of pods that were removed: ${staleVolumes.slice(0, NAMES_MAX).join(', ')}`
  if (leavingPodCount > 0) return `the node has returned and is shutting down ${count(leavingPodCount, 'deleted pod')}`
  if (node.metadata.annotations?.[RELEASED_FENCE] !== fence)
    return 'the node has returned; waiting until its agent has unmounted the volumes of removed pods'
  return undefined
}

const NAMES_MAX = 5

function planTaints(node: Readonly<Node>, phase: NodePhase, now: string, fenceId: string): Taint[] | undefined {
  const taints = node.spec?.taints ?? []
  const isFenceTaint = ({ key }: Taint) => key === QUARANTINE_TAINT || key === OUT_OF_SERVICE_TAINT
  if (phase === 'InService')
    return quarantineOf(node) === undefined ? undefined : taints.filter((taint) => !isFenceTaint(taint))
  if (phase === 'Unreachable' || quarantineOf(node) !== undefined) return undefined
  return [...taints, { key: QUARANTINE_TAINT, value: fenceId, effect: 'NoSchedule', timeAdded: now }]
}

/** Writes a condition when its status changes, and never adds one that is False. */
function planConditions(node: Readonly<Node>, phase: NodePhase, message: string, now: string): NodeCondition[] {
  return LOST_NODE_CONDITIONS.flatMap((type) => {
    const existing = node.status?.conditions?.find((condition) => condition.type === type)
    const status = TRUE_CONDITIONS[phase].includes(type) ? 'True' : 'False'
    if (existing ? existing.status === status : status === 'False') return []
    return [{ type, status, reason: phase, message, lastTransitionTime: now }]
  })
}

/** Returns the phase that the conditions of the node show. */
export function phaseOf(node: Readonly<Node>): NodePhase {
  const isTrue = (type: LostNodeCondition) =>
    node.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false
  return (['Quarantined', 'Cleaned', 'Lost', 'Fenced', 'Unreachable'] as const).find(isTrue) ?? 'InService'
}
