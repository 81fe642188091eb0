// Composes the agent of one node: driver registration, the Node and CSINode objects, pods, volumes, container streams
// and stats. A process can run several agents, each with its own root and name. start-agent.ts creates this machine's agent.

import { setMaxListeners } from 'node:events'
import { csiDriverKind } from '../api/kinds/csi-driver/csi-driver.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import { hasTerminated } from '../api/kinds/pod/has-terminated.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import type { Clock, Random } from '../base/clock.ts'
import { keyedLock } from '../base/keyed-lock.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import type { CsiConnection } from '../csi/index.ts'
import type { IoRates } from '../host/index.ts'
import {
  backOff,
  type CacheSet,
  type ClientMetrics,
  createEventRecorder,
  createWorkQueue,
  done,
  type WorkQueue,
} from '../runtime/index.ts'
import { attachedVolumeNameOf } from '../volumes/attachment-names.ts'
import { type Containers, noContainers } from './commands/containers.ts'
import { createExpandVolume, type ExpandVolume } from './csi/expand-volume.ts'
import { createMountRecords, volumeKey } from './csi/mount-records.ts'
import { createCompletedSteps } from './csi/mount-volume.ts'
import { unstageOrphan } from './csi/unmount-volume.ts'
import { createVolumesInUse } from './csi/volumes-in-use.ts'
import type { NodeDisk } from './disk/disk.ts'
import type { AgentMetrics } from './metrics.ts'
import { createCsiNodeWriter } from './node/csi-node-writer.ts'
import type { MachineInfo } from './node/machine-info.ts'
import { createNodeHeartbeat } from './node/node-heartbeat.ts'
import { releaseFences } from './node/release-fence.ts'
import { agentPaths } from './paths.ts'
import { createMountBackoff } from './pods/mount-backoff.ts'
import { BY_UID, createPodController, incompletePodUids } from './pods/pod-controller.ts'
import { type MountedVolume, type PodDeps, reconcilePod, retryWithin } from './pods/reconcile-pod.ts'
import { usedVolumesOf } from './pods/used-volumes.ts'
import { createDrivers } from './registration/drivers.ts'
import type { PluginCalls } from './registration/plugin-calls.ts'
import type { PluginDirectory } from './registration/plugin-directory.ts'
import { createRegistrar, DIRECT_VERSION } from './registration/registrar.ts'
import { readProvisionedIo } from './stats/provisioned-io.ts'
import { createStatsCollector } from './stats/stats-collector.ts'
import { type StreamOptions, serveStreams } from './streaming/serve-streams.ts'
import { type PodObjects, readVolumeObjectsByName, watchVolumeObjects } from './volume-objects.ts'

export interface NodeAgentDeps {
  readonly nodeName: string
  /** Identifies this agent: stable across restarts, and unique among agents. */
  readonly identity: string
  /** Absolute path of the root directory, which has the same layout as the kubelet's (paths.ts). */
  readonly root: string
  readonly client: Client
  readonly caches: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly clientMetrics?: Partial<ClientMetrics>
  readonly metrics: AgentMetrics
  readonly machine: MachineInfo
  readonly disk: NodeDisk
  readonly plugins: { readonly directory: PluginDirectory; readonly calls: PluginCalls }
  /** The sockets of drivers without node-driver-registrar. */
  readonly driverSockets?: readonly string[]
  connect(endpoint: string): CsiConnection
  /** Returns the IO rates of the volume at this path, or undefined if it is not a separate device. */
  ratesAt?(path: string): Promise<IoRates | undefined>
  /** Runs the containers. Default: volumes are mounted, but no process runs. */
  readonly containers?: Containers
  /** Serves logs and commands of containers to API servers. Default: they are not served. */
  readonly streams?: StreamOptions
  /** Directories whose files and subdirectories pods may mount with hostPath. Default: none. */
  readonly allowedHostPaths?: readonly string[]
  /** Expands volumes. Default: csi/expand-volume.ts. */
  readonly expand?: ExpandVolume
  readonly labels?: Readonly<Record<string, string>>
  /** Whether to read claims, volumes and attachments one by one, for a user who may not list or watch them. Default false. */
  readonly readsByName?: boolean
  /** The maximum number of pods. Default 110. */
  readonly podsMax?: number
  /** How long the node's lease is valid without a renewal. Default 40 s. */
  readonly leaseMs?: number
  /** The interval at which the node's lease is renewed. Default: a quarter of `leaseMs`. */
  readonly renewIntervalMs?: number
  readonly version: string
}

export interface NodeAgent {
  readonly nodeName: string
  /** Returns the pods and volumes whose reconcile is not complete, with the reason. */
  queueStates(): { readonly key: string; readonly message?: string }[]
  /** Whether a reconcile is running or queued. */
  readonly isBusy: boolean
  /** Returns the registered drivers, and the errors of sockets that could not be registered. */
  drivers(): { readonly registered: readonly string[]; readonly problems: Readonly<Record<string, string>> }
  /** Registers a driver without node-driver-registrar, like those of `driverSockets`. Throws if that fails. */
  registerDriver(driver: { readonly name: string; readonly endpoint: string }, signal: AbortSignal): Promise<void>
  unregisterDriver(driver: { readonly name: string; readonly endpoint: string }): Promise<void>
  /** Runs until the signal is aborted and running work has settled. Volumes stay mounted. Throws NodeNameTakenError. */
  run(signal: AbortSignal, onReady?: () => void): Promise<void>
}

const PODS_MAX = 110

export function createNodeAgent(deps: NodeAgentDeps): NodeAgent {
  const { nodeName, client, caches, clock, random, log, disk, metrics } = deps
  const paths = agentPaths(deps.root)
  const events = createEventRecorder({ client, clock, random, log, component: 'kubelet', instance: nodeName })
  const heartbeat = createNodeHeartbeat({
    client,
    nodeName,
    identity: deps.identity,
    machine: deps.machine,
    labels: deps.labels ?? {},
    podsMax: deps.podsMax ?? PODS_MAX,
    version: deps.version,
    cachedNode: () => nodes.get({ name: nodeName }),
    leaseMs: deps.leaseMs,
    renewIntervalMs: deps.renewIntervalMs,
    clock,
    log,
  })
  const csiNodeWriter = createCsiNodeWriter({
    client,
    nodeName,
    clock,
    recordEvent: (node, event) => events.record(nodeKind, node, event),
  })
  const drivers = createDrivers({
    connect: deps.connect,
    addToCsiNode: csiNodeWriter.addDriver,
    removeFromCsiNode: csiNodeWriter.removeDriver,
    clearConflict: csiNodeWriter.clearConflict,
    log,
  })
  const registrar = createRegistrar({
    directory: deps.plugins.directory,
    plugins: deps.plugins.calls,
    drivers,
    driverSockets: deps.driverSockets ?? [],
    readDriverName: (socket, signal) => fetchDriverName(socket, deps.connect, signal),
    clock,
    log,
  })
  const records = createMountRecords({ disk, paths, nodeName, log })
  const containers = deps.containers ?? noContainers()
  const mountBackoff = createMountBackoff({ clock })
  const mountedVolumes = new Map<string, Map<string, MountedVolume>>()
  const statsCollector = createStatsCollector({
    mountedVolumes,
    drivers,
    metrics,
    clock,
    random,
    log,
    isBusy: () => isWorking(controller.queue),
    ratesAt: deps.ratesAt ?? (async () => undefined),
    readProvisionedIo: async ({ csi }) => (csi ? readProvisionedIo(csi, client) : {}),
  })

  const pods = caches.of(podKind, { fieldSelector: `spec.nodeName=${nodeName}` })
  const nodes = caches.of(nodeKind, { fieldSelector: `metadata.name=${nodeName}` })
  const watchedObjects = deps.readsByName ? undefined : watchVolumeObjects(caches)
  const csiDrivers = caches.of(csiDriverKind)
  const objects =
    watchedObjects ?? readVolumeObjectsByName({ client, nodeName, csiDrivers, random, podCount: () => pods.size })
  const podByUid = (uid: string) => pods.byIndex(BY_UID, uid)[0]
  let podDeps: Omit<PodDeps, keyof PodObjects> | undefined

  const controller = createPodController({
    nodeName,
    pods,
    watched: objects.watched,
    csiDrivers,
    nodes,
    clock,
    random,
    log,
    metrics: deps.clientMetrics,
    onRetry: (uid) => mountBackoff.end(uid),
    async reconcile(uid, signal) {
      const pod = podByUid(uid)
      const podObjects = objects.watched ?? (await objects.read(pod, signal))
      const outcome = await reconcilePod(uid, { ...podDeps!, ...podObjects }, signal)
      statsCollector.update(uid)
      if (!pod || pod.metadata.deletionTimestamp || hasTerminated(pod)) {
        objects.forget(uid)
        return outcome
      }
      const isMounted = usedVolumesOf(pod).every(({ name }) => mountedVolumes.get(uid)?.has(name))
      const pollMs = objects.pollAfterMs(pod, podObjects, { isMounted })
      return retryWithin(outcome, pollMs, 'the claims and volumes of the pod are read again')
    },
  })
  /** The volumes that an earlier run of the agent staged and that are not published. */
  const orphanQueue = createWorkQueue({ name: 'node-orphans', clock, random, log })
  containers.onChange((uid) => controller.queue.add(uid))
  containers.onEvent((pod, event) => events.record(podKind, pod, event))
  drivers.onChange(() => {
    mountBackoff.endAll()
    for (const uid of incompletePodUids(controller)) controller.queue.add(uid)
    for (const { key } of orphanQueue.states()) orphanQueue.add(key)
  })

  /** Loads the mount records. Returns the names of the volumes that may still be in use since an earlier run. */
  async function loadRecords(): Promise<string[]> {
    for (const path of [paths.registry, paths.plugins, paths.pods]) await disk.makeDirectory(path, 0o755)
    await records.load()
    // The record of an orphaned staging does not state whether the volume is attached. Report it as in use: this can only
    // delay a detach, whereas omitting it would allow the detach of a mounted volume.
    const attachedPublications = records
      .uids()
      .flatMap((uid) => records.publicationsOfPod(uid).filter(({ attachmentId }) => attachmentId !== ''))
    return [...new Set([...attachedPublications, ...orphanedStagings()].map(attachedVolumeNameOf))].sort()
  }

  const orphanedStagings = () =>
    records.stagings().filter((staging) => records.publicationsOfVolume(staging).length === 0)

  function createPodDeps(initialNames: readonly string[]): Omit<PodDeps, keyof PodObjects> {
    const volumesInUse = createVolumesInUse({ initialNames, report: heartbeat.setVolumesInUse })
    return {
      nodeName,
      client,
      clock,
      events,
      csiDrivers,
      drivers,
      records,
      disk,
      allowedHostPaths: deps.allowedHostPaths ?? [],
      paths,
      volumesInUse,
      metrics,
      lock: keyedLock(),
      completedSteps: createCompletedSteps(),
      containers,
      mountBackoff,
      mountedVolumes,
      expand: deps.expand ?? createExpandVolume({ client, drivers, records, events, metrics, clock, random }),
      hostIP: deps.machine.address,
      resources: deps.machine,
      node: () => ({ name: nodeName, labels: nodes.get({ name: nodeName })?.metadata.labels ?? {} }),
      pod: podByUid,
      needsVolumes: (uid) => {
        const pod = podByUid(uid)
        return pod !== undefined && !pod.metadata.deletionTimestamp
      },
      hasRecord: (uid, volume) => records.publication(uid, volume) !== undefined,
    }
  }

  async function run(signal: AbortSignal, onReady?: () => void): Promise<void> {
    const namesInUse = await loadRecords()
    await heartbeat.register(namesInUse, signal)
    podDeps = createPodDeps(namesInUse)
    await heartbeat.markReady(csiNodeWriter.ensureCsiNode, signal)
    for (const uid of records.uids()) controller.queue.add(uid) // pods deleted while the agent was down cause no event
    for (const staging of orphanedStagings()) orphanQueue.add(volumeKey(staging))
    onReady?.()
    // The first task that fails stops the others: an agent that lost its name must not change volumes.
    const stop = new AbortController()
    const stopSignal = AbortSignal.any([signal, stop.signal])
    setMaxListeners(0, stopSignal) // one listener per driver call
    const tasks = [
      heartbeat.run(stopSignal),
      registrar.run(stopSignal),
      controller.run(stopSignal),
      statsCollector.run(stopSignal),
      events.run(stopSignal),
      orphanQueue.run(unstage, stopSignal),
      releaseFences({ client, nodeName, nodes, records, clock, log }, stopSignal),
      containers.run?.(stopSignal),
      deps.streams && serveContainerStreams(deps.streams, stopSignal),
    ]
    try {
      await Promise.all(tasks)
    } finally {
      stop.abort()
      await Promise.allSettled(tasks)
      drivers.close()
    }
  }

  const serveContainerStreams = (options: StreamOptions, signal: AbortSignal) =>
    serveStreams(
      {
        host: deps.machine.address,
        options,
        containers,
        findPod: (namespace, name) => pods.get({ namespace, name }),
        clock,
        random,
        log,
        onListening(port) {
          log.info({ node: nodeName, port }, 'serving logs and commands of containers to the API server')
          heartbeat.setPort(port).catch((error: Error) => {
            log.warn({ node: nodeName, reason: error.message }, 'cannot write the port of the agent; retrying')
          })
        },
      },
      signal,
    )

  async function unstage(key: string, signal: AbortSignal) {
    const staging = records.stagings().find((candidate) => volumeKey(candidate) === key)
    if (!staging) return done
    try {
      await unstageOrphan(staging, podDeps!, signal)
      return done
    } catch (error) {
      return backOff((error as Error).message)
    }
  }

  return {
    nodeName,
    queueStates: () => [...controller.queue.states(), ...orphanQueue.states()],
    get isBusy() {
      return [controller.queue, orphanQueue].some(isWorking)
    },
    drivers: () => ({ registered: drivers.list().map(({ name }) => name), problems: registrar.problems() }),
    registerDriver: (driver, signal) => drivers.register({ ...driver, version: DIRECT_VERSION }, signal),
    unregisterDriver: drivers.unregister,
    run,
  }
}

const isWorking = (queue: WorkQueue): boolean => queue.stats().depth + queue.stats().running > 0

async function fetchDriverName(
  socket: string,
  connect: NodeAgentDeps['connect'],
  signal: AbortSignal,
): Promise<string> {
  const connection = connect(socket)
  try {
    return (await connection.identity.getPluginInfo({}, { signal })).name
  } finally {
    connection.close()
  }
}
