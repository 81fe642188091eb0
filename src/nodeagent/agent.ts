// Composes the agent of one node: driver registration, the node's objects, its pods, their volumes and stats. Several
// agents can run in one process, each with its own root and name; start-agent.ts creates one for this machine.

import { setMaxListeners } from 'node:events'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../api/kinds/csi-driver/csi-driver.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../api/kinds/volume-attachment/volume-attachment.ts'
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
import { createVolumesInUse } from './csi/in-use.ts'
import { emptySteps } from './csi/mount.ts'
import { createMountRecords, volumeKey } from './csi/mount-records.ts'
import { unstageOrphan } from './csi/unmount.ts'
import type { NodeDisk } from './disk/disk.ts'
import type { AgentMetrics } from './metrics.ts'
import { createCsiNodeWriter } from './node/csi-node-writer.ts'
import type { MachineInfo } from './node/machine-info.ts'
import { createNodeHeartbeat } from './node/node-heartbeat.ts'
import { agentPaths } from './paths.ts'
import { createAttempts } from './pods/attempts.ts'
import { BY_UID, createPodController, unfinished } from './pods/pod-controller.ts'
import { type MountedVolume, type PodDeps, reconcilePod } from './pods/reconcile-pod.ts'
import { createDrivers } from './registration/drivers.ts'
import type { PluginCalls } from './registration/plugin-calls.ts'
import type { PluginDirectory } from './registration/plugin-directory.ts'
import { createRegistrar } from './registration/registrar.ts'
import { createStatsCollector } from './stats/collect.ts'
import { provisionedIo } from './stats/provisioned.ts'

export interface NodeAgentDeps {
  readonly nodeName: string
  /** Stable across restarts of this agent, unique among agents. */
  readonly identity: string
  /** Absolute; the kubelet's root directory, in its layout. */
  readonly root: string
  readonly client: Client
  readonly caches: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly clientMetrics?: ClientMetrics
  readonly metrics: AgentMetrics
  readonly machine: MachineInfo
  readonly disk: NodeDisk
  readonly plugins: { readonly directory: PluginDirectory; readonly calls: PluginCalls }
  /** Sockets of drivers without node-driver-registrar. */
  readonly driverSockets?: readonly string[]
  connect(endpoint: string): CsiConnection
  /** IO rates of the device behind a path; undefined if the volume is not a separate device. */
  ratesAt?(path: string): Promise<IoRates | undefined>
  /** Default: volumes are mounted, but no process runs. */
  readonly containers?: Containers
  /** Default: NodeExpandVolume (csi/expand-volume.ts). */
  readonly expand?: ExpandVolume
  readonly labels?: Readonly<Record<string, string>>
  /** Default 110. */
  readonly podsMax?: number
  /** How often the node's lease is renewed. Default 10 s. */
  readonly renewMs?: number
  readonly version: string
}

export interface NodeAgent {
  readonly nodeName: string
  /** Pods and volumes that are not done, with the reason. */
  standings(): { readonly key: string; readonly because?: string }[]
  /** Whether any reconcile is running or queued. */
  readonly isBusy: boolean
  /** Registered drivers, and why other sockets are not registered. */
  drivers(): { readonly registered: readonly string[]; readonly problems: Readonly<Record<string, string>> }
  /** Throws NodeNameTakenError. Settles when the last running work has; mounts stay. */
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
    cached: () => nodes.get({ name: nodeName }),
    renewMs: deps.renewMs,
    clock,
    log,
  })
  const csiNodeWriter = createCsiNodeWriter({ client, nodeName, clock })
  const drivers = createDrivers({
    connect: deps.connect,
    announce: csiNodeWriter.addDriver,
    withdraw: csiNodeWriter.removeDriver,
    log,
  })
  const registrar = createRegistrar({
    directory: deps.plugins.directory,
    plugins: deps.plugins.calls,
    drivers,
    driverSockets: deps.driverSockets ?? [],
    nameOf: (socket, signal) => nameAt(socket, deps.connect, signal),
    clock,
    log,
  })
  const records = createMountRecords({ disk, paths, nodeName, log })
  const containers = deps.containers ?? noContainers()
  const attempts = createAttempts({ clock })
  const mounted = new Map<string, Map<string, MountedVolume>>()
  const stats = createStatsCollector({
    mounted,
    drivers,
    metrics,
    clock,
    random,
    log,
    isBusy: () => isWorking(controller.queue),
    ratesAt: deps.ratesAt ?? (async () => undefined),
    provisioned: async ({ csi }) => (csi ? provisionedIo(csi, client) : {}),
  })

  const pods = caches.of(podKind, { fieldSelector: `spec.nodeName=${nodeName}` })
  const nodes = caches.of(nodeKind, { fieldSelector: `metadata.name=${nodeName}` })
  const claims = caches.of(persistentVolumeClaimKind)
  const volumes = caches.of(persistentVolumeKind)
  const attachments = caches.of(volumeAttachmentKind)
  const csiDrivers = caches.of(csiDriverKind)
  const podOf = (uid: string) => pods.byIndex(BY_UID, uid)[0]
  let podDeps: PodDeps | undefined

  const controller = createPodController({
    nodeName,
    pods,
    claims,
    volumes,
    attachments,
    csiDrivers,
    nodes,
    clock,
    random,
    log,
    metrics: deps.clientMetrics,
    async reconcile(uid, signal) {
      const outcome = await reconcilePod(uid, podDeps!, signal)
      stats.look(uid)
      return outcome
    },
  })
  /** Staged volumes without a publication, left by an earlier run of the agent. */
  const orphans = createWorkQueue({ name: 'node-orphans', clock, random, log })
  containers.onChange((uid) => controller.queue.add(uid))
  drivers.onChange(() => {
    attempts.forgetDelays()
    for (const uid of unfinished(controller)) controller.queue.add(uid)
    for (const { key } of orphans.standings()) orphans.add(key)
  })

  /** Loads the mount records; returns the volumes that an earlier run may have left in use. */
  async function load(): Promise<string[]> {
    for (const path of [paths.registry, paths.plugins, paths.pods]) await disk.makeDirectory(path, 0o755)
    await records.load()
    // The record of an orphaned staging does not show whether the volume is attached. Reporting one too many delays a
    // detach; reporting one too few would allow a detach of a mounted volume.
    const attached = records
      .uids()
      .flatMap((uid) => records.ofPod(uid).filter(({ attachmentId }) => attachmentId !== ''))
    return [...new Set([...attached, ...orphanedStagings()].map(attachedVolumeNameOf))].sort()
  }

  const orphanedStagings = () => records.stagings().filter((staging) => records.ofVolume(staging).length === 0)

  /** Composes the dependencies of the pod reconcile. */
  function open(inUseAtStart: readonly string[]): PodDeps {
    const inUse = createVolumesInUse({ atStart: inUseAtStart, report: heartbeat.setVolumesInUse })
    return {
      nodeName,
      client,
      clock,
      events,
      csiDrivers,
      attachments,
      claims,
      volumes,
      drivers,
      records,
      disk,
      paths,
      inUse,
      metrics,
      lock: keyedLock(),
      done: emptySteps(),
      containers,
      attempts,
      mounted,
      expand: deps.expand ?? createExpandVolume({ client, drivers, records, events, metrics, clock, random }),
      hostIP: deps.machine.address,
      node: () => ({ name: nodeName, labels: nodes.get({ name: nodeName })?.metadata.labels ?? {} }),
      pod: podOf,
      isWanted: (uid) => {
        const pod = podOf(uid)
        return pod !== undefined && !pod.metadata.deletionTimestamp
      },
      isOnRecord: (uid, volume) => records.publication(uid, volume) !== undefined,
    }
  }

  async function run(signal: AbortSignal, onReady?: () => void): Promise<void> {
    const inUse = await load()
    await heartbeat.register(inUse, signal)
    podDeps = open(inUse)
    await heartbeat.markReady(csiNodeWriter.ensureCsiNode, signal)
    for (const uid of records.uids()) controller.queue.add(uid) // pods deleted while the agent was down wake no event
    for (const staging of orphanedStagings()) orphans.add(volumeKey(staging))
    onReady?.()
    // The first part to end stops the others: an agent that lost its name must not touch volumes.
    const stop = new AbortController()
    const over = AbortSignal.any([signal, stop.signal])
    setMaxListeners(0, over) // one listener per driver call
    const parts = [
      heartbeat.run(over),
      registrar.run(over),
      controller.run(over),
      stats.run(over),
      events.run(over),
      orphans.run(unstage, over),
    ]
    try {
      await Promise.all(parts)
    } finally {
      stop.abort()
      await Promise.allSettled(parts)
      drivers.close()
    }
  }

  async function unstage(key: string, signal: AbortSignal) {
    const staging = records.stagings().find((one) => volumeKey(one) === key)
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
    standings: () => [...controller.queue.standings(), ...orphans.standings()],
    get isBusy() {
      return [controller.queue, orphans].some(isWorking)
    },
    drivers: () => ({ registered: drivers.list().map(({ name }) => name), problems: registrar.problems() }),
    run,
  }
}

const isWorking = (queue: WorkQueue): boolean => queue.stats().depth + queue.stats().running > 0

async function nameAt(socket: string, connect: NodeAgentDeps['connect'], signal: AbortSignal): Promise<string> {
  const connection = connect(socket)
  try {
    return (await connection.identity.getPluginInfo({}, { signal })).name
  } finally {
    connection.close()
  }
}
