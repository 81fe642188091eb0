// Measures the local CSI driver from CreateVolume to a published volume. The limit is the time of the bare system commands.
import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { VolumeCapability_AccessMode_Mode as Mode } from '../src/csi/gen/csi_pb.js'
import { type CsiDriver, connectDriver } from '../src/csi/index.ts'
import { probeHost } from '../src/host/index.ts'
import { type Figure, type GrowthPoint, medianOf } from './lib/figure.ts'
import { toTotalGrowthFigure } from './lib/growth.ts'
import { startLocalDriver } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'

const run = promisify(execFile)

const ROUNDS = { short: 5, long: 15 }
const WARM_UP_ROUNDS = 2
/** Concurrent volumes. The last number is reported as a figure. */
const PARALLEL_VOLUMES = [9, 27, 80]
const VOLUME_BYTES = 1_073_741_824
const SMALL_VOLUME_BYTES = 314_572_800
/** Above 1, because disks slow down with more concurrent writes. */
const EXPONENT_MAX = 1.2
/** The default file system may take at most 1.3 times as long as the commands. */
const RATIO_MIN = 1 / 1.3

export const driverSuite: Suite = {
  parts: {
    one: (options) =>
      withDriver(options, async (csi) => [
        await measureOne(csi, options, 'xfs'),
        await measureOne(csi, options, 'ext4'),
      ]),
    many: (options) => withDriver(options, (csi) => measureMany(csi, options)),
  },
}

async function withDriver(options: PartOptions, measure: (csi: CsiDriver) => Promise<Figure[]>): Promise<Figure[]> {
  const { dir, profileDir, reportMissing, note } = options
  const facts = await probeHost({ poolDir: dir, clock: systemClock() })
  const missingAbility = [facts.canLoop, facts.filesystems.xfs, facts.filesystems.ext4].find(
    (ability) => !ability.available,
  )
  if (missingAbility && !missingAbility.available) {
    reportMissing('create to published', missingAbility.message)
    return []
  }
  const socket = join(dir, 'csi.sock')
  const program = await startLocalDriver({ socket, pool: join(dir, 'pool'), profileDir })
  const csi = connectDriver({ address: socket, clock: systemClock(), log: silentLog, timeoutMs: 120_000 })
  note(
    'The bare commands: fallocate, losetup, mkfs, mount, mount --bind, one after the other. The driver also writes records\n' +
      'to disk, checks for an existing file system before it formats, and is called over its socket.',
  )
  try {
    return await measure(csi)
  } finally {
    csi.close()
    await program.stop()
  }
}

async function measureOne(
  csi: CsiDriver,
  { dir, isLong, progress }: PartOptions,
  fsType: 'xfs' | 'ext4',
): Promise<Figure> {
  const rounds = isLong ? ROUNDS.long : ROUNDS.short
  progress(`${rounds} volumes with ${fsType}, one after the other`)
  const driverMs: number[] = []
  const commandsMs: number[] = []
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    const request = { dir, name: `one-${fsType}-${round}`, fsType, bytes: VOLUME_BYTES }
    const [byDriver, byCommands] = [
      await measureTime(() => publishWithDriver(csi, request)),
      await measureTime(() => publishWithCommands(request)),
    ]
    await byDriver.result.remove()
    await byCommands.result.remove()
    if (round < 0) continue // warm-up
    driverMs.push(byDriver.ms)
    commandsMs.push(byCommands.ms)
  }
  return {
    name: `create to published, ${fsType}, 1Gi reserved`,
    unit: 'ms',
    value: medianOf(driverMs),
    limit: { value: medianOf(commandsMs), of: 'the bare commands' },
    ...(fsType === 'xfs' ? { target: { ratioMin: RATIO_MIN } } : {}),
  }
}

async function measureMany(csi: CsiDriver, { dir, progress }: PartOptions): Promise<Figure[]> {
  const createRequests = (kind: string, volumes: number) =>
    Array.from({ length: volumes }, (_, number) => ({
      dir,
      name: `many-${volumes}-${kind}-${number}`,
      fsType: 'xfs' as const,
      bytes: SMALL_VOLUME_BYTES,
    }))
  const points: GrowthPoint[] = []
  for (const volumes of PARALLEL_VOLUMES) {
    progress(`${volumes} volumes at once`)
    const byDriver = await measureTime(() =>
      Promise.all(createRequests('driver', volumes).map((request) => publishWithDriver(csi, request))),
    )
    await Promise.all(byDriver.result.map((volume) => volume.remove()))
    points.push({ size: volumes, ms: byDriver.ms })
  }
  const { size: volumes, ms } = points.at(-1)!
  progress(`${volumes} volumes at once by the bare commands`)
  const byCommands = await measureTime(() => Promise.all(createRequests('commands', volumes).map(publishWithCommands)))
  await Promise.all(byCommands.result.map((volume) => volume.remove()))
  return [
    {
      name: `create to published, xfs, ${volumes} at once`,
      unit: '/s',
      value: (volumes * 1_000) / ms,
      limit: { value: (volumes * 1_000) / byCommands.ms, of: 'the bare commands, the same number at once' },
    },
    toTotalGrowthFigure('volumes published at once', { of: 'volumes', points }, EXPONENT_MAX),
  ]
}

interface VolumeRequest {
  readonly dir: string
  readonly name: string
  readonly fsType: 'xfs' | 'ext4'
  readonly bytes: number
}

export interface PublishedVolume {
  remove(): Promise<void>
}

/** Creates, stages and publishes a volume. */
export async function publishWithDriver(
  { controller, node }: CsiDriver,
  { dir, name, fsType, bytes }: VolumeRequest,
): Promise<PublishedVolume> {
  const volumeCapability = {
    accessType: { case: 'mount' as const, value: { fsType } },
    accessMode: { mode: Mode.SINGLE_NODE_MULTI_WRITER },
  }
  const targetPath = join(dir, `${name}-target`)
  const stagingTargetPath = join(dir, `${name}-staging`)
  await mkdir(stagingTargetPath)
  const { volume } = await controller.createVolume({
    name,
    capacityRange: { requiredBytes: BigInt(bytes) },
    volumeCapabilities: [volumeCapability],
  })
  const volumeId = volume!.volumeId
  await node.nodeStageVolume({ volumeId, stagingTargetPath, volumeCapability })
  await node.nodePublishVolume({ volumeId, stagingTargetPath, targetPath, volumeCapability })
  return {
    async remove() {
      await node.nodeUnpublishVolume({ volumeId, targetPath })
      await node.nodeUnstageVolume({ volumeId, stagingTargetPath })
      await controller.deleteVolume({ volumeId })
    },
  }
}

async function publishWithCommands({ dir, name, fsType, bytes }: VolumeRequest): Promise<PublishedVolume> {
  const file = join(dir, `${name}.img`)
  const [staging, target] = [join(dir, `${name}-bare-staging`), join(dir, `${name}-bare-target`)]
  await mkdir(staging)
  await mkdir(target)
  await run('fallocate', ['--length', String(bytes), file])
  const { stdout } = await run('losetup', ['--find', '--show', '--direct-io=on', file])
  const device = stdout.trim()
  await run(...(fsType === 'xfs' ? mkfsXfs : mkfsExt4)(device))
  await run('mount', ['-t', fsType, device, staging])
  await run('mount', ['--bind', staging, target])
  return {
    async remove() {
      await run('umount', [target])
      await run('umount', [staging])
      await run('losetup', ['--detach', device])
      await rm(file)
    },
  }
}

const mkfsXfs = (device: string): [string, string[]] => ['mkfs.xfs', ['-q', '-K', device]]
const mkfsExt4 = (device: string): [string, string[]] => [
  'mkfs.ext4',
  ['-q', '-b', '4096', '-m', '0', '-E', 'nodiscard', device],
]

export async function measureTime<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly ms: number }> {
  const startMs = performance.now()
  const result = await work()
  return { result, ms: performance.now() - startMs }
}
