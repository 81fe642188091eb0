// Reconciles one pod of this node, identified by its UID.
//   assigned              mount all volumes, then start the containers
//   deadline exceeded     stop the containers, unmount the volumes, and set the phase Failed
//   evicted               the same, after an emptyDir volume has exceeded its size limit
//   Succeeded or Failed   unmount the volumes, and keep the pod object
//   being deleted         stop the containers, unmount the volumes, then delete the pod object
//   deleted               stop the containers, unmount the volumes in the mount records, then remove the directories

import { dirname } from 'node:path'
import type { Stored } from '../../api/kind.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod, PodStatus } from '../../api/kinds/pod/pod-schema.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { type OperationDetails, operationDetailsOf } from '../../base/operation-details.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { Client } from '../../client/index.ts'
import { backOff, checkAfter, done, type EventRecorder, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import type { Containers } from '../commands/containers.ts'
import type { VolumePath } from '../commands/volume-path.ts'
import type { CsiVolume } from '../csi/csi-volume.ts'
import type { ExpandVolume, PublishedVolume } from '../csi/expand-volume.ts'
import type { Publication } from '../csi/mount-records.ts'
import { type MountDeps, mountCsiVolume, publicationKey } from '../csi/mount-volume.ts'
import { unmountCsiVolume } from '../csi/unmount-volume.ts'
import { VolumeError } from '../volume-error.ts'
import type { NodeResources } from './downward-fields.ts'
import { checkEmptyDirLimit, makeEmptyDir, removeEmptyDirs } from './empty-dir.ts'
import { type HostPathDeps, prepareHostPath } from './host-path.ts'
import { findIgnoredFields } from './ignored-fields.ts'
import type { MountBackoff } from './mount-backoff.ts'
import { type PodView, type StatusOptions, statusOf, statusPatch, viewOfAll } from './pod-status.ts'
import { prepareSubPaths } from './prepare-sub-paths.ts'
import { type IssuedToken, readProjectedFiles } from './projected-files.ts'
import { removeProjectedVolumes, writeProjectedVolume } from './projected-volumes.ts'
import { type ResolveDeps, type ResolvedVolume, resolveVolume } from './resolve-volume.ts'
import { type UsedVolume, usedVolumesOf } from './used-volumes.ts'

export interface PodDeps extends MountDeps, ResolveDeps, HostPathDeps {
  readonly client: Client
  readonly clock: Clock
  readonly events: EventRecorder
  readonly containers: Containers
  readonly expand: ExpandVolume
  readonly mountBackoff: MountBackoff
  readonly hostIP: string
  readonly resources: NodeResources
  /** The mounted volumes by pod UID and volume name. */
  readonly mountedVolumes: Map<string, Map<string, MountedVolume>>
  pod(uid: string): Readonly<Stored<Pod>> | undefined
}

export interface MountedVolume extends VolumePath {
  readonly publication?: Publication
  readonly csi?: CsiVolume
  /** Monotonic time of the last NodePublishVolume; of the last read of a projected volume's objects; or of the mount. */
  readonly publishedMs: number
  /** The limit of an emptyDir on disk. */
  readonly sizeLimit?: string
  /** The pod's labels and annotations when the files of a projected volume were read. */
  readonly podMetadata?: string
  /** The digest of the files of a projected volume, and its tokens. */
  readonly filesDigest?: string
  readonly tokens?: ReadonlyMap<string, IssuedToken>
  /** Delay until the expansion is retried. */
  readonly expandInMs?: number
}

const DIRECTORY_MODE = 0o750
/** After this time an event lists the volumes that are not mounted. Mounting continues. */
const MOUNT_TIMEOUT_MS = 123_000
/** Interval of NodePublishVolume for drivers with requiresRepublish. */
const REPUBLISH_INTERVAL_MS = 60_000
/** Interval at which the objects of projected volumes are read again and expiring tokens are renewed. */
const PROJECTION_REFRESH_INTERVAL_MS = 60_000
/** Interval at which emptyDir volumes with a size limit are measured. */
const EMPTY_DIR_CHECK_INTERVAL_MS = 10_000
/** Grace period of the containers of an evicted pod. */
const EVICTION_GRACE_SECONDS = 1
/** Retry delay after an expansion fails unexpectedly. */
const EXPAND_RETRY_DELAY_MS = 5_000
const DEFAULT_GRACE_SECONDS = 30

export async function reconcilePod(uid: string, deps: PodDeps, signal: AbortSignal): Promise<Outcome> {
  const pod = deps.pod(uid)
  if (!pod) return removePod(uid, deps, signal)
  if (pod.metadata.deletionTimestamp) return terminatePod(pod, uid, deps, signal)
  if (hasTerminated(pod)) return (await stopPod(uid, deps, signal, { pod })) ?? done
  const eviction = findEviction(pod)
  if (eviction) return failPod(pod, uid, eviction, deps, signal)
  const untilDeadlineMs = deadlineInMs(pod, deps.clock.nowMs())
  if (untilDeadlineMs <= 0) return failPod(pod, uid, DEADLINE_EXCEEDED, deps, signal)
  return retryWithin(await startPod(pod, uid, deps, signal), untilDeadlineMs, 'activeDeadlineSeconds is enforced')
}

/** Returns the time until spec.activeDeadlineSeconds after status.startTime, or Infinity. */
function deadlineInMs({ spec, status }: Readonly<Stored<Pod>>, nowMs: number): number {
  const { activeDeadlineSeconds } = spec ?? {}
  if (activeDeadlineSeconds === undefined || !status?.startTime) return Number.POSITIVE_INFINITY
  return Date.parse(status.startTime) + activeDeadlineSeconds * 1_000 - nowMs
}

/** Limits the delay of a timed retry, and retries a pod that is done or stuck after this time. Does not change a backoff. */
export function retryWithin(outcome: Outcome, ms: number, message: string): Outcome {
  if (ms === Number.POSITIVE_INFINITY) return outcome
  if (outcome.is === 'done') return checkAfter(ms, message)
  if (outcome.is === 'stuck') return retryAfter(ms, outcome.message, outcome.details)
  const { afterMs } = outcome
  return afterMs === undefined ? outcome : { ...outcome, afterMs: Math.min(afterMs, ms) }
}

interface PodFailure {
  readonly reason: string
  readonly message: string
  /** Default: the pod's grace period. */
  readonly graceSeconds?: number
  readonly eventType: 'Normal' | 'Warning'
}

const DEADLINE_EXCEEDED: PodFailure = {
  reason: 'DeadlineExceeded',
  message: 'Pod was active on the node longer than the specified deadline',
  eventType: 'Normal',
}

/** The reason of the condition DisruptionTarget of a pod that the agent evicts. */
const TERMINATION_BY_KUBELET = 'TerminationByKubelet'

/** Returns the eviction that the agent has begun, possibly before a restart. */
function findEviction({ status }: Readonly<Stored<Pod>>): PodFailure | undefined {
  const condition = status?.conditions?.find(
    ({ type, status: value, reason }) =>
      type === 'DisruptionTarget' && value === 'True' && reason === TERMINATION_BY_KUBELET,
  )
  if (!condition) return undefined
  const { message = '' } = condition
  return { reason: 'Evicted', message, graceSeconds: EVICTION_GRACE_SECONDS, eventType: 'Warning' }
}

async function failPod(
  pod: Readonly<Stored<Pod>>,
  uid: string,
  { reason, message, graceSeconds, eventType }: PodFailure,
  deps: PodDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const podGraceSeconds = pod.spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS
  const pendingOutcome = await stopPod(uid, deps, signal, { pod, graceSeconds: graceSeconds ?? podGraceSeconds })
  if (pendingOutcome) return pendingOutcome
  deps.events.record(podKind, pod, { type: eventType, reason, message })
  const finalView = await deps.containers.finalView(pod)
  const { main } = viewOfAll(pod, { is: 'waiting', reason: 'ContainerCreating' })
  const view = pod.status?.phase === 'Pending' ? { ...finalView, main } : finalView // its containers never started
  await writeStatus(pod, view, deps, { failure: { reason, message } })
  return done
}

async function startPod(pod: Readonly<Stored<Pod>>, uid: string, deps: PodDeps, signal: AbortSignal): Promise<Outcome> {
  await deps.disk.makeDirectory(deps.paths.pod(uid), DIRECTORY_MODE)
  if (!deps.mountedVolumes.has(uid)) {
    await deps.containers.prepare(uid)
    if (deps.containers.runsCommands) recordIgnoredFields(pod, deps)
  }
  const volumes = deps.mountedVolumes.get(uid) ?? new Map<string, MountedVolume>()
  deps.mountedVolumes.set(uid, volumes)
  const usedVolumes = usedVolumesOf(pod)
  const problems = await Promise.all(
    usedVolumes.map((usedVolume) => tryMount(pod, uid, usedVolume, { volumes, deps, signal })),
  )
  const unmountedVolumes = usedVolumes.flatMap(({ name }, index) =>
    problems[index] ? [{ name, problem: problems[index] }] : [],
  )
  if (unmountedVolumes.length > 0) return waitForVolumes(pod, uid, unmountedVolumes, deps)
  deps.mountBackoff.removePod(uid)

  const subPathError = deps.containers.runsCommands ? undefined : await prepareSubPaths(pod, volumes, deps.disk)
  if (subPathError !== undefined) {
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'Failed', message: `Error: ${subPathError}` })
    const view = viewOfAll(pod, { is: 'waiting', reason: 'CreateContainerConfigError', message: subPathError })
    await writeStatus(pod, view, deps)
    return backOff(subPathError)
  }
  const eviction = await checkEmptyDirLimits(volumes, deps)
  if (eviction !== undefined) return evictPod(pod, eviction, deps)
  await writeStatus(pod, await deps.containers.advance(pod, volumes), deps, { isPrepared: true })
  return outcomeOf(volumes, deps)
}

/** Returns the message of the eviction if an emptyDir volume has exceeded its size limit. */
async function checkEmptyDirLimits(
  volumes: ReadonlyMap<string, MountedVolume>,
  { disk }: PodDeps,
): Promise<string | undefined> {
  for (const [name, { path, sizeLimit }] of volumes) {
    if (sizeLimit === undefined) continue
    const message = await checkEmptyDirLimit({ path, name, sizeLimit }, disk)
    if (message !== undefined) return message
  }
  return undefined
}

/** Records the eviction in the status first, so that a restarted agent completes it. */
async function evictPod(pod: Readonly<Stored<Pod>>, message: string, deps: PodDeps): Promise<Outcome> {
  const { name, namespace, uid } = pod.metadata
  const now = timestamp(deps.clock.nowMs())
  const condition = { type: 'DisruptionTarget', status: 'True', reason: TERMINATION_BY_KUBELET, message }
  const status = { conditions: [{ ...condition, lastTransitionTime: now }] }
  const patch = { type: 'strategic', body: { metadata: { uid }, status } } as const
  await deps.client.patch(podKind, { namespace, name }, patch, { subresource: 'status' }).catch(ignoreIfChanged)
  return retryAfter(EMPTY_DIR_CHECK_INTERVAL_MS, message)
}

/** Records an event with the fields of the pod that have no effect on commands that run on the machine. */
function recordIgnoredFields(pod: Readonly<Stored<Pod>>, { events }: PodDeps): void {
  const fields = findIgnoredFields(pod)
  if (fields.length === 0) return
  const message = `This node runs commands as processes of the machine, without isolation, and ignores ${fields.join(', ')}`
  events.record(podKind, pod, { type: 'Warning', reason: 'UnsupportedFields', message })
}

/** Returns an outcome that retries the pod when the first of its volumes is due. */
function outcomeOf(volumes: ReadonlyMap<string, MountedVolume>, deps: PodDeps): Outcome {
  const mounted = [...volumes.values()]
  const expandInMs = Math.min(...mounted.map((volume) => volume.expandInMs ?? Number.POSITIVE_INFINITY))
  const isExpanding = expandInMs < Number.POSITIVE_INFINITY
  let outcome = isExpanding
    ? retryAfter(expandInMs, 'a volume expansion is retried', { operation: 'ExpandNode' })
    : done
  if (mounted.some(({ sizeLimit }) => sizeLimit !== undefined))
    outcome = retryWithin(outcome, EMPTY_DIR_CHECK_INTERVAL_MS, 'emptyDir volumes with a size limit are measured')
  if (anyRequiresRepublish(volumes, deps))
    outcome = retryWithin(outcome, REPUBLISH_INTERVAL_MS, 'a driver requires republishing')
  if (mounted.some(({ filesDigest }) => filesDigest))
    outcome = retryWithin(outcome, PROJECTION_REFRESH_INTERVAL_MS, 'projected volumes are refreshed')
  return outcome
}

/** Returns undefined if the volume is mounted. */
async function tryMount(
  pod: Readonly<Stored<Pod>>,
  uid: string,
  usedVolume: UsedVolume,
  { volumes, deps, signal }: { volumes: Map<string, MountedVolume>; deps: PodDeps; signal: AbortSignal },
): Promise<VolumeError | undefined> {
  const pendingError = deps.mountBackoff.pendingError(uid, usedVolume.name)
  if (pendingError) return pendingError
  try {
    volumes.set(usedVolume.name, await mount(pod, uid, usedVolume, { volumes, deps, signal }))
    deps.mountBackoff.recordSuccess(uid, usedVolume.name)
    return undefined
  } catch (error) {
    const problem = error instanceof VolumeError ? error : toVolumeError(error, usedVolume)
    const isReported = !problem.isWaiting || problem.reason === 'FailedAttachVolume'
    if (isReported && !signal.aborted) {
      deps.events.record(podKind, pod, { type: 'Warning', reason: problem.reason, message: problem.message })
    }
    deps.mountBackoff.recordFailure(uid, usedVolume.name, problem)
    return problem
  }
}

/** Converts an unexpected error, such as a full disk, a missing permission or an unavailable server. */
const toVolumeError = (error: unknown, { name }: UsedVolume) =>
  new VolumeError(`MountVolume.SetUp failed for volume "${name}" : ${(error as Error).message}`, { cause: error })

async function mount(
  pod: Readonly<Stored<Pod>>,
  uid: string,
  usedVolume: UsedVolume,
  { volumes, deps, signal }: { volumes: Map<string, MountedVolume>; deps: PodDeps; signal: AbortSignal },
): Promise<MountedVolume> {
  const resolved = resolveVolume(pod, usedVolume, deps)
  const publishedMs = deps.clock.monotonicMs()
  switch (resolved.is) {
    case 'hostPath': {
      const path = await prepareHostPath(resolved.source, usedVolume.name, deps)
      return { path, isHostPath: true, isDevice: usedVolume.isDevice, readOnly: resolved.readOnly, publishedMs }
    }
    case 'emptyDir': {
      const previous = volumes.get(usedVolume.name)
      if (previous) return previous
      const { inMemory, sizeLimit } = resolved
      const { fsGroup } = pod.spec?.securityContext ?? {}
      const path = await makeEmptyDir(uid, usedVolume.name, { ...resolved, fsGroup }, deps)
      const limit = inMemory || sizeLimit === undefined ? {} : { sizeLimit } // a tmpfs has its own limit
      return { path, isDevice: false, readOnly: false, publishedMs, ...limit }
    }
    case 'projected':
      return mountProjected(pod, uid, usedVolume.name, { resolved, previous: volumes.get(usedVolume.name), deps })
    case 'csi': {
      const { volume } = resolved
      const previous = volumes.get(usedVolume.name)
      const isDue =
        previous && requiresRepublish(volume, deps) && publishedMs - previous.publishedMs >= REPUBLISH_INTERVAL_MS
      const isPublished =
        previous?.publication && deps.completedSteps.published.has(publicationKey(previous.publication)) && !isDue
      const publication = isPublished ? previous.publication! : await mountCsiVolume(pod, volume, deps, signal)
      const expandInMs = await tryExpand({ pod, volume, publication }, deps, signal)
      const path = volume.mode === 'Block' ? deps.paths.blockLink(uid, volume.name) : publication.target
      return {
        path,
        isDevice: volume.mode === 'Block',
        readOnly: volume.readOnly,
        publication,
        csi: volume,
        publishedMs: isPublished ? previous.publishedMs : publishedMs,
        expandInMs,
      }
    }
  }
}

/** Reads the objects and writes the files. If a later read fails, the volume keeps its files until the next attempt. */
async function mountProjected(
  pod: Readonly<Stored<Pod>>,
  uid: string,
  name: string,
  {
    resolved,
    previous,
    deps,
  }: { resolved: Extract<ResolvedVolume, { is: 'projected' }>; previous: MountedVolume | undefined; deps: PodDeps },
): Promise<MountedVolume> {
  const publishedMs = deps.clock.monotonicMs()
  const { labels, annotations } = pod.metadata
  const podMetadata = JSON.stringify([labels, annotations])
  const isCurrent =
    previous?.podMetadata === podMetadata && publishedMs - previous.publishedMs < PROJECTION_REFRESH_INTERVAL_MS
  if (previous?.filesDigest && isCurrent) return previous
  try {
    const { files, tokens } = await readProjectedFiles(pod, resolved.projections, previous?.tokens ?? new Map(), deps)
    const hasSecrets = resolved.projections.sources.some(({ secret }) => secret)
    const { fsGroup } = pod.spec?.securityContext ?? {}
    const version = { files, hasSecrets, fsGroup }
    const { path, digest } = await writeProjectedVolume(uid, name, version, previous?.filesDigest, deps)
    return { path, isDevice: false, readOnly: true, publishedMs, podMetadata, filesDigest: digest, tokens }
  } catch (error) {
    if (!previous?.filesDigest) throw error
    const message = `MountVolume.SetUp failed for volume "${name}" : ${(error as Error).message}`
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'FailedMount', message })
    return { ...previous, publishedMs, podMetadata }
  }
}

/** Expands the volume if necessary. A failure only records an event, because the volume stays usable. */
async function tryExpand(published: PublishedVolume, deps: PodDeps, signal: AbortSignal): Promise<number | undefined> {
  try {
    return await deps.expand(published, signal)
  } catch (error) {
    if (signal.aborted) throw error
    const message = `NodeExpandVolume failed for volume "${published.volume.name}" : ${(error as Error).message}`
    deps.events.record(podKind, published.pod, { type: 'Warning', reason: 'VolumeResizeFailed', message })
    return EXPAND_RETRY_DELAY_MS
  }
}

const requiresRepublish = ({ driver }: CsiVolume, deps: PodDeps): boolean =>
  deps.csiDrivers.get({ name: driver })?.spec.requiresRepublish ?? false

const anyRequiresRepublish = (volumes: ReadonlyMap<string, MountedVolume>, deps: PodDeps): boolean =>
  [...volumes.values()].some(({ csi }) => csi !== undefined && requiresRepublish(csi, deps))

interface UnmountedVolume {
  readonly name: string
  readonly problem: VolumeError
}

async function waitForVolumes(
  pod: Readonly<Stored<Pod>>,
  uid: string,
  unmounted: readonly UnmountedVolume[],
  deps: PodDeps,
): Promise<Outcome> {
  const problems = unmounted.map(({ problem }) => problem.message).join('; ')
  if (deps.mountBackoff.waitedMs(uid) >= MOUNT_TIMEOUT_MS) {
    deps.mountBackoff.resetWait(uid)
    const names = unmounted.map(({ name }) => name).join(' ')
    const message = `Unable to attach or mount volumes: unmounted volumes=[${names}]: timed out waiting for the condition: ${problems}`
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'FailedMount', message })
  }
  // A pod that was running before the agent restarted stays Running.
  if (pod.status?.phase !== 'Running') {
    await writeStatus(pod, viewOfAll(pod, { is: 'waiting', reason: 'ContainerCreating', message: problems }), deps)
  }
  const untilTimeoutMs = Math.max(0, MOUNT_TIMEOUT_MS - deps.mountBackoff.waitedMs(uid))
  const retryInMs = Math.min(deps.mountBackoff.retryInMs(uid), untilTimeoutMs)
  return retryAfter(retryInMs, problems, detailsOf(unmounted[0]!.problem))
}

const detailsOf = (problem: VolumeError): OperationDetails => ({
  reason: problem.isWaiting ? 'WaitingForVolume' : problem.reason,
  isFailure: !problem.isWaiting,
  ...(problem.waitsFor ? { waitsFor: problem.waitsFor } : {}),
  ...operationDetailsOf(problem),
})

async function terminatePod(
  pod: Readonly<Stored<Pod>>,
  uid: string,
  deps: PodDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const graceSeconds =
    pod.metadata.deletionGracePeriodSeconds ?? pod.spec?.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS
  const pendingOutcome = await stopPod(uid, deps, signal, { pod, graceSeconds })
  if (pendingOutcome) return pendingOutcome
  const isMarkedForRemoval = pod.metadata.deletionGracePeriodSeconds === 0
  if (!hasTerminated(pod)) await writeStatus(pod, await deps.containers.finalView(pod), deps, { isStopped: true })
  if (isMarkedForRemoval) return done // finalizers delay the removal
  const { name, namespace } = pod.metadata
  await deps.client.delete(podKind, { namespace, name }, { gracePeriodSeconds: 0, uid }).catch(ignoreIfChanged)
  return done
}

/** Returns undefined if the containers have stopped and all volumes are unmounted. */
async function stopPod(
  uid: string,
  deps: PodDeps,
  signal: AbortSignal,
  { pod, graceSeconds = 0 }: { readonly pod?: Readonly<Stored<Pod>>; readonly graceSeconds?: number } = {},
): Promise<Outcome | undefined> {
  if (!(await deps.containers.stop(uid, graceSeconds))) return stuck('waiting for the processes of the pod to exit')
  const problems: string[] = []
  for (const path of await deps.disk.mountsUnder(deps.paths.subPaths(uid))) await deps.disk.unmount(path)
  await Promise.all(
    deps.records
      .publicationsOfPod(uid)
      .map((publication) =>
        unmountCsiVolume(publication, deps, signal).catch((error: Error) => void problems.push(error.message)),
      ),
  )
  deps.mountedVolumes.delete(uid)
  deps.mountBackoff.removePod(uid)
  if (problems.length === 0) {
    await removeEmptyDirs(uid, deps)
    await removeProjectedVolumes(uid, deps)
    return undefined
  }
  const message = problems.join('; ')
  if (pod && !signal.aborted) deps.events.record(podKind, pod, { type: 'Warning', reason: 'FailedUnmount', message })
  return backOff(message)
}

async function removePod(uid: string, deps: PodDeps, signal: AbortSignal): Promise<Outcome> {
  const pendingOutcome = await stopPod(uid, deps, signal)
  if (pendingOutcome) return pendingOutcome
  const { disk, paths } = deps
  await deps.containers.removeRecords(uid)
  await disk.removeTree(paths.subPaths(uid))
  for (const path of [
    paths.csiVolumes(uid),
    paths.emptyDirs(uid),
    paths.projectedVolumes(uid),
    paths.blockLinks(uid),
  ]) {
    await disk.removeEmptyDirectory(path)
    await disk.removeEmptyDirectory(dirname(path))
  }
  if (await disk.removeEmptyDirectory(paths.pod(uid))) return done
  return stuck(`${paths.pod(uid)} is not empty; its contents were not created by this agent and are not removed`)
}

async function writeStatus(
  pod: Readonly<Stored<Pod>>,
  view: PodView,
  { client, clock, hostIP }: PodDeps,
  options: StatusOptions = {},
): Promise<void> {
  const next: PodStatus = statusOf(pod, { ...view, hostIP }, clock.nowMs(), options)
  const status = statusPatch(pod.status, next)
  if (!status) return
  const { name, namespace, uid } = pod.metadata
  const patch = { type: 'strategic', body: { metadata: { uid }, status } } as const
  await client.patch(podKind, { namespace, name }, patch, { subresource: 'status' }).catch(ignoreIfChanged)
}

/** Ignores the error if the pod was deleted or changed: the change triggers another reconcile. */
function ignoreIfChanged(error: unknown): undefined {
  if (isNotFound(error) || isConflict(error)) return undefined
  throw error
}
