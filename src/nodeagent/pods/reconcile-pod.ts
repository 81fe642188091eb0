// One pod on this node, by its uid: its volumes and containers are brought up, or taken down, as the pod now says.
//   wanted                     mount every volume, then start its containers
//   ended (Succeeded, Failed)  unmount; the pod stays to be looked at
//   being deleted              stop, unmount, and only then let the pod go
//   gone                       the same for what it left on the node, known from the records
import { dirname } from 'node:path'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod, PodStatus } from '../../api/kinds/pod/pod-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import { backOff, done, type EventRecorder, type Outcome, retryAfter, stuck } from '../../runtime/index.ts'
import type { Containers, VolumePath } from '../commands/containers.ts'
import type { Publication } from '../csi/books.ts'
import type { CsiVolume } from '../csi/csi-volume.ts'
import type { GrownVolume, GrowVolume } from '../csi/grow.ts'
import { type MountDeps, mountCsiVolume, publicationKey } from '../csi/mount.ts'
import { unmountCsiVolume } from '../csi/unmount.ts'
import { VolumeProblem } from '../problem.ts'
import type { Attempts } from './attempts.ts'
import { hostPathOf, makeEmptyDir, removeEmptyDirs } from './plain-volumes.ts'
import { everyContainer, type PodView, statusOf, statusPatch } from './pod-status.ts'
import { type ResolveDeps, resolveVolume } from './resolve-volume.ts'
import { subPathProblem } from './sub-paths.ts'
import { type WantedVolume, wantedVolumes } from './wanted-volumes.ts'

export interface PodDeps extends MountDeps, ResolveDeps {
  readonly client: Client
  readonly clock: Clock
  readonly events: EventRecorder
  readonly containers: Containers
  readonly grow: GrowVolume
  readonly attempts: Attempts
  readonly hostIP: string
  /** What is mounted for each pod, by the volume's name in it; for stats and growth. */
  readonly mounted: Map<string, Map<string, MountedVolume>>
  pod(uid: string): Readonly<Pod> | undefined
}

export interface MountedVolume extends VolumePath {
  readonly publication?: Publication
  readonly csi?: CsiVolume
  /** By the monotonic clock. */
  readonly publishedMs: number
  /** When it is to be tried again to let it grow. */
  readonly growsInMs?: number
}

const DIRECTORY_MODE = 0o750
/** A pod whose volumes take longer is told so; what is being tried goes on. */
const PATIENCE_MS = 123_000
/** How often volumes are published again, for drivers that want it. */
const REPUBLISH_MS = 60_000
/** After the server could not be told of a growth. */
const GROW_AGAIN_MS = 5_000

export async function reconcilePod(uid: string, deps: PodDeps, signal: AbortSignal): Promise<Outcome> {
  const pod = deps.pod(uid)
  if (!pod) return forgetPod(uid, deps, signal)
  if (pod.metadata.deletionTimestamp) return endPod(pod, uid, deps, signal)
  if (isFinished(pod)) return (await takeDown(uid, deps, signal, { pod })) ?? done
  return bringUp(pod, uid, deps, signal)
}

export const isFinished = ({ status }: Readonly<Pod>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'

async function bringUp(pod: Readonly<Pod>, uid: string, deps: PodDeps, signal: AbortSignal): Promise<Outcome> {
  await deps.disk.makeDirectory(deps.paths.pod(uid), DIRECTORY_MODE)
  const volumes = deps.mounted.get(uid) ?? new Map<string, MountedVolume>()
  deps.mounted.set(uid, volumes)
  const wanted = wantedVolumes(pod)
  const problems = await Promise.all(wanted.map((one) => tryMount(pod, uid, one, { volumes, deps, signal })))
  const missing = wanted.flatMap(({ name }, index) => (problems[index] ? [{ name, problem: problems[index] }] : []))
  if (missing.length > 0) return waitForVolumes(pod, uid, missing, deps)
  deps.attempts.forgetPod(uid)

  const bad = await subPathProblem(pod, volumes, deps.disk)
  if (bad !== undefined) {
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'Failed', message: `Error: ${bad}` })
    const view = everyContainer(pod, { is: 'waiting', reason: 'CreateContainerConfigError', message: bad })
    await writeStatus(pod, view, deps)
    return backOff(bad)
  }
  await writeStatus(pod, await deps.containers.advance(pod, volumes), deps)
  return lookAgain(volumes, deps)
}

function lookAgain(volumes: ReadonlyMap<string, MountedVolume>, deps: PodDeps): Outcome {
  const growsInMs = Math.min(...[...volumes.values()].map((one) => one.growsInMs ?? Number.POSITIVE_INFINITY))
  const republishMs = republishes(volumes, deps) ? REPUBLISH_MS : Number.POSITIVE_INFINITY
  if (growsInMs < republishMs) return retryAfter(growsInMs, 'a volume that did not grow is tried again')
  return republishMs === REPUBLISH_MS ? retryAfter(REPUBLISH_MS, 'its driver wants it published again') : done
}

/** Undefined: it is there. */
async function tryMount(
  pod: Readonly<Pod>,
  uid: string,
  wanted: WantedVolume,
  { volumes, deps, signal }: { volumes: Map<string, MountedVolume>; deps: PodDeps; signal: AbortSignal },
): Promise<VolumeProblem | undefined> {
  const before = deps.attempts.pending(uid, wanted.name)
  if (before) return before // it failed a moment ago, and its time has not come
  try {
    volumes.set(wanted.name, await mount(pod, uid, wanted, { volumes, deps, signal }))
    deps.attempts.succeeded(uid, wanted.name)
    return undefined
  } catch (error) {
    const problem = error instanceof VolumeProblem ? error : unexpected(error, wanted)
    const isToBeTold = !problem.isWaiting || problem.reason === 'FailedAttachVolume'
    if (isToBeTold && !signal.aborted) {
      deps.events.record(podKind, pod, { type: 'Warning', reason: problem.reason, message: problem.message })
    }
    deps.attempts.failed(uid, wanted.name, problem)
    return problem
  }
}

/** A full disk, a missing right, a server that does not answer: told like every other failure. */
const unexpected = (error: unknown, { name }: WantedVolume) =>
  new VolumeProblem(`MountVolume.SetUp failed for volume "${name}" : ${(error as Error).message}`)

async function mount(
  pod: Readonly<Pod>,
  uid: string,
  wanted: WantedVolume,
  { volumes, deps, signal }: { volumes: Map<string, MountedVolume>; deps: PodDeps; signal: AbortSignal },
): Promise<MountedVolume> {
  const resolved = resolveVolume(pod, wanted, deps)
  const publishedMs = deps.clock.monotonicMs()
  switch (resolved.is) {
    case 'hostPath': {
      const path = await hostPathOf(resolved.source, wanted.name, deps.disk)
      return { path, isDevice: wanted.isDevice, readOnly: resolved.readOnly, publishedMs }
    }
    case 'emptyDir': {
      const path = await makeEmptyDir(uid, wanted.name, resolved, deps)
      return { path, isDevice: false, readOnly: false, publishedMs }
    }
    case 'csi': {
      const { volume } = resolved
      const known = volumes.get(wanted.name)
      const isDue = known && wantsRepublish(volume, deps) && publishedMs - known.publishedMs >= REPUBLISH_MS
      const isThere = known?.publication && deps.done.published.has(publicationKey(known.publication)) && !isDue
      const publication = isThere ? known.publication! : await mountCsiVolume(pod, volume, deps, signal)
      const growsInMs = await tryGrow({ pod, volume, publication }, deps, signal)
      const path = volume.mode === 'Block' ? deps.paths.blockLink(uid, volume.volume) : publication.target
      return {
        path,
        isDevice: volume.mode === 'Block',
        readOnly: volume.readOnly,
        publication,
        csi: volume,
        publishedMs: isThere ? known.publishedMs : publishedMs,
        ...(growsInMs === undefined ? {} : { growsInMs }),
      }
    }
  }
}

/** A volume that does not grow is as usable as it was. */
async function tryGrow(grown: GrownVolume, deps: PodDeps, signal: AbortSignal): Promise<number | undefined> {
  try {
    return await deps.grow(grown, signal)
  } catch (error) {
    if (signal.aborted) throw error
    const because = `NodeExpandVolume failed for volume "${grown.volume.volume}" : ${(error as Error).message}`
    deps.events.record(podKind, grown.pod, { type: 'Warning', reason: 'VolumeResizeFailed', message: because })
    return GROW_AGAIN_MS
  }
}

const wantsRepublish = ({ driver }: CsiVolume, deps: PodDeps): boolean =>
  deps.csiDrivers.get({ name: driver })?.spec.requiresRepublish ?? false

const republishes = (volumes: ReadonlyMap<string, MountedVolume>, deps: PodDeps): boolean =>
  [...volumes.values()].some(({ csi }) => csi !== undefined && wantsRepublish(csi, deps))

interface Missing {
  readonly name: string
  readonly problem: VolumeProblem
}

async function waitForVolumes(
  pod: Readonly<Pod>,
  uid: string,
  missing: readonly Missing[],
  deps: PodDeps,
): Promise<Outcome> {
  const because = missing.map(({ problem }) => problem.message).join('; ')
  if (deps.attempts.waitedMs(uid) >= PATIENCE_MS) {
    deps.attempts.toldToWait(uid)
    const names = missing.map(({ name }) => name).join(' ')
    const message = `Unable to attach or mount volumes: unmounted volumes=[${names}]: timed out waiting for the condition: ${because}`
    deps.events.record(podKind, pod, { type: 'Warning', reason: 'FailedMount', message })
  }
  // A pod that ran before the agent was restarted still does: it is not sent back to the start.
  if (pod.status?.phase !== 'Running') {
    await writeStatus(pod, everyContainer(pod, { is: 'waiting', reason: 'ContainerCreating', message: because }), deps)
  }
  const untilPatienceEndsMs = Math.max(0, PATIENCE_MS - deps.attempts.waitedMs(uid))
  return retryAfter(Math.min(deps.attempts.dueInMs(uid), untilPatienceEndsMs), because)
}

async function endPod(pod: Readonly<Pod>, uid: string, deps: PodDeps, signal: AbortSignal): Promise<Outcome> {
  const graceSeconds = pod.metadata.deletionGracePeriodSeconds ?? pod.spec?.terminationGracePeriodSeconds ?? 30
  const wait = await takeDown(uid, deps, signal, { pod, graceSeconds })
  if (wait) return wait
  const isLetGo = pod.metadata.deletionGracePeriodSeconds === 0
  if (!isFinished(pod)) await writeStatus(pod, await deps.containers.ended(pod), deps, { isOver: true })
  if (isLetGo) return done // what still holds it is not ours to remove
  const { name = '', namespace = '' } = pod.metadata
  await deps.client.delete(podKind, { namespace, name }, { gracePeriodSeconds: 0, uid }).catch(ifChanged)
  return done
}

/** What keeps the pod from being down; undefined once nothing of it is left but its directory. */
async function takeDown(
  uid: string,
  deps: PodDeps,
  signal: AbortSignal,
  { pod, graceSeconds = 0 }: { readonly pod?: Readonly<Pod>; readonly graceSeconds?: number } = {},
): Promise<Outcome | undefined> {
  if (!(await deps.containers.stop(uid, graceSeconds))) return stuck('waiting for its processes to end')
  const problems: string[] = []
  for (const path of await deps.disk.mountsUnder(deps.paths.subPaths(uid))) await deps.disk.unmount(path)
  await Promise.all(
    deps.books
      .ofPod(uid)
      .map((publication) =>
        unmountCsiVolume(publication, deps, signal).catch((error: Error) => void problems.push(error.message)),
      ),
  )
  deps.mounted.delete(uid)
  deps.attempts.forgetPod(uid)
  if (problems.length === 0) {
    await removeEmptyDirs(uid, deps)
    return undefined
  }
  const message = problems.join('; ')
  if (pod && !signal.aborted) deps.events.record(podKind, pod, { type: 'Warning', reason: 'FailedUnmount', message })
  return backOff(message)
}

async function forgetPod(uid: string, deps: PodDeps, signal: AbortSignal): Promise<Outcome> {
  const wait = await takeDown(uid, deps, signal)
  if (wait) return wait
  const { disk, paths } = deps
  await deps.containers.forget(uid)
  await disk.removeScratch(paths.subPaths(uid))
  for (const path of [paths.csiVolumes(uid), paths.emptyDirs(uid), paths.blockLinks(uid)]) {
    await disk.removeEmptyDirectory(path)
    await disk.removeEmptyDirectory(dirname(path))
  }
  if (await disk.removeEmptyDirectory(paths.pod(uid))) return done
  return stuck(`${paths.pod(uid)} is not empty: what lies there was not made by this agent, and is left alone`)
}

async function writeStatus(
  pod: Readonly<Pod>,
  view: PodView,
  { client, clock, hostIP }: PodDeps,
  options: { readonly isOver?: boolean } = {},
): Promise<void> {
  const next: PodStatus = statusOf(pod, { ...view, hostIP }, clock.nowMs(), options)
  const status = statusPatch(pod.status, next)
  if (!status) return
  const { name = '', namespace = '', uid } = pod.metadata
  const patch = { type: 'strategic', body: { metadata: { uid }, status } } as const
  await client.patch(podKind, { namespace, name }, patch, { subresource: 'status' }).catch(ifChanged)
}

/** Gone, or another pod of the same name: the next event says so. */
function ifChanged(error: unknown): undefined {
  if (error instanceof ApiError && (error.code === 404 || error.code === 409)) return undefined
  throw error
}
