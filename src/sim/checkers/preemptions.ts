// Rule `wrong preemption`: the scheduler deletes a pod only for a pod of higher priority that may preempt, is still waiting, and
// fits on the node once the pods of lower priority have left. Recomputed from the store, without the scheduler's code.
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { keyOfObject } from '../../client/index.ts'
import type { ObjectOf } from '../engine/view.ts'
import type { CheckContext } from './context.ts'

/** The scheduler may not have received changes this recent. */
const PROPAGATION_MS = 120_000

const PREEMPTED_BY = /^Preempted by pod (\S+) on node (\S+)$/

export function checkPreemptions({ system, view, report }: CheckContext): void {
  const { simulation } = system.cluster
  /** All pods that ever existed, by UID: a preemptor may no longer exist when its event is stored. */
  const pods = new Map<string, ObjectOf<'pod'>>()
  /** When a pod was last placed on the node or the node last changed, by node. */
  const changedMs = new Map<string, number>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of === 'node') changedMs.set(change.key, simulation.nowMs)
      if (change.of !== 'pod' || !change.next) continue
      const { next, old } = change
      pods.set(next.metadata.uid ?? '', next)
      const nodeName = next.spec?.nodeName
      if (nodeName && old?.spec?.nodeName !== nodeName) changedMs.set(nodeName, simulation.nowMs)
      const isDeleted = next.metadata.deletionTimestamp && !old?.metadata.deletionTimestamp
      if (isDeleted && nodeName && isPreempted(next)) checkDeletion(next, nodeName)
    }
    for (const change of changes) {
      if (change.of !== 'event' || change.next?.reason !== 'Preempted') continue
      checkEvent(change.next)
    }
  })

  function checkEvent({ involvedObject, message = '' }: ObjectOf<'event'>): void {
    const [, preemptorUid = '', nodeName = ''] = PREEMPTED_BY.exec(message) ?? []
    const victim = pods.get(involvedObject?.uid ?? '')
    const preemptor = pods.get(preemptorUid)
    if (!victim) return
    const text = `pod ${keyOfObject(victim)} was preempted on ${nodeName}`
    if (!preemptor) {
      report('wrong preemption', `${text} for the pod ${preemptorUid}, which never existed`)
      return
    }
    const priorities = `for ${keyOfObject(preemptor)} of priority ${priorityOf(preemptor)}`
    if (priorityOf(victim) >= priorityOf(preemptor))
      report('wrong preemption', `${text} ${priorities}, although its own priority is ${priorityOf(victim)}`)
    if (preemptor.spec?.preemptionPolicy === 'Never')
      report('wrong preemption', `${text} ${priorities}, whose preemptionPolicy is Never`)
  }

  /** Checks that some waiting pod of higher priority fits on the node without the pods of lower priority. */
  function checkDeletion(victim: ObjectOf<'pod'>, nodeName: string): void {
    const node = view.nodes.get(nodeName)
    if (!node || simulation.nowMs - (changedMs.get(nodeName) ?? 0) <= PROPAGATION_MS) return
    const mayPreempt = (pod: ObjectOf<'pod'>) =>
      !pod.spec?.nodeName && priorityOf(pod) > priorityOf(victim) && pod.spec?.preemptionPolicy !== 'Never'
    // A preemptor that was deleted after the decision counts too.
    const preemptors = [...pods.values()].filter(mayPreempt)
    if (preemptors.some((pod) => fitsWithoutLowerPods(pod, nodeName))) return
    report(
      'wrong preemption',
      `pod ${keyOfObject(victim)} was preempted on ${nodeName}, but no waiting pod fits there without the pods of lower priority`,
    )
  }

  function fitsWithoutLowerPods(pod: ObjectOf<'pod'>, nodeName: string): boolean {
    const node = view.nodes.get(nodeName)
    const { labels = {} } = node?.metadata ?? {}
    if (node?.spec?.unschedulable) return false
    if (Object.entries(pod.spec?.nodeSelector ?? {}).some(([key, value]) => labels[key] !== value)) return false
    const remaining = [...view.pods.values()].filter(
      (other) => other.spec?.nodeName === nodeName && !hasTerminated(other) && priorityOf(other) >= priorityOf(pod),
    )
    const used = [pod, ...remaining].reduce((total, other) => total + cpusOf(other), 0)
    return used <= Number(quantityToBytes(node?.status?.allocatable?.cpu ?? '0'))
  }
}

const isPreempted = ({ status }: ObjectOf<'pod'>): boolean =>
  status?.conditions?.some(({ type, reason }) => type === 'DisruptionTarget' && reason === 'PreemptionByScheduler') ??
  false

export const priorityOf = ({ spec }: ObjectOf<'pod'>): number => spec?.priority ?? 0

export function cpusOf({ spec }: ObjectOf<'pod'>): number {
  const amounts = spec?.containers.map(({ resources }) => resources?.requests?.cpu ?? '0') ?? []
  return amounts.reduce((total, text) => total + Number(quantityToBytes(text)), 0)
}
