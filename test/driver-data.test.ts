// Tests that data survives expansion during writes, snapshot, clone, a killed driver, and the removal of every device and
// mount, as after a reboot.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MIB, Mode } from '../src/driver/driver.fixture.ts'
import type { VolumeId } from '../src/driver/ids.ts'
import { imagePathOf } from '../src/driver/pool/pool-layout.ts'
import { type HostFixture, startHostFixture } from '../src/host/host.fixture.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { type LocalDriver, startLocalDriver } from './helpers/local-driver.ts'

const facts = await probeThisMachine()
const skipMessage = skipReason(facts, ['loop', 'mount', 'xfs', 'limits'])
const FILES = 24
const SIZES_MIB = [400, 600, 900, 1_400]
const capability = {
  accessType: { case: 'mount' as const, value: {} },
  accessMode: { mode: Mode.SINGLE_NODE_MULTI_WRITER },
}

describe.skipIf(skipMessage)(`data${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let hostFixture: HostFixture
  let driver: LocalDriver
  let cgroup: string
  beforeAll(async () => {
    hostFixture = await startHostFixture()
    cgroup = (await hostFixture.cgroup('data')).path
    driver = await startLocalDriver({ flags: ['--pool-size', '10Gi', '--workload-cgroup', cgroup] })
  })
  afterAll(async () => {
    await driver?.dispose()
    await hostFixture?.dispose()
  })

  it('REX-1 survives expansion, snapshot, clone, a killed driver and a reboot', async () => {
    const { controller, node } = driver.csi
    const id = await createVolume('orders', { mutable: { iops: '20000', throughput: '2000' } })
    const path = await stageAndPublish(id)
    const checksums = await writeFiles(path, FILES)

    // Expand in steps while a writer verifies every byte that it wrote.
    const writer = startVerifiedWriter(join(path, 'during-expansion'))
    for (const mebibytes of SIZES_MIB.slice(1)) {
      const capacityRange = { requiredBytes: BigInt(mebibytes * MIB) }
      await controller.controllerExpandVolume({ volumeId: id, capacityRange, volumeCapability: capability })
      await node.nodeExpandVolume({ volumeId: id, volumePath: path, capacityRange, volumeCapability: capability })
      await writer.waitForRounds(3)
    }
    expect(await writer.stop()).toBeGreaterThan(9)
    expect(await measureSize(path)).toBeGreaterThan(SIZES_MIB.at(-1)! * MIB * 0.85)

    // Create a snapshot and a clone during writes, then change the original.
    const copyWriter = startVerifiedWriter(join(path, 'during-copy'))
    const { snapshot } = await controller.createSnapshot({ name: 'orders-1', sourceVolumeId: id })
    const clone = await createVolume('clone', {
      source: { type: { case: 'volume', value: { volumeId: id } } },
      mebibytes: 1_600,
    })
    expect(await copyWriter.stop()).toBeGreaterThan(0)
    await writeFile(join(path, 'file-0'), 'changed')
    const changedChecksums = { ...checksums, 'file-0': sha256(Buffer.from('changed')) }
    const clonePath = await stageAndPublish(clone)
    expect(await readChecksums(clonePath)).toEqual(checksums)

    await driver.kill()
    await simulateReboot()
    expect(await driver.leftovers()).toEqual([])
    await driver.start()

    const restoredVolume = await createVolume('restored', {
      source: { type: { case: 'snapshot', value: { snapshotId: snapshot!.snapshotId } } },
      mebibytes: 2_000,
    })
    expect(await readChecksums(await stageAndPublish(id))).toEqual(changedChecksums)
    expect(await readChecksums(await stageAndPublish(clone))).toEqual(checksums)
    expect(await readChecksums(await stageAndPublish(restoredVolume))).toEqual(checksums)
    for (const [volume, mebibytes] of [
      [id, 1_400],
      [clone, 1_600],
      [restoredVolume, 2_000],
    ] as const) {
      expect((await controller.controllerGetVolume({ volumeId: volume })).volume?.capacityBytes).toBe(
        BigInt(mebibytes * MIB),
      )
      expect(await measureSize(pathOf(volume))).toBeGreaterThan(mebibytes * MIB * 0.85)
    }

    const [loop] = await driver.host.loops.findByFile(imagePathOf(driver.pool, id as VolumeId))
    const limits = await driver.host.limits.appliedLimits(loop!.device)
    expect(limits.map(({ cgroup: appliedCgroup }) => appliedCgroup)).toContain(cgroup)
    for (const { limit } of limits) expect(limit).toMatchObject({ writeIops: 20_000, writeBps: 2_000 * MIB })

    for (const volumeId of [id, clone, restoredVolume]) {
      await node.nodeUnpublishVolume({ volumeId, targetPath: pathOf(volumeId) })
      await node.nodeUnstageVolume({ volumeId, stagingTargetPath: `${pathOf(volumeId)}-staging` })
      await controller.deleteVolume({ volumeId })
    }
    await controller.deleteSnapshot({ snapshotId: snapshot!.snapshotId })
    expect(await driver.leftovers()).toEqual([])
    expect(await readdir(join(driver.pool, 'volumes'))).toEqual([])
  })

  const pathOf = (id: string) => join(driver.dir, `target-${id}`)

  type Source = NonNullable<Parameters<LocalDriver['csi']['controller']['createVolume']>[0]['volumeContentSource']>
  async function createVolume(
    name: string,
    {
      mutable = {},
      source,
      mebibytes = SIZES_MIB[0]!,
    }: { mutable?: Record<string, string>; source?: Source; mebibytes?: number },
  ): Promise<string> {
    const { volume } = await driver.csi.controller.createVolume({
      name,
      capacityRange: { requiredBytes: BigInt(mebibytes * MIB) },
      volumeCapabilities: [capability],
      mutableParameters: mutable,
      ...(source ? { volumeContentSource: source } : {}),
    })
    return volume!.volumeId
  }

  async function stageAndPublish(volumeId: string): Promise<string> {
    const path = pathOf(volumeId)
    const stagingTargetPath = `${path}-staging`
    await mkdir(stagingTargetPath, { recursive: true })
    await driver.csi.node.nodeStageVolume({ volumeId, stagingTargetPath, volumeCapability: capability })
    await driver.csi.node.nodePublishVolume({
      volumeId,
      stagingTargetPath,
      targetPath: path,
      volumeCapability: capability,
    })
    return path
  }

  const measureSize = async (path: string) => (await driver.host.usage.measureFilesystem(path)).totalBytes

  /** Removes mounts and devices but keeps the files, as a reboot does. */
  async function simulateReboot(): Promise<void> {
    for (const { target } of (await driver.host.mounts.list()).toReversed()) {
      if (target.startsWith(`${driver.dir}/`)) await driver.host.mounts.unmount(target)
    }
    for (const { device, file } of await driver.host.loops.list()) {
      if (file.startsWith(`${driver.dir}/`)) await driver.host.loops.detach(device)
    }
  }
})

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

async function writeFiles(path: string, count: number): Promise<Record<string, string>> {
  const checksums: Record<string, string> = {}
  for (let number = 0; number < count; number++) {
    const bytes = randomBytes(1 + Math.floor((number / count) * 6 * MIB))
    checksums[`file-${number}`] = sha256(bytes)
    await writeFile(join(path, `file-${number}`), bytes, { flush: true })
  }
  return checksums
}

async function readChecksums(path: string): Promise<Record<string, string>> {
  const checksums: Record<string, string> = {}
  for (const name of await readdir(path)) {
    if (name.startsWith('file-')) checksums[name] = sha256(await readFile(join(path, name)))
  }
  return checksums
}

/** Writes blocks, syncs them and reads them back until it is stopped. Fails if a byte differs. */
function startVerifiedWriter(path: string) {
  let rounds = 0
  let isStopping = false
  const waiters: { round: number; resolve: () => void }[] = []
  const work = (async () => {
    await mkdir(path)
    while (!isStopping) {
      const bytes = randomBytes(512 * 1024)
      const file = await open(join(path, `block-${rounds % 20}`), 'w+')
      await file.write(bytes)
      await file.sync()
      const { buffer } = await file.read(Buffer.alloc(bytes.length), 0, bytes.length, 0)
      await file.close()
      expect(buffer.equals(bytes)).toBe(true)
      rounds++
      for (const { round, resolve } of waiters) if (rounds >= round) resolve()
    }
  })()
  return {
    waitForRounds: (count: number) =>
      Promise.race([work, new Promise<void>((resolve) => waiters.push({ round: rounds + count, resolve }))]),
    async stop() {
      isStopping = true
      await work
      return rounds
    },
  }
}
