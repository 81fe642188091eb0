// Drains a node: cordons it, evicts the pods of the plan (plan-drain.ts), and waits until the pods are deleted, and the attachments
// that no other pod of the node needs. An interrupted drain can be repeated, because the command plans again.
import { nodeKind } from '../../../../api/kinds/node/node.ts'
import { podKind } from '../../../../api/kinds/pod/pod.ts'
import { volumeAttachmentKind } from '../../../../api/kinds/volume-attachment/volume-attachment.ts'
import { ApiError, isNotFound } from '../../../../api/status-error.ts'
import type { Clock } from '../../../../base/clock.ts'
import type { Client } from '../../../../client/index.ts'
import type { Snapshot } from '../../../../diagnosis/index.ts'
import { findPods, findVolumeNames, type StoredPod } from './node-facts.ts'
import type { DrainPlan, DrainPod } from './plan-drain.ts'

export interface DrainDeps {
  readonly client: Client
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called with the number of pods that have left the node. */
  onProgress(doneCount: number, totalCount: number): void
}

export interface DrainResult {
  /** Whether all pods have left except those of DaemonSets and static pods, and their volumes are detached. */
  readonly isDrained: boolean
  /** Pods that have left the node. */
  readonly movedPods: readonly string[]
  /** Pods that are still on the node after the timeout or an interruption, with the server's last rejection of an eviction. */
  readonly waitingPods: readonly { readonly pod: string; readonly message: string }[]
  /** Volumes that are still attached and that no pod which stays on the node uses. */
  readonly attachedVolumes: readonly string[]
}

const POLL_MS = 1_000
const TOO_MANY_REQUESTS = 429

export async function drainNode(
  plan: DrainPlan,
  snapshot: Snapshot,
  options: { readonly timeoutMs: number; readonly gracePeriodSeconds?: number },
  deps: DrainDeps,
): Promise<DrainResult> {
  const { client, clock, signal } = deps
  const deadlineMs = clock.monotonicMs() + options.timeoutMs
  if (!plan.isCordoned) await setCordon(client, plan.node, true)
  const leavingPods = new Map(plan.pods.filter(({ action }) => action !== 'keep').map((pod) => [pod.uid, pod]))
  // Volumes of pods that an interrupted drain has removed may still be attached, so wait for all volumes that no remaining pod
  // uses.
  const keptVolumes = new Set(
    findPods(snapshot, plan.node)
      .filter(({ metadata }) => !leavingPods.has(metadata.uid))
      .flatMap((pod: StoredPod) => findVolumeNames(pod, snapshot)),
  )
  const movedPods: string[] = []
  const messages = new Map<string, string>()
  const total = leavingPods.size
  for (;;) {
    for (const [uid, pod] of leavingPods) {
      const isGone = await evictPod(client, pod, options.gracePeriodSeconds, messages)
      if (!isGone) continue
      leavingPods.delete(uid)
      movedPods.push(describePod(pod))
      deps.onProgress(movedPods.length, total)
    }
    const attachedVolumes = await readAttachedVolumes(client, plan.node, keptVolumes)
    if (leavingPods.size === 0 && attachedVolumes.length === 0)
      return {
        isDrained: plan.pods.every(({ flag }) => flag === undefined),
        movedPods,
        waitingPods: [],
        attachedVolumes,
      }
    if (signal.aborted || clock.monotonicMs() >= deadlineMs) {
      const waitingPods = [...leavingPods].map(([uid, pod]) => ({
        pod: describePod(pod),
        message: messages.get(uid) ?? 'the pod is being deleted',
      }))
      return { isDrained: false, movedPods, waitingPods, attachedVolumes }
    }
    await clock.sleep(POLL_MS, signal)
  }
}

const describePod = ({ namespace, name }: Pick<DrainPod, 'namespace' | 'name'>): string => `${namespace}/${name}`

/**
 * Evicts the pod unless it is being deleted. Returns whether the pod is gone. A PodDisruptionBudget may reject the eviction for
 * now.
 */
async function evictPod(
  client: Client,
  pod: DrainPod,
  gracePeriodSeconds: number | undefined,
  messages: Map<string, string>,
): Promise<boolean> {
  const { namespace, name, uid } = pod
  try {
    const current = await client.get(podKind, { namespace, name })
    if (current.metadata.uid !== uid) return true // a new pod with the same name
    messages.delete(uid) // the rejection of an earlier attempt
    if (current.metadata.deletionTimestamp) return false
    const deleteOptions = {
      preconditions: { uid },
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    }
    const eviction = { metadata: { namespace, name }, deleteOptions }
    await client.create(podKind, eviction, { subresource: 'eviction' })
    return false
  } catch (error) {
    if (isNotFound(error)) return true
    if (!(error instanceof ApiError) || error.code !== TOO_MANY_REQUESTS) throw error
    messages.set(uid, error.message)
    return false
  }
}

async function readAttachedVolumes(client: Client, node: string, keptVolumes: ReadonlySet<string>): Promise<string[]> {
  const { items } = await client.list(volumeAttachmentKind)
  return items.flatMap(({ spec }) => {
    const volume = spec.source.persistentVolumeName
    return spec.nodeName === node && volume !== undefined && !keptVolumes.has(volume) ? [volume] : []
  })
}

export const setCordon = (client: Client, name: string, isCordoned: boolean, options: { dryRun?: boolean } = {}) =>
  client.patch(nodeKind, { name }, { type: 'merge', body: { spec: { unschedulable: isCordoned || null } } }, options)
