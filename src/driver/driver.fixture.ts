// Test fixture: a driver on this machine with a socket, a temporary pool and target paths, and one function per step of a
// volume's lifecycle. dispose() removes everything that the fixture created.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { MessageInitShape } from '@bufbuild/protobuf'
import { systemClock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { CsiError } from '../csi/errors.ts'
import {
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapabilitySchema,
  type VolumeContentSourceSchema,
} from '../csi/gen/csi_pb.js'
import { type CsiConnection, connectDriver } from '../csi/index.ts'
import { type HostFixture, startHostFixture } from '../host/host.fixture.ts'
import type { BackendName } from './backends/backend.ts'
import { type RunningDriver, startDriver } from './driver.ts'
import { TOPOLOGY_KEY } from './names.ts'

export const MIB = 1_048_576
export const GIB = 1_073_741_824
export { Mode }

export interface DriverFixture {
  readonly csi: CsiConnection
  readonly machine: HostFixture
  readonly pool: string
  readonly runningDriver: RunningDriver
  /** Log lines as `message {fields}`. */
  readonly logLines: readonly string[]
  /** Returns a staging or target path. */
  path(name: string): string
  stop(): Promise<void>
  start(): Promise<void>
  restart(): Promise<void>
  create(name: string, options?: VolumeOptions): Promise<string>
  stage(id: string, options?: UseOptions): Promise<void>
  publish(id: string, options?: UseOptions): Promise<string>
  unpublish(id: string, targetName?: string): Promise<void>
  unstage(id: string): Promise<void>
  remove(id: string): Promise<void>
  /** Creates, stages and publishes a volume, and returns its id and target path. */
  use(name: string, options?: VolumeOptions): Promise<{ readonly id: string; readonly path: string }>
  dispose(): Promise<void>
}

interface VolumeOptions {
  readonly bytes?: number
  readonly limitBytes?: number
  readonly fsType?: string
  readonly isBlock?: boolean
  readonly parameters?: Record<string, string>
  readonly mutableParameters?: Record<string, string>
  readonly source?: MessageInitShape<typeof VolumeContentSourceSchema>
  readonly topology?: Record<string, string>
}

export interface UseOptions {
  readonly isBlock?: boolean
  readonly fsType?: string
  readonly mode?: Mode
  readonly flags?: string[]
  readonly readonly?: boolean
  readonly targetName?: string
}

export interface DriverFixtureOptions {
  readonly backend: BackendName
  readonly poolBytes?: number
  readonly workloadCgroups?: readonly string[]
  readonly maxVolumesPerNode?: number
  /** Whether volumes can be staged and published only in the directory of the target paths. Default false. */
  readonly hasTargetRoot?: boolean
  /** Puts the pool on a separate disk of this size, which a test can fill. */
  readonly diskBytes?: number
}

export const NODE = 'node-1'
export { TOPOLOGY_KEY } from './names.ts'

export const capabilityOf = (use: UseOptions): MessageInitShape<typeof VolumeCapabilitySchema> => {
  const { isBlock, fsType = '', mode = Mode.SINGLE_NODE_MULTI_WRITER, flags = [] } = use
  const accessMode = { mode }
  if (isBlock) return { accessMode, accessType: { case: 'block', value: {} } }
  return { accessMode, accessType: { case: 'mount', value: { fsType, mountFlags: flags } } }
}

export async function startDriverFixture(options: DriverFixtureOptions): Promise<DriverFixture> {
  const clock = systemClock()
  const machine = await startHostFixture()
  const pool = join(machine.pool, 'pool')
  const endpoint = `unix://${join(machine.pool, 'csi.sock')}`
  if (options.diskBytes !== undefined) await mountDisk(machine, options.diskBytes)
  const logLines: string[] = []
  const log = createCollectingLog(logLines)
  const csi = connectDriver({ address: endpoint, clock, log, timeoutMs: 60_000 })
  let runningDriver: RunningDriver

  const start = async () => {
    runningDriver = await startDriver({
      endpoint,
      nodeId: NODE,
      pool,
      poolBytes: options.poolBytes ?? 20 * GIB,
      backend: options.backend,
      topologyKey: TOPOLOGY_KEY,
      workloadCgroups: options.workloadCgroups ?? [],
      targetRoots: options.hasTargetRoot ? [join(machine.pool, 'targets')] : [],
      maxVolumesPerNode: options.maxVolumesPerNode,
      version: '1.2.3',
      clock,
      log,
    })
  }
  await start()
  await mkdir(join(machine.pool, 'targets'))
  const path = (name: string) => join(machine.pool, 'targets', name)
  const stagingOf = (id: string) => path(`stage-${id}`)

  const fixture: DriverFixture = {
    csi,
    machine,
    pool,
    get runningDriver() {
      return runningDriver
    },
    logLines,
    path,
    start,
    stop: () => runningDriver.stop(),
    async restart() {
      await runningDriver.stop()
      await start()
    },
    async create(
      name,
      { bytes = 320 * MIB, limitBytes = 0, parameters, mutableParameters, source, topology, ...use } = {},
    ) {
      const { volume } = await csi.controller.createVolume({
        name,
        capacityRange: { requiredBytes: BigInt(bytes), limitBytes: BigInt(limitBytes) },
        volumeCapabilities: [capabilityOf(use)],
        parameters: parameters ?? {},
        mutableParameters: mutableParameters ?? {},
        ...(source ? { volumeContentSource: source } : {}),
        ...(topology ? { accessibilityRequirements: { requisite: [{ segments: topology }] } } : {}),
      })
      return volume!.volumeId
    },
    async stage(id, use = {}) {
      await mkdir(stagingOf(id), { recursive: true })
      await csi.node.nodeStageVolume({
        volumeId: id,
        stagingTargetPath: stagingOf(id),
        volumeCapability: capabilityOf(use),
      })
    },
    async publish(id, { targetName = `publish-${id}`, readonly = false, ...use } = {}) {
      await csi.node.nodePublishVolume({
        volumeId: id,
        stagingTargetPath: stagingOf(id),
        targetPath: path(targetName),
        volumeCapability: capabilityOf(use),
        readonly,
      })
      return path(targetName)
    },
    async unpublish(id, targetName = `publish-${id}`) {
      await csi.node.nodeUnpublishVolume({ volumeId: id, targetPath: path(targetName) })
    },
    async unstage(id) {
      await csi.node.nodeUnstageVolume({ volumeId: id, stagingTargetPath: stagingOf(id) })
    },
    async remove(id) {
      await csi.controller.deleteVolume({ volumeId: id })
    },
    async use(name, volumeOptions = {}) {
      const id = await fixture.create(name, volumeOptions)
      await fixture.stage(id, volumeOptions)
      return { id, path: await fixture.publish(id, volumeOptions) }
    },
    async dispose() {
      csi.close()
      await runningDriver.stop()
      await machine.dispose()
    },
  }
  return fixture
}

async function mountDisk(machine: HostFixture, bytes: number): Promise<void> {
  const { host } = machine
  const { device } = await machine.device('disk', bytes)
  await host.filesystems.format(device, 'ext4', { keepReservation: false })
  await host.mounts.mount(device, await machine.directory('pool'), 'ext4')
}

/** Returns the outcome of a call: `OK`, or the error as `ABORTED: …`. */
export async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'OK'
  } catch (error) {
    if (error instanceof CsiError) return `${error.codeName}: ${error.message}`
    throw error
  }
}

function createCollectingLog(lines: string[]): Logger {
  const write = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  return { debug() {}, info: write, warn: write, error: write }
}
