// Starts the local CSI driver: host, pool, records and CSI services. It serves calls only after it has recovered the state of
// the previous process (pool/reconcile-pool.ts).
import { mkdir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Registry } from 'prom-client'
import type { Clock } from '../base/clock.ts'
import { readTextIfPresent, writePrivateFile } from '../base/files.ts'
import type { Logger } from '../base/log.ts'
import { UsageError } from '../base/usage-error.ts'
import { createCsiPluginMetrics, type ServedDriver, serveDriver } from '../csi/index.ts'
import { parseSocketPath } from '../csi/socket-path.ts'
import { type Host, type HostFacts, openHost, probeHost } from '../host/index.ts'
import { listCgroups } from '../host/limits/hierarchy.ts'
import { watchCgroups } from '../host/limits/watch-cgroups.ts'
import { createRun } from '../host/run.ts'
import type { Backend, BackendName } from './backends/backend.ts'
import { type BackendChoice, chooseBackend } from './backends/choose-backend.ts'
import { createDirectoryBackend } from './backends/directory-backend.ts'
import { createLoopBackend } from './backends/loop-backend.ts'
import type { DriverContext } from './context.ts'
import { createControllerService } from './controller/controller-service.ts'
import { createIdentityService } from './identity-service.ts'
import { createLimitReconciler } from './limits/limit-reconciler.ts'
import { clearStaleLimits } from './limits/stale-limits.ts'
import { createWorkloadCgroups } from './limits/workload-cgroups.ts'
import { createLocks } from './locks.ts'
import { createDriverMetrics } from './metrics.ts'
import { listenMetrics } from './metrics-listener.ts'
import { createNodeService } from './node/node-service.ts'
import { createTargetRoots } from './node/target-roots.ts'
import { createVolumeLimit } from './node/volume-limit.ts'
import { openReserve } from './pool/disk-reserve.ts'
import { createPool, type Pool } from './pool/pool.ts'
import { detectBackend, findUnrecorded, snapshotsIn, stateIn, volumesIn } from './pool/pool-layout.ts'
import { lockPool } from './pool/pool-lock.ts'
import { reconcilePool } from './pool/reconcile-pool.ts'
import { moveAside, openRecordFiles, type Records } from './pool/record-files.ts'
import { parseMountRecord, parseSnapshotRecord, parseVolumeRecord, RECORD_FORMAT } from './pool/records.ts'
import { withCsiErrors } from './to-csi-error.ts'

export interface DriverOptions {
  /** `unix:///run/…/csi.sock` */
  readonly endpoint: string
  readonly nodeId: string
  readonly pool: string
  /** Default: the free space of the pool's file system plus the space of the existing content. */
  readonly poolBytes?: number
  readonly backend: 'auto' | BackendName
  readonly topologyKey: string
  readonly workloadCgroups: readonly string[]
  /** Directories in which volumes are staged and published. Default: any. */
  readonly targetRoots?: readonly string[]
  /** Number of volumes that can be staged at the same time. Default: unlimited. */
  readonly maxVolumesPerNode?: number
  readonly metricsAddress?: { readonly host: string; readonly port: number }
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
}

export interface RunningDriver {
  readonly backend: BackendName
  readonly limitations: readonly string[]
  readonly poolBytes: number
  readonly metricsPort?: number
  /** Sets the cgroups to which a volume's limits are applied, in addition to those of its pods. */
  setWorkloadCgroups: DriverContext['limits']['setWorkloadCgroups']
  /** Accepts no more calls and waits for those in flight for a limited time. Mounts and devices remain, because pods use them. */
  stop(): Promise<void>
}

export async function startDriver(options: DriverOptions): Promise<RunningDriver> {
  const { clock, log } = options
  await mkdir(options.pool, { recursive: true })
  const directory = await realpath(options.pool) // the kernel reports the real paths of backing files
  const lock = await lockPool(directory)
  try {
    const facts = await probeHost({ poolDir: directory, clock })
    const host = await openHost({ clock })
    for (const path of [volumesIn(directory), snapshotsIn(directory), stateIn(directory)])
      await mkdir(path, { recursive: true })
    const { driver, backend } = await openDriver(options, directory, { host, facts })
    const staleDevices = await clearStaleLimits(facts.limits, host.limits)
    if (staleDevices.length > 0)
      log.info({ devices: staleDevices }, 'cleared IO limits of loop devices that have no backing file')
    await reconcilePool(driver)

    const registry = new Registry()
    const metrics = createDriverMetrics(registry, driver, facts)
    const listener =
      options.metricsAddress && (await listenMetrics(options.metricsAddress, { text: metrics.text, log }))
    const server = await serve(options, driver, registry)
    const limitsAbort = new AbortController()
    const limitsRun = driver.limits.run(limitsAbort.signal)
    log.info({ backend: backend.name, pool: directory, poolBytes: driver.pool.sizeBytes }, 'the local driver is ready')
    return {
      backend: backend.name,
      limitations: backend.limitations,
      poolBytes: driver.pool.sizeBytes,
      metricsPort: listener?.port,
      setWorkloadCgroups: driver.limits.setWorkloadCgroups,
      async stop() {
        await server.stop()
        limitsAbort.abort()
        await limitsRun
        await listener?.stop()
        await lock.release()
      },
    }
  } catch (error) {
    await lock.release()
    throw error
  }
}

interface Machine {
  readonly host: Host
  readonly facts: HostFacts
}

async function openDriver(
  options: DriverOptions,
  directory: string,
  machine: Machine,
): Promise<{ driver: DriverContext; backend: Backend }> {
  const { nodeId, topologyKey, clock, log } = options
  const stateDirectory = stateIn(directory)
  const reserve = await openReserve(join(stateDirectory, 'reserve'))
  const sharedOptions = { setAsideDirectory: setAsideIn(directory), reserve, log }
  const volumes = await openRecordFiles({
    ...sharedOptions,
    directory: join(stateDirectory, 'volumes'),
    parse: parseVolumeRecord,
    isDurable: true,
  })
  const snapshots = await openRecordFiles({
    ...sharedOptions,
    directory: join(stateDirectory, 'snapshots'),
    parse: parseSnapshotRecord,
    isDurable: true,
  })
  const targetRoots = await createTargetRoots(options.targetRoots ?? [], directory)
  const mountRecords = await openRecordFiles({
    ...sharedOptions,
    directory: join(stateDirectory, 'presences'), // an earlier name of mount records, which existing pools have
    parse: async (value, id) => {
      const record = parseMountRecord(value, id)
      const problem = 'problem' in record ? undefined : await targetRoots.findProblem(record)
      return problem === undefined ? record : { problem }
    },
    isDurable: false,
  })

  const detectedBackend = await detectBackend(directory)
  const isEmpty = volumes.list().length === 0 && snapshots.list().length === 0 && detectedBackend === undefined
  const recordedBackend = await readMarker(directory, log)
  const poolBackend = isEmpty ? undefined : (recordedBackend ?? detectedBackend)
  const choice = chooseBackend({
    requestedBackend: options.backend,
    existingBackend: poolBackend,
    facts: machine.facts,
  })
  if (choice.backend !== recordedBackend) await writeMarker(directory, choice.backend)
  const backend = createBackend(choice, directory, machine, clock)
  const pool = await openPool(options, directory, machine.host, backend, [volumes, snapshots])
  const locks = createLocks()
  const detectedLimits = machine.facts.limits
  const list = async () => (detectedLimits.version === 'none' ? [] : listCgroups(detectedLimits.root))
  const watch = async (onCreate: () => void) =>
    detectedLimits.version === 'none' ? undefined : watchCgroups(detectedLimits.root, onCreate)
  const cgroups = createWorkloadCgroups({ patterns: options.workloadCgroups, list, watch })
  const limits = createLimitReconciler({ node: backend.node, volumes, mountRecords, locks, cgroups, clock, log })
  const topology = { [topologyKey]: nodeId }
  return {
    driver: {
      nodeId,
      topology,
      volumes,
      snapshots,
      mountRecords,
      pool,
      backend,
      limits,
      locks,
      targetRoots,
      volumeLimit: createVolumeLimit(options.maxVolumesPerNode, mountRecords),
      clock,
      log,
    },
    backend,
  }
}

const markerIn = (directory: string) => join(stateIn(directory), 'pool.json')

const setAsideIn = (directory: string) => join(stateIn(directory), 'set-aside')

/** Returns the backend that is recorded in the marker file of the pool, if it is readable. */
async function readMarker(directory: string, log: Logger): Promise<BackendName | undefined> {
  const path = markerIn(directory)
  const text = await readTextIfPresent(path)
  if (text === undefined) return undefined
  try {
    const { backend } = JSON.parse(text) as { backend?: BackendName }
    if (backend === 'loop' || backend === 'directory') return backend
  } catch {
    // The error is reported below, like any other invalid content.
  }
  const movedTo = await moveAside(path, setAsideIn(directory))
  log.error(
    { file: path, movedTo },
    'the pool marker is invalid and was set aside; detecting the backend from the content of the pool',
  )
  return undefined
}

const writeMarker = (directory: string, backend: BackendName) =>
  writePrivateFile(markerIn(directory), `${JSON.stringify({ format: RECORD_FORMAT, backend })}\n`)

function createBackend(
  { backend, message }: BackendChoice,
  pool: string,
  { host, facts }: Machine,
  clock: Clock,
): Backend {
  if (backend === 'loop') return createLoopBackend({ host, facts, pool })
  return createDirectoryBackend({ files: host.files, usage: host.usage, run: createRun({ clock }), pool, message })
}

async function openPool(
  { poolBytes }: DriverOptions,
  directory: string,
  host: Host,
  backend: Backend,
  records: readonly Pick<Records<{ readonly id: string }>, 'list'>[],
): Promise<Pool> {
  const freeBytes = async () => (await host.usage.measureFilesystem(directory)).availableBytes
  let allocatedBytes = 0
  if (poolBytes === undefined) {
    const ids = records.flatMap((file) => file.list()).map(({ id }) => id)
    const { unknownContent } = await findUnrecorded(directory, (id) => ids.includes(id))
    for (const id of [...ids, ...unknownContent.flatMap((content) => content.id ?? [])])
      allocatedBytes += await backend.contents.allocatedBytes(id as never).catch(() => 0)
  }
  const sizeBytes = poolBytes ?? (await freeBytes()) + allocatedBytes
  if (sizeBytes <= 0) {
    throw new UsageError(
      `The disk of the pool ${directory} has no free space: the pool would have 0 bytes. Choose another --pool.`,
    )
  }
  return createPool({
    directory,
    sizeBytes,
    freeBytes,
    allocatesOnCreate: backend.allocatesOnCreate,
  })
}

async function serve(
  { endpoint, version, clock, log }: DriverOptions,
  driver: DriverContext,
  registry: Registry,
): Promise<ServedDriver> {
  await mkdir(dirname(parseSocketPath(endpoint)), { recursive: true })
  return serveDriver({
    endpoint,
    identity: createIdentityService(version, driver.backend),
    controller: withCsiErrors(createControllerService(driver)),
    node: withCsiErrors(createNodeService(driver)),
    clock,
    log,
    metrics: createCsiPluginMetrics(registry),
  })
}
