// Tests interference by other programs: foreign mounts, frozen file systems, detached devices, a full disk, and files that
// cannot be removed. Such interference must not destroy data or prevent the driver from starting.
import { execFileSync } from 'node:child_process'
import { mkdir, open, readdir, readFile, statfs, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import {
  capabilityOf,
  type DriverFixture,
  type DriverFixtureOptions,
  MIB,
  outcomeOf,
  startDriverFixture,
} from '../src/driver/driver.fixture.ts'
import type { VolumeId } from '../src/driver/ids.ts'
import { imagePathOf } from '../src/driver/pool/pool-layout.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { startLocalDriver } from './helpers/local-driver.ts'

const facts = await probeThisMachine()
const skipMessage = skipReason(facts, ['loop', 'mount', 'xfs', 'ext4'])
const skipSuffix = skipMessage ? ` (${skipMessage})` : ''
const SMALL = { fsType: 'ext4', bytes: 32 * MIB }
const RAW = { isBlock: true, bytes: 32 * MIB }

describe.skipIf(skipMessage)(`foreign mounts, freezes and devices${skipSuffix}`, () => {
  let fixture: DriverFixture
  beforeAll(async () => {
    fixture = await startDriverFixture({ backend: 'loop' })
  })
  afterAll(() => fixture?.dispose())

  const listLoops = async () =>
    (await fixture.machine.host.loops.list()).filter(({ file }) => file.startsWith(fixture.pool))
  const stagingOf = (id: string) => fixture.path(`stage-${id}`)
  const mountTmpfs = async (path: string) => {
    await mkdir(path, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', 'scratch', path])
    await writeFile(join(path, 'foreign'), 'foreign')
  }
  const readForeignFile = (path: string) => readFile(join(path, 'foreign'), 'utf8')
  const unmount = (path: string) => fixture.machine.host.mounts.unmount(path)

  it('does not stage a volume at a foreign mount, and keeps that mount', async () => {
    const id = await fixture.create('one', SMALL)
    await mountTmpfs(stagingOf(id))
    expect(await outcomeOf(fixture.stage(id))).toMatch(/^FAILED_PRECONDITION: scratch \(tmpfs\) is mounted at/)
    expect(await readForeignFile(stagingOf(id))).toBe('foreign')
    expect(await listLoops()).toEqual([])
    await unmount(stagingOf(id))

    const otherVolume = await fixture.use('other', SMALL)
    await writeFile(join(otherVolume.path, 'foreign'), 'foreign')
    const stageAtOtherPath = fixture.csi.node.nodeStageVolume({
      volumeId: id,
      stagingTargetPath: stagingOf(otherVolume.id),
      volumeCapability: capabilityOf({}),
    })
    expect(await outcomeOf(stageAtOtherPath)).toMatch(/^FAILED_PRECONDITION: .*is not volume/)
    expect(await readForeignFile(stagingOf(otherVolume.id))).toBe('foreign')
    expect(await readForeignFile(otherVolume.path)).toBe('foreign')
    expect(await listLoops()).toHaveLength(1)
    await fixture.unpublish(otherVolume.id)
    await fixture.unstage(otherVolume.id)
    for (const volumeId of [id, otherVolume.id]) await fixture.remove(volumeId)
  })

  it('keeps a foreign mount at publish and unpublish', async () => {
    const id = await fixture.create('two', SMALL)
    await fixture.stage(id)
    const path = fixture.path(`publish-${id}`)
    await mountTmpfs(path)
    expect(await outcomeOf(fixture.publish(id))).toMatch(/^FAILED_PRECONDITION: scratch \(tmpfs\) is mounted at/)
    expect(await readForeignFile(path)).toBe('foreign')
    expect(await outcomeOf(fixture.unpublish(id))).toBe('OK')
    expect(await readForeignFile(path)).toBe('foreign')
    await unmount(path)

    await fixture.publish(id)
    await mountTmpfs(path) // mounted over the volume
    expect(await outcomeOf(fixture.unpublish(id))).toMatch(/^FAILED_PRECONDITION: .*is mounted over volume/)
    expect(await readForeignFile(path)).toBe('foreign')
    execFileSync('umount', [path])
    await fixture.unpublish(id)
    await fixture.unstage(id)
    await fixture.remove(id)
  })

  it('does not format a volume that was used as a block device', async () => {
    const { volume } = await fixture.csi.controller.createVolume({
      name: 'both',
      capacityRange: { requiredBytes: BigInt(32 * MIB) },
      volumeCapabilities: [capabilityOf({ fsType: 'ext4' }), capabilityOf({ isBlock: true })],
    })
    const id = volume!.volumeId
    await fixture.stage(id, RAW)
    const device = await open(await fixture.publish(id, RAW), 'r+')
    await device.write(Buffer.from('rows'), 0, 4, 20 * MIB)
    await device.sync()
    await device.close()
    await fixture.unpublish(id)
    await fixture.unstage(id)
    expect(await outcomeOf(fixture.stage(id))).toMatch(
      /^FAILED_PRECONDITION: .*has been in use, so it is not formatted/,
    )
    const image = await readFile(imagePathOf(fixture.pool, id as VolumeId))
    expect(image.toString('latin1', 20 * MIB, 20 * MIB + 4)).toBe('rows')
    await fixture.remove(id)
  })

  it('reattaches a detached device, and never uses the device of another volume', async () => {
    const findBackingFile = async (path: string) => {
      const device = await fixture.machine.host.mounts.sourceOf(path)
      return readFile(`/sys/block/${basename(device!)}/loop/backing_file`, 'utf8')
    }
    const detachedVolume = await fixture.create('detached', RAW)
    await fixture.stage(detachedVolume, RAW)
    const { device } = (await listLoops())[0]!
    execFileSync('losetup', ['--detach', device])
    const newVolume = await fixture.use('new', RAW)
    const path = await fixture.publish(detachedVolume, RAW)
    expect(await findBackingFile(path)).toContain(detachedVolume)
    expect(await findBackingFile(newVolume.path)).toContain(newVolume.id)

    // A published device node may belong to another volume after a detach.
    const publishedDevice = await fixture.machine.host.mounts.sourceOf(path)
    execFileSync('losetup', ['--detach', publishedDevice!])
    const secondVolume = await fixture.create('second', RAW)
    await fixture.stage(secondVolume, RAW)
    await fixture.publish(detachedVolume, RAW)
    expect(await findBackingFile(path)).toContain(detachedVolume)
    for (const id of [detachedVolume, newVolume.id, secondVolume]) {
      await fixture.unpublish(id)
      await fixture.unstage(id)
      await fixture.remove(id)
    }
    expect(await listLoops()).toEqual([])
  })

  it('does not copy a file system that another program froze, and keeps it frozen', async () => {
    const { id } = await fixture.use('frozen', SMALL)
    execFileSync('fsfreeze', ['--freeze', stagingOf(id)])
    const createSnapshot = () =>
      outcomeOf(fixture.csi.controller.createSnapshot({ name: 'frozen', sourceVolumeId: id }))
    expect(await createSnapshot()).toMatch(/^FAILED_PRECONDITION: .*was frozen by another program/)
    expect(() => execFileSync('fsfreeze', ['--freeze', stagingOf(id)], { stdio: 'pipe' })).toThrow(/busy/i)
    expect(await readdir(join(fixture.pool, 'snapshots'))).toEqual([])
    execFileSync('fsfreeze', ['--unfreeze', stagingOf(id)])
    expect(await createSnapshot()).toBe('OK')
    const { entries } = await fixture.csi.controller.listSnapshots({})
    await fixture.csi.controller.deleteSnapshot({ snapshotId: entries[0]!.snapshot!.snapshotId })
    await fixture.unpublish(id)
    await fixture.unstage(id)
    await fixture.remove(id)
  })

  it('creates two concurrent snapshots of one volume', async () => {
    const { id } = await fixture.use('twice', SMALL)
    const createSnapshot = (name: string) => fixture.csi.controller.createSnapshot({ name, sourceVolumeId: id })
    const responses = await Promise.all([createSnapshot('first'), createSnapshot('second')])
    for (const { snapshot } of responses) {
      expect(snapshot?.readyToUse).toBe(true)
      await fixture.csi.controller.deleteSnapshot({ snapshotId: snapshot!.snapshotId })
    }
    await fixture.unpublish(id)
    await fixture.unstage(id)
    await fixture.remove(id)
  })

  it('reports an incomplete deletion until it completes', async () => {
    const id = await fixture.create('kept', SMALL)
    const image = imagePathOf(fixture.pool, id as VolumeId)
    execFileSync('chattr', ['+i', image])
    onTestFinished(() => void execFileSync('sh', ['-c', `test ! -e ${image} || chattr -i ${image}`]))
    expect(await outcomeOf(fixture.remove(id))).toMatch(
      /^FAILED_PRECONDITION: The deletion of volume .* has started and could not be completed: .* cannot be changed/,
    )
    const { status } = await fixture.csi.controller.controllerGetVolume({ volumeId: id })
    expect(status?.volumeCondition).toMatchObject({
      abnormal: true,
      message: expect.stringMatching(/deletion of the volume has started/),
    })
    await fixture.restart()
    execFileSync('chattr', ['-i', image])
    await fixture.remove(id)
    expect(await readdir(join(fixture.pool, 'volumes'))).toEqual([])
  })
})

describe.skipIf(skipMessage)(`a pool on a full disk${skipSuffix}`, () => {
  const withFixture = async (
    options: Partial<DriverFixtureOptions>,
    work: (fixture: DriverFixture) => Promise<void>,
  ) => {
    const fixture = await startDriverFixture({ backend: 'loop', ...options })
    try {
      await work(fixture)
    } finally {
      await fixture.dispose()
    }
  }

  it('does not prevent the driver from starting, serving and deleting', () =>
    withFixture({ diskBytes: 400 * MIB }, async (fixture) => {
      const { id, path } = await fixture.use('a', { ...SMALL, parameters: { provisioning: 'thin' } })
      await fillDisk(join(fixture.pool, 'filler'))
      await fixture.restart()
      expect(fixture.runningDriver.backend).toBe('loop')
      expect(await outcomeOf(fixture.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: path }))).toBe('OK')
      expect(await outcomeOf(fixture.create('b', SMALL))).toMatch(/^RESOURCE_EXHAUSTED: 32Mi does not fit .* available/)
      await fixture.unpublish(id)
      await fixture.unstage(id)
      await fixture.remove(id)
      expect((await fixture.csi.controller.listVolumes({})).entries).toEqual([])
    }))

  it('rejects a snapshot that does not fit the disk, and accepts one of a nearly empty volume', () =>
    withFixture({ diskBytes: 400 * MIB }, async (fixture) => {
      const { id, path } = await fixture.use('a', { fsType: 'ext4', bytes: 200 * MIB })
      const createSnapshot = (name: string) =>
        outcomeOf(fixture.csi.controller.createSnapshot({ name, sourceVolumeId: id }))
      expect(await createSnapshot('nearly-empty')).toBe('OK')
      await writeFile(join(path, 'data'), Buffer.alloc(150 * MIB, 1), { flush: true })
      expect(await createSnapshot('too-much')).toMatch(/^RESOURCE_EXHAUSTED/)
      expect(await readdir(join(fixture.pool, 'snapshots'))).toHaveLength(1)
      await fixture.unpublish(id)
      await fixture.unstage(id)
      await fixture.remove(id)
    }))
})

describe('the directory backend without root', () => {
  it('starts, reports and deletes volumes with unreadable directories', async () => {
    const driver = await startLocalDriver({ flags: ['--pool-size', '1Gi', '--backend', 'directory'], uid: NOBODY })
    try {
      const createVolume = (name: string) =>
        driver.csi.controller.createVolume({ name, volumeCapabilities: [capabilityOf({})] })
      const id = (await createVolume('closed')).volume!.volumeId
      const unreadableDir = join(driver.pool, 'volumes', id, 'closed')
      execFileSync(
        'sh',
        [
          '-c',
          `mkdir -p ${unreadableDir}/in && touch ${unreadableDir}/in/file && chmod 000 ${unreadableDir}/in ${unreadableDir}`,
        ],
        {
          uid: NOBODY,
        },
      )
      await driver.stop()
      await driver.start()
      const { status } = await driver.csi.controller.controllerGetVolume({ volumeId: id })
      expect(status?.volumeCondition?.abnormal).toBe(false)
      await driver.csi.controller.deleteVolume({ volumeId: id })
      expect(await readdir(join(driver.pool, 'volumes'))).toEqual([])
    } finally {
      await driver.dispose()
    }
  })
})

const NOBODY = 65_534

async function fillDisk(path: string): Promise<void> {
  const file = await open(path, 'w')
  try {
    for (const chunk of [Buffer.alloc(MIB, 1), Buffer.alloc(4096, 1)]) {
      try {
        for (;;) await file.write(chunk)
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC')
      }
    }
    await file.sync().catch(() => {})
  } finally {
    await file.close()
  }
  const { bavail } = await statfs(path)
  expect(bavail).toBe(0)
}
