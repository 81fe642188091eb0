// One pod, start to finish. The decision is made in one go on what the scheduler believes at that moment, and is believed
// at once: the next pod is judged as if this one were there already. Writing it down and waiting for volumes comes after,
// while other pods are being decided.
//
//   take → opinions → find a node → set aside → ‖ bind volumes → bind the pod → told
//             │           └─ none would do: parked until something could help; the pod says why
//             └─ no node would do whatever it is: the same
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { ApiError } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { type Client, type ObjectKey, refOfKey } from '../client/index.ts'
import type { EventRecorder } from '../runtime/index.ts'
import type { ClusterState } from './cluster/cluster-state.ts'
import type { NodeView } from './cluster/node-view.ts'
import { type HelpFacts, interestsOf, type Refusal } from './events-to-queue.ts'
import { findNode, firstRefusal, type Opinion, opinionsOn } from './find-node.ts'
import type { GivenBack } from './given-back.ts'
import { assigned, closedMeanwhile, hopeless, NO_NODES, noNodeWouldDo, volumesToCome } from './messages.ts'
import type { SchedulerMetrics } from './metrics.ts'
import type { Plugin, Reserved } from './plugin.ts'
import type { VolumeCaches } from './plugins/volume-binding/pod-volumes.ts'
import { VOLUME_BINDING, type VolumeBinding } from './plugins/volume-binding/volume-binding.ts'
import type { PodFacts } from './pod-facts.ts'
import type { Rejection } from './queue/parked-pods.ts'
import type { QueuedPod, SchedulingQueue } from './queue/queue.ts'
import type { WaitReporter } from './report-waiting.ts'

export interface ScheduleDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly events: EventRecorder
  readonly metrics: SchedulerMetrics | undefined
  readonly queue: SchedulingQueue
  readonly cluster: ClusterState
  readonly caches: VolumeCaches
  readonly plugins: readonly Plugin[]
  readonly volumeBinding: VolumeBinding
  readonly help: HelpFacts
  readonly likenessOf: (pod: PodFacts) => string | undefined
  readonly reporter: WaitReporter
  readonly givenBack: GivenBack
  readonly write: <T>(run: () => Promise<T>) => Promise<T>
  /** A pod that was thought to be on a node is not, after all. */
  readonly onUnplaced: (pod: PodFacts, nodeName: string) => void
  /** Where the next search begins. */
  readonly rotation: { startAt: number }
}

type Decision =
  | { readonly do: 'place'; readonly node: NodeView; readonly opinions: readonly Opinion[] }
  | { readonly do: 'wait'; readonly rejection: Rejection }

/** The decision, at once; the returned promise settles when it has been carried out. Never rejects. */
export function scheduleOne(queued: QueuedPod, deps: ScheduleDeps, signal: AbortSignal): Promise<void> | undefined {
  const { facts } = queued
  const profile = facts.pod.spec?.schedulerName ?? ''
  const startMs = deps.clock.monotonicMs()
  const took = () => (deps.clock.monotonicMs() - startMs) / 1_000
  let decision: Decision
  try {
    decision = decide(facts, deps)
  } catch (error) {
    deps.metrics?.attempted('error', profile, took())
    deps.log.error({ err: error, pod: facts.key }, 'a pod could not be judged; it is tried again')
    fail(queued, error, deps)
    return undefined
  }
  if (decision.do === 'wait') {
    deps.metrics?.attempted('unschedulable', profile, took())
    return wait(queued, decision.rejection, deps, signal)
  }
  deps.metrics?.attempted('scheduled', profile, took())
  const { node, opinions } = decision
  deps.cluster.assume(facts, node.name)
  const reserved = opinions.flatMap(({ judge }) => judge.reserve?.(node) ?? [])
  deps.queue.found(queued)
  return carryOut(queued, node.name, reserved, deps, signal)
}

function decide(facts: PodFacts, deps: ScheduleDeps): Decision {
  const { plugins, cluster, queue, rotation, random } = deps
  const likeness = queue.parked.size > 0 ? deps.likenessOf(facts) : undefined
  const verdict = likeness === undefined ? undefined : queue.parked.verdictOn(likeness)
  if (verdict) return { do: 'wait', rejection: verdict } // one like it waits, and nothing has changed since
  const opinions = opinionsOn(facts, plugins)
  const { nodes } = cluster
  if (!Array.isArray(opinions)) {
    const because = hopeless(nodes.length, opinions.because)
    return { do: 'wait', rejection: rejectionOf(because, [opinions.plugin], [opinions.because], undefined) }
  }
  const search = findNode(opinions, { nodes, startAt: rotation.startAt, random })
  if (search.is === 'found') {
    rotation.startAt = (rotation.startAt + search.looked) % nodes.length
    return { do: 'place', node: search.node, opinions }
  }
  const remarks = opinions.flatMap(({ judge }) => judge.explains?.(search.refusals) ?? [])
  const because = nodes.length === 0 ? NO_NODES : noNodeWouldDo(search.refusals, remarks)
  const rejectedBy = nodes.length === 0 ? plugins.map(({ name }) => name) : search.refusedBy
  const reasons = [...search.refusals.values()].flat()
  return { do: 'wait', rejection: rejectionOf(because, rejectedBy, reasons, likeness ?? deps.likenessOf(facts)) }
}

const rejectionOf = (
  because: string,
  rejectedBy: Iterable<string>,
  reasons: Iterable<string>,
  likeness: string | undefined,
): Rejection => ({ because, rejectedBy: new Set(rejectedBy), reasons: new Set(reasons), likeness })

/** Parked in the same breath as it was judged, so that no change can slip in between unnoticed. */
function wait(
  queued: QueuedPod,
  rejection: Rejection,
  deps: ScheduleDeps,
  signal: AbortSignal,
): Promise<void> | undefined {
  const { facts } = queued
  const stranded = strandedClaims(facts, deps)
  const names = stranded.map((key) => JSON.stringify(refOfKey(key).name)).join(', ')
  const because =
    stranded.length === 0
      ? rejection.because
      : `${rejection.because} The volume of ${names} is given back, to be made where all of them fit.`
  deps.queue.park(queued, { ...rejection, because }, interestsOf(facts, rejection, deps.help))
  deps.reporter.report(facts.pod, facts.key, { reason: 'Unschedulable', message: because })
  return stranded.length === 0 ? undefined : giveBackInTime(queued, deps, signal)
}

/** Volumes of the pod's own that keep it where it cannot run, when without them there is a node for all of it. */
function strandedClaims(facts: PodFacts, deps: ScheduleDeps): readonly ObjectKey[] {
  const { volumeBinding, plugins, cluster, random, rotation } = deps
  const isWayOut = (claims: readonly ObjectKey[]) => {
    const opinions = opinionsWithout(claims, facts, plugins, volumeBinding)
    if (!Array.isArray(opinions)) return false
    return findNode(opinions, { nodes: cluster.nodes, startAt: rotation.startAt, random }).is === 'found'
  }
  return volumeBinding.waysOut(facts).find(isWayOut) ?? []
}

/** What there is to say about the pod if it gave these volumes back. */
function opinionsWithout(
  claims: readonly ObjectKey[],
  facts: PodFacts,
  plugins: readonly Plugin[],
  volumeBinding: VolumeBinding,
) {
  const without = new Set(claims)
  return opinionsOn(facts, plugins, (plugin) =>
    plugin.name === VOLUME_BINDING ? volumeBinding.prepareWithout(facts, without) : plugin.prepare(facts),
  )
}

/** Why this node would not take the pod now, even if that gave back what it can; undefined when it would. */
export function refusalOf(
  facts: PodFacts,
  nodeName: string,
  { cluster, plugins, volumeBinding }: Pick<ScheduleDeps, 'cluster' | 'plugins' | 'volumeBinding'>,
): Refusal | 'no such node' | undefined {
  const node = cluster.node(nodeName)
  if (!node) return 'no such node'
  const opinions = opinionsOn(facts, plugins)
  if (!Array.isArray(opinions)) return { by: opinions.plugin, reasons: [opinions.because] }
  const refusal = firstRefusal(opinions, node)
  const isWayOut = (claims: readonly ObjectKey[]) => {
    const without = opinionsWithout(claims, facts, plugins, volumeBinding)
    return Array.isArray(without) && !firstRefusal(without, node)
  }
  return refusal && volumeBinding.waysOut(facts).some(isWayOut) ? undefined : refusal
}

/** At once the first time, and then ever later: see given-back.ts. By then the pod may have been helped otherwise. */
async function giveBackInTime(queued: QueuedPod, deps: ScheduleDeps, signal: AbortSignal): Promise<void> {
  const { clock, queue, givenBack } = deps
  const { uid } = queued.facts
  const waitMs = givenBack.beginWait(uid)
  if (waitMs === undefined) return
  let stranded: readonly ObjectKey[] = []
  try {
    if (waitMs > 0) await clock.sleep(waitMs, signal)
    const isStillParked = queue.standing(queued.key)?.is === 'unschedulable' && queued.facts.uid === uid
    stranded = isStillParked ? strandedClaims(queued.facts, deps) : []
    await giveBack(queued.facts, stranded, deps)
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    givenBack.endWait(uid, stranded.length > 0)
  }
}

async function giveBack(facts: PodFacts, claimKeys: readonly ObjectKey[], deps: ScheduleDeps): Promise<void> {
  for (const key of claimKeys) {
    const uid = deps.caches.claims.get(key)?.metadata.uid
    try {
      await deps.write(() => deps.client.delete(persistentVolumeClaimKind, refOfKey(key), uid ? { uid } : {}))
    } catch (error) {
      const isGone = error instanceof ApiError && (error.code === 404 || error.code === 409)
      if (!isGone) deps.log.warn({ err: error, pod: facts.key, claim: key }, 'a claim could not be given back')
    }
  }
}

async function carryOut(
  queued: QueuedPod,
  nodeName: string,
  reserved: readonly Reserved[],
  deps: ScheduleDeps,
  signal: AbortSignal,
): Promise<void> {
  const { facts } = queued
  try {
    await commitAll(facts, nodeName, reserved, deps)
    await bindPod(facts, nodeName, deps)
    deps.events.record(podKind, facts.pod, {
      type: 'Normal',
      reason: 'Scheduled',
      message: assigned(facts.key, nodeName),
      action: 'Binding',
    })
    deps.queue.remove(facts.key)
    for (const one of reserved) one.release()
  } catch (error) {
    // Back in the queue before anything is freed: what it frees may help others first.
    if (!signal.aborted) fail(queued, error, deps)
    for (const one of reserved) one.release()
    if (deps.cluster.forget(facts.key)) deps.onUnplaced(facts, nodeName)
  }
}

/** After this long a pod says that it waits for its volumes; what it said before it had a node is not true any more. */
const VOLUMES_TOLD_AFTER_MS = 120_000

async function commitAll(facts: PodFacts, nodeName: string, reserved: readonly Reserved[], deps: ScheduleDeps) {
  if (reserved.length === 0) return
  const message = volumesToCome(nodeName)
  const tell = () => deps.reporter.report(facts.pod, facts.key, { reason: 'WaitingForVolumes', message })
  const cancel = deps.clock.after(VOLUMES_TOLD_AFTER_MS, tell)
  try {
    for (const one of reserved) await one.commit()
  } finally {
    cancel()
  }
  const node = deps.cluster.node(nodeName)
  const refusal = node && refusalSince(facts, node, deps)
  if (refusal) throw new Error(closedMeanwhile(nodeName, refusal.reasons))
}

/** Of a node that was chosen, whether it would still be: it may have been cordoned or lost since. */
function refusalSince(facts: PodFacts, node: NodeView, { plugins }: ScheduleDeps): Refusal | undefined {
  const opinions = opinionsOn(
    facts,
    plugins.filter(({ isAskedAgain }) => isAskedAgain),
  )
  return Array.isArray(opinions) ? firstRefusal(opinions, node) : undefined
}

async function bindPod({ key, uid, pod }: PodFacts, nodeName: string, deps: ScheduleDeps): Promise<void> {
  if (!deps.cluster.node(nodeName)) throw new Error(`node ${JSON.stringify(nodeName)} does not exist any more`)
  const { namespace = '', name = '' } = pod.metadata
  const binding: any = { metadata: { namespace, name, uid }, target: { kind: 'Node', name: nodeName } }
  try {
    await deps.write(() => deps.client.create(podKind, binding, { subresource: 'binding' }))
  } catch (error) {
    const isThere = error instanceof ApiError && error.code === 409 && error.message.includes(alreadyThere(nodeName))
    if (!isThere) throw error
    deps.log.debug({ pod: key, node: nodeName }, 'the pod was bound to this node already')
  }
}

/** An earlier try whose answer was lost. */
const alreadyThere = (nodeName: string): string => `is already assigned to node ${JSON.stringify(nodeName)}`

function fail(queued: QueuedPod, error: unknown, deps: ScheduleDeps): void {
  const message = error instanceof Error ? error.message : String(error)
  const { facts } = queued
  const isWanted = deps.queue.has(facts.key)
  deps.queue.retryLater(queued, message)
  if (isWanted) deps.reporter.report(facts.pod, facts.key, { reason: 'SchedulerError', message })
}
