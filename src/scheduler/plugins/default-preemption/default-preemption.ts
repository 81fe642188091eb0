// Preempts pods of lower priority for a pod that fits on no node: selects victims per node (select-victims.ts), chooses the node
// (choose-candidate.ts) and deletes the victims there (delete-victims.ts). The pod is then nominated for that node and waits
// until the victims have left. PodDisruptionBudgets are not considered.
import type { ObjectKey } from '../../../client/index.ts'
import type { NodeInfo } from '../../cluster/node-info.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import type { QueueingHint } from '../../framework/cluster-events.ts'
import {
  type NodeStatuses,
  type Plugin,
  type PluginHandle,
  type PostFilterResult,
  type RejectedAttempt,
  UNSIGNABLE,
} from '../../framework/plugin.ts'
import { SKIP, type Status, unresolvable } from '../../framework/status.ts'
import { noNodeFitsMessage } from '../../messages.ts'
import { writeNominatedNode } from '../../write-nominated-node.ts'
import { isEqualForScheduling } from '../shared-hints.ts'
import { type Candidate, chooseCandidate } from './choose-candidate.ts'
import { deleteVictims, PREEMPTION_BY_SCHEDULER } from './delete-victims.ts'
import { NO_VICTIMS, selectVictims } from './select-victims.ts'

/** The search for victims ends when it has found candidates on this many nodes: a tenth of them, but at least 100. */
const CANDIDATES_MIN = 100
const CANDIDATES_SHARE = 0.1

const NOT_HELPFUL = unresolvable({ type: 'NotHelpful', message: 'Preemption is not helpful for scheduling' })

export function createDefaultPreemption(handle: PluginHandle): Plugin<never> {
  const { cluster, clock, random, emit } = handle
  /** The UIDs of the pods for which victims are being deleted. */
  const preemptors = new Set<string>()
  /** UIDs of the victims whose deletion the server has accepted, by key. The cache may not show the deletion yet. */
  const deletedVictims = new Map<ObjectKey, string>()

  const isTerminating = ({ key, uid, pod }: PodInfo): boolean =>
    pod.metadata.deletionTimestamp !== undefined || deletedVictims.get(key) === uid

  const selectVictimsOn = (node: NodeInfo, { pod, active }: Pick<RejectedAttempt, 'pod' | 'active'>) =>
    selectVictims(node, {
      pod,
      active,
      nominatedPods: cluster.nominatedPodsBefore(pod, node.name),
      nowMs: clock.nowMs(),
    })

  /** Returns why the pod has to wait instead of preempting more pods, or undefined if it may preempt. */
  function explainWait(attempt: RejectedAttempt): string | undefined {
    const { pod, statuses } = attempt
    if (preemptors.has(pod.uid)) return TERMINATING_VICTIM
    const nodeName = cluster.nominatedPods.nodeOf(pod.key)
    const node = nodeName === undefined ? undefined : cluster.node(nodeName)
    if (!node || statuses.get(node)?.code === 'UnschedulableAndUnresolvable') return undefined
    if (hasTerminatingVictim(node, pod)) return TERMINATING_VICTIM
    const selection = selectVictimsOn(node, attempt)
    return selection.is === 'fits' && selection.victims.every(isTerminating) ? ATTACHED_VOLUMES : undefined
  }

  const hasTerminatingVictim = (node: NodeInfo, { priority }: PodInfo): boolean =>
    [...node.pods.values()].some((pod) => pod.priority < priority && isTerminating(pod) && isPreempted(pod))

  const isPreempted = ({ key, uid, pod }: PodInfo): boolean =>
    deletedVictims.get(key) === uid ||
    (pod.status?.conditions?.some(
      ({ type, status, reason }) =>
        type === 'DisruptionTarget' && status === 'True' && reason === PREEMPTION_BY_SCHEDULER,
    ) ??
      false)

  function findCandidates(attempt: RejectedAttempt, nodes: readonly NodeInfo[]) {
    const candidates: Candidate[] = []
    const statuses = new Map<NodeInfo, Status>()
    const candidatesMax = Math.max(CANDIDATES_MIN, Math.floor(nodes.length * CANDIDATES_SHARE))
    // A small cluster is searched completely, so the choice does not depend on the start.
    const startAt = nodes.length > candidatesMax ? Math.floor(random() * nodes.length) : 0
    for (let index = 0; index < nodes.length && candidates.length < candidatesMax; index++) {
      const node = nodes[(startAt + index) % nodes.length]!
      const selection = selectVictimsOn(node, attempt)
      if (selection.is === 'fits') candidates.push({ nodeName: node.name, victims: selection.victims })
      else statuses.set(node, selection.status)
    }
    return { candidates, statuses }
  }

  function planPreemption(pod: PodInfo, { nodeName, victims }: Candidate): PostFilterResult {
    return {
      is: 'nominated',
      nodeName,
      victims,
      message: `preemption: found a potential placement for pod on node ${nodeName}, preempting ${victims.length} victims`,
      async apply(isWaiting) {
        preemptors.add(pod.uid)
        const displacedPods = displaceNominated(pod, nodeName)
        try {
          const onDeleted = ({ key, uid }: PodInfo) => {
            if (handle.caches.pods.get(key)?.metadata.uid === uid) deletedVictims.set(key, uid)
          }
          await deleteVictims({ pod, nodeName, victims, isTerminating, onDeleted, isWaiting }, handle)
          for (const displaced of displacedPods) await writeNominatedNode(displaced, '', handle)
        } finally {
          preemptors.delete(pod.uid)
        }
      },
    }
  }

  /** Removes the nominations of pods of lower priority on the node, which may no longer fit there, and requeues them. */
  function displaceNominated({ priority, key }: PodInfo, nodeName: string): PodInfo[] {
    const displacedPods = cluster.nominatedPods
      .onNode(nodeName)
      .filter((pod) => pod.priority < priority && pod.key !== key)
    for (const pod of displacedPods) {
      cluster.nominatedPods.nominate(pod, '')
      emit({ on: 'pluginState', keys: [podKey(pod.key)] })
    }
    return displacedPods
  }

  /** A pod left the node for which the pod is nominated: unless other victims are still leaving, evaluate all nodes again. */
  const victimLeft: QueueingHint<'podRemoved'> = {
    on: 'podRemoved',
    scope: 'pod',
    keysOfPod: ({ key }) => nominatedNodeKeys(key),
    keysOfEvent: ({ nodeName }) => [nodeKey(nodeName)],
    hint(pod, { nodeName }) {
      const node = cluster.node(nodeName)
      return node && hasTerminatingVictim(node, pod) ? 'skip' : 'queue'
    },
  }

  /** The node for which the pod is nominated was deleted or has changed. */
  const nominatedNodeChanged: QueueingHint<'node'> = {
    on: 'node',
    scope: 'pod',
    keysOfPod: ({ key }) => nominatedNodeKeys(key),
    keysOfEvent: ({ next, old }) =>
      next && (!old || isEqualForScheduling(old, next)) ? [] : [nodeKey(old?.metadata.name ?? '')],
  }

  /** The pod lost its nomination, or the deletion of its victims failed. */
  const nominationLost: QueueingHint<'pluginState'> = {
    on: 'pluginState',
    scope: 'pod',
    keysOfPod: ({ key }) => [podKey(key)],
    keysOfEvent: ({ keys }) => keys,
  }

  function nominatedNodeKeys(key: ObjectKey): string[] {
    const nodeName = cluster.nominatedPods.nodeOf(key)
    return nodeName === undefined ? [] : [nodeKey(nodeName)]
  }

  return {
    name: 'DefaultPreemption',
    events: [victimLeft, nominatedNodeChanged, nominationLost],
    preFilter: () => SKIP,
    postFilter(attempt) {
      const { pod, statuses } = attempt
      const nodes = resolvableNodes(statuses)
      if (nodes.length === 0) return undefined
      if (pod.pod.spec?.preemptionPolicy === 'Never') return { is: 'rejected', message: POLICY_NEVER }
      const waitReason = explainWait(attempt)
      if (waitReason !== undefined) return { is: 'waiting', message: waitReason }
      const { candidates, statuses: results } = cluster.hasPodsBelow(pod.priority)
        ? findCandidates(attempt, nodes)
        : { candidates: [], statuses: new Map<NodeInfo, Status>() }
      const candidate = chooseCandidate(candidates, { nowMs: clock.nowMs(), isTerminating })
      return candidate
        ? planPreemption(pod, candidate)
        : { is: 'rejected', message: noVictimsMessage(statuses, results) }
    },
    signPod: ({ key, pod }) =>
      cluster.nominatedPods.nodeOf(key) === undefined ? pod.spec?.preemptionPolicy === 'Never' : UNSIGNABLE,
    observe(event) {
      if (event.on === 'podDeleted') deletedVictims.delete(event.key)
    },
  }
}

const TERMINATING_VICTIM = 'preemption: not eligible due to a terminating pod on the nominated node.'
const ATTACHED_VOLUMES = 'preemption: not eligible due to volumes that are being detached from the nominated node.'
const POLICY_NEVER = 'preemption: not eligible due to preemptionPolicy=Never.'

const nodeKey = (nodeName: string): string => `node ${nodeName}`
const podKey = (key: ObjectKey): string => `preemptor ${key}`

/** Returns the nodes on which the pod might fit if other pods left. */
function resolvableNodes(statuses: NodeStatuses): NodeInfo[] {
  const nodes: NodeInfo[] = []
  for (const [node, { code }] of statuses) if (code === 'Unschedulable') nodes.push(node)
  return nodes
}

function noVictimsMessage(statuses: NodeStatuses, results: ReadonlyMap<NodeInfo, Status>): string {
  const byNode = new Map<NodeInfo, Status>()
  for (const [node, { code }] of statuses)
    byNode.set(node, code === 'Unschedulable' ? (results.get(node) ?? NO_VICTIMS) : NOT_HELPFUL)
  return `preemption: ${noNodeFitsMessage(byNode, [])}`
}
