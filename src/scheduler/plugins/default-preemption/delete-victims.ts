// Deletes the victims of a preemption and writes the pod's nominated node. For each victim, it writes a condition, deletes the
// pod and records an event, in this order. After a crash between two writes, the next scheduler selects victims again and skips
// terminating pods.
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { isConflict, isNotFound } from '../../../api/status-error.ts'
import { timestamp } from '../../../base/timestamps.ts'
import { refOfKey } from '../../../client/index.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import type { PluginHandle } from '../../framework/plugin.ts'
import { writeNominatedNode } from '../../write-nominated-node.ts'

type WriteDeps = Pick<PluginHandle, 'client' | 'caches' | 'clock' | 'events' | 'write'>

interface Preemption {
  readonly pod: PodInfo
  readonly nodeName: string
  readonly victims: readonly PodInfo[]
  readonly isTerminating: (pod: PodInfo) => boolean
  /** Called when the server has accepted the deletion, which the cache may not show yet. */
  readonly onDeleted: (victim: PodInfo) => void
  /** Whether the pod still needs the space. Otherwise no further victim is deleted. */
  readonly isWaiting: () => boolean
}

/** Rejects if the server rejects a write. A victim that no longer exists is not an error. */
export async function deleteVictims(preemption: Preemption, deps: WriteDeps): Promise<void> {
  const { pod, nodeName, victims, isTerminating, onDeleted, isWaiting } = preemption
  for (const victim of victims) {
    if (!isWaiting()) return
    if (isTerminating(victim)) continue
    const isPresent = await markDisrupted(victim, pod, deps)
    if (!isPresent || !isWaiting()) continue
    if (!(await deletePod(victim, deps))) continue
    onDeleted(victim)
    deps.events.record(podKind, victim.pod, {
      type: 'Normal',
      reason: 'Preempted',
      message: `Preempted by pod ${pod.uid} on node ${nodeName}`,
      action: 'Preempting',
    })
  }
  if (isWaiting()) await writeNominatedNode(pod, nodeName, deps)
}

/** Returns false if the pod no longer exists. */
async function markDisrupted(victim: PodInfo, preemptor: PodInfo, deps: WriteDeps): Promise<boolean> {
  const { schedulerName = '' } = preemptor.pod.spec ?? {}
  const { generation } = victim.pod.metadata
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: PREEMPTION_BY_SCHEDULER,
    message: `${schedulerName}: preempting to accommodate a higher priority pod`,
    lastTransitionTime: timestamp(deps.clock.nowMs()),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  }
  const patch = {
    type: 'strategic',
    body: { metadata: { uid: victim.uid }, status: { conditions: [condition] } },
  } as const
  return writeIfFound(async () => {
    const { client, caches, write } = deps
    const ref = refOfKey(victim.key)
    caches.pods.applyWriteResult(await write(() => client.patch(podKind, ref, patch, { subresource: 'status' })))
  })
}

export const PREEMPTION_BY_SCHEDULER = 'PreemptionByScheduler'

/** Deletes the pod with its own grace period. Returns false if it no longer exists. */
async function deletePod({ key, uid }: PodInfo, { client, caches, write }: WriteDeps): Promise<boolean> {
  return writeIfFound(async () => {
    const markedPod = await write(() => client.delete(podKind, refOfKey(key), { uid }))
    if (markedPod) caches.pods.applyWriteResult(markedPod)
  })
}

/** Runs a write. Returns false if the pod no longer exists; a conflict means that another pod has its name. */
async function writeIfFound(run: () => Promise<void>): Promise<boolean> {
  try {
    await run()
    return true
  } catch (error) {
    if (isNotFound(error) || isConflict(error)) return false
    throw error
  }
}
