// Tests the loop backend.
import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type DriverFixture, GIB, MIB, Mode, outcomeOf, startDriverFixture } from '../src/driver/driver.fixture.ts'
import { type SnapshotId, snapshotIdOf, type VolumeId, volumeIdOf } from '../src/driver/ids.ts'
import { imagePathOf } from '../src/driver/pool/pool-layout.ts'
import type { VolumeRecord } from '../src/driver/pool/records.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'

const facts = await probeThisMachine()
const skipMessage = skipReason(facts, ['loop', 'mount', 'xfs', 'ext4'])

describe.skipIf(skipMessage)(`loop volumes${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let fixture: DriverFixture
  beforeAll(async () => {
    fixture = await startDriverFixture({ backend: 'loop' })
  })
  afterAll(() => fixture?.dispose())

  const listLoops = async () =>
    (await fixture.machine.host.loops.list()).filter(({ file }) => file.startsWith(fixture.pool))
  const imageOf = (id: string) => imagePathOf(fixture.pool, id as VolumeId)
  const readTotalBytes = async (path: string) =>
    Number((await fixture.machine.host.usage.measureFilesystem(path)).totalBytes)
  const expand = (volumeId: string, bytes: number) =>
    fixture.csi.controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: BigInt(bytes) } })
  const expandNode = (volumeId: string, volumePath: string) =>
    fixture.csi.node.nodeExpandVolume({ volumeId, volumePath })
  /** Returns the files of a volume in the pool, and the devices on them. */
  const findLeftovers = async (id: string) => [
    ...(await readdir(join(fixture.pool, 'volumes'))).filter((file) => file.startsWith(id)),
    ...(await readdir(join(fixture.pool, '.stowage', 'volumes'))).filter((file) => file.startsWith(id)),
    ...(await listLoops()).filter(({ file }) => file === imageOf(id)).map(({ device }) => device),
  ]
  const removeVolume = async (id: string, targetName?: string) => {
    await fixture.unpublish(id, targetName)
    await fixture.unstage(id)
    await fixture.remove(id)
    expect(await findLeftovers(id)).toEqual([])
  }

  describe('space', () => {
    it('PROV-19 allocates the space of a reserved volume at creation and of a thin volume on write', async () => {
      const reservedVolume = await fixture.use('reserved')
      expect(
        (await fixture.machine.host.files.sizes(imageOf(reservedVolume.id)))?.allocatedBytes,
      ).toBeGreaterThanOrEqual(320 * MIB)
      await removeVolume(reservedVolume.id)
      const thinVolume = await fixture.use('thin', { bytes: 10 * GIB, parameters: { provisioning: 'thin' } })
      expect((await fixture.machine.host.files.sizes(imageOf(thinVolume.id)))?.allocatedBytes).toBeLessThan(200 * MIB)
      await removeVolume(thinVolume.id)
    })

    it.each([
      ['xfs', 128 * MIB, 300 * MIB],
      ['ext4', 1000, 16 * MIB],
    ])(
      'rounds up a size that is too small for %s, and rejects it if the limit is less than the minimum',
      async (fsType, bytes, minimum) => {
        const smallCreate = fixture.create('small', { fsType, bytes, limitBytes: minimum - 1 })
        expect(await outcomeOf(smallCreate)).toMatch(
          new RegExp(`^OUT_OF_RANGE: A volume with ${fsType} needs at least`),
        )
        expect(await readdir(join(fixture.pool, 'volumes'))).toEqual([])
        const id = await fixture.create('small', { fsType, bytes })
        expect(await fixture.create('small', { fsType, bytes })).toBe(id)
        const { volume } = await fixture.csi.controller.controllerGetVolume({ volumeId: id })
        expect(volume?.capacityBytes).toBe(BigInt(minimum))
        await fixture.remove(id)
      },
    )

    it('keeps the exact size if it is not a multiple of the page size', async () => {
      const { id } = await fixture.use('uneven', { bytes: 300 * MIB + 777 })
      const { volume } = await fixture.csi.controller.controllerGetVolume({ volumeId: id })
      expect(volume?.capacityBytes).toBe(BigInt(300 * MIB + 777))
      expect((await stat(imageOf(id))).size).toBe(300 * MIB + 4096)
      await removeVolume(id)
    })
  })

  describe('file systems', () => {
    it('REX-1 expands xfs while it is published', async () => {
      const { id, path } = await fixture.use('xfs-grows')
      const sizeBefore = await readTotalBytes(path)
      expect((await expand(id, GIB)).nodeExpansionRequired).toBe(true)
      expect((await expandNode(id, path)).capacityBytes).toBe(BigInt(GIB))
      expect((await readTotalBytes(path)) - sizeBefore).toBeGreaterThan(600 * MIB)
      const excessiveExpansion = fixture.csi.node.nodeExpandVolume({
        volumeId: id,
        volumePath: path,
        capacityRange: { requiredBytes: BigInt(2 * GIB) },
      })
      expect(await outcomeOf(excessiveExpansion)).toMatch(/^OUT_OF_RANGE: .*at the controller first/)
      await removeVolume(id)
    })

    const onlineSkip = skipReason(facts, ['ext4OnlineGrowth'])
    it.skipIf(onlineSkip)(`REX-1 expands ext4 in use${onlineSkip ? ` (${onlineSkip})` : ''}`, async () => {
      const { id, path } = await fixture.use('ext4-online', { fsType: 'ext4' })
      await expand(id, GIB)
      await expandNode(id, path)
      expect(await readTotalBytes(path)).toBeGreaterThan(900 * MIB)
      await removeVolume(id)
    })

    const offlineSkip = skipReason(facts, ['ext4OnlineGrowthRefused'])
    it.skipIf(offlineSkip)(
      `REX-1 rejects expansion of ext4 in use and expands it at the next stage${offlineSkip ? ` (${offlineSkip})` : ''}`,
      async () => {
        const { id, path } = await fixture.use('ext4-grows', { fsType: 'ext4' })
        await writeFile(join(path, 'kept'), 'kept')
        await expand(id, GIB)
        expect(await outcomeOf(expandNode(id, path))).toMatch(/^FAILED_PRECONDITION: .*when it is next staged/)
        await fixture.unpublish(id)
        await fixture.unstage(id)
        await fixture.stage(id, { fsType: 'ext4' })
        await fixture.publish(id)
        expect(await readTotalBytes(path)).toBeGreaterThan(900 * MIB)
        expect(await readFile(join(path, 'kept'), 'utf8')).toBe('kept')
        await removeVolume(id)
      },
    )

    it('does not format a volume that was created as a block volume', async () => {
      const { id, path } = await fixture.use('as-block', { isBlock: true })
      execFileSync('mkfs.ext4', ['-q', path])
      await fixture.unpublish(id)
      await fixture.unstage(id)
      expect(await outcomeOf(fixture.stage(id))).toMatch(/^FAILED_PRECONDITION: .*was created as a block volume/)
      expect(await listLoops()).toEqual([])
      await fixture.stage(id, { isBlock: true })
      expect(
        execFileSync('blkid', ['-p', '-o', 'value', '-s', 'TYPE', await fixture.publish(id, { isBlock: true })])
          .toString()
          .trim(),
      ).toBe('ext4')
      await removeVolume(id)
    })

    it('rejects another file system type, the mount flag discard, and unknown mount flags without printing them', async () => {
      const id = await fixture.create('picky')
      expect(await outcomeOf(fixture.stage(id, { fsType: 'ext4' }))).toMatch(
        /^FAILED_PRECONDITION: .*has xfs, not ext4/,
      )
      expect(await outcomeOf(fixture.stage(id, { fsType: 'ntfs' }))).toMatch(/^INVALID_ARGUMENT: fs_type "ntfs"/)
      expect(await outcomeOf(fixture.stage(id, { flags: ['noatime,discard'] }))).toMatch(
        /^INVALID_ARGUMENT: The mount flag "discard"/,
      )
      expect(await outcomeOf(fixture.stage(id, { flags: ['no-such-flag=s3cret'] }))).toMatch(
        /^INVALID_ARGUMENT: .*mount flags/,
      )
      expect(await outcomeOf(fixture.stage(id, { flags: ['no-such-flag=s3cret'] }))).not.toContain('s3cret')
      expect(fixture.logLines.join('\n')).not.toContain('s3cret')
      expect(await listLoops()).toEqual([])
      await fixture.stage(id, { flags: ['noatime'] })
      await fixture.publish(id)
      expect(await outcomeOf(fixture.stage(id, { flags: ['nodiratime'] }))).toMatch(/^ALREADY_EXISTS/)
      await removeVolume(id)
    })

    it('rejects and reports a truncated file instead of extending it', async () => {
      const id = await fixture.create('cut', { parameters: { provisioning: 'thin' } })
      await truncate(imageOf(id), 310 * MIB)
      const isAbnormal = async () =>
        (await fixture.csi.controller.controllerGetVolume({ volumeId: id })).status?.volumeCondition?.abnormal
      expect(await isAbnormal()).toBe(true)
      expect(await outcomeOf(fixture.stage(id))).toMatch(/^FAILED_PRECONDITION: .*has 310Mi of the recorded 320Mi/)
      expect(await outcomeOf(expand(id, GIB))).toMatch(/^FAILED_PRECONDITION: .*it was truncated/)
      await fixture.restart()
      expect((await stat(imageOf(id))).size).toBe(310 * MIB)
      expect(await isAbnormal()).toBe(true)
      expect(await listLoops()).toEqual([])
      await fixture.remove(id)
    })
  })

  describe('publishing', () => {
    it('publishes read-only as a file system and as a device', async () => {
      const id = await fixture.create('seen')
      await fixture.stage(id)
      const path = await fixture.publish(id, { readonly: true })
      await expect(writeFile(join(path, 'x'), '')).rejects.toThrow(/EROFS/)
      expect(await outcomeOf(fixture.publish(id))).toMatch(/^ALREADY_EXISTS: .*read-only/)
      const writablePath = await fixture.publish(id, { targetName: 'writable' })
      await writeFile(join(writablePath, 'x'), 'seen')
      expect(await readFile(join(path, 'x'), 'utf8')).toBe('seen')
      await fixture.unpublish(id, 'writable')
      await removeVolume(id)

      const block = await fixture.create('raw', { isBlock: true })
      await fixture.stage(block, { isBlock: true })
      const device = await fixture.publish(block, { isBlock: true, readonly: true })
      await expect(
        open(device, 'r+').then(async (file) => file.write(Buffer.alloc(4096)).finally(() => file.close())),
      ).rejects.toThrow()
      await fixture.unpublish(block)
      expect(await listLoops()).toHaveLength(1)
      await removeVolume(block)
    })

    it('publishes a reader-only access mode read-only', async () => {
      const id = await fixture.create('reader')
      const mode = Mode.SINGLE_NODE_READER_ONLY
      await fixture.stage(id, { mode })
      await expect(writeFile(join(await fixture.publish(id, { mode }), 'x'), '')).rejects.toThrow(/EROFS/)
      await removeVolume(id)
    })

    it('REX-1 expands a raw device in use, keeps its data, and reports its size', async () => {
      const { id, path } = await fixture.use('device', { isBlock: true, bytes: 64 * MIB })
      const file = await open(path, 'r+')
      await file.write(Buffer.alloc(4096, 7), 0, 4096, 60 * MIB)
      await file.sync()
      await file.close()
      expect((await expand(id, 128 * MIB)).nodeExpansionRequired).toBe(false)
      const [bytes] = (await fixture.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: path })).usage
      expect(bytes?.total).toBe(BigInt(128 * MIB))
      expect(Number(execFileSync('blockdev', ['--getsize64', path]))).toBe(128 * MIB)
      await fixture.restart()
      const reopenedFile = await open(path, 'r')
      expect((await reopenedFile.read(Buffer.alloc(1), 0, 1, 60 * MIB)).buffer[0]).toBe(7)
      await reopenedFile.close()
      await removeVolume(id)
    })

    it("keeps another program's mount at the target path", async () => {
      const id = await fixture.create('elsewhere')
      await fixture.stage(id)
      const path = fixture.path(`publish-${id}`)
      const otherVolume = await fixture.use('other')
      await mkdir(path)
      await fixture.machine.host.mounts.bind(otherVolume.path, path)
      expect(await outcomeOf(fixture.publish(id))).toMatch(/^FAILED_PRECONDITION: .*is not volume/)
      expect(await outcomeOf(fixture.unpublish(id))).toBe('OK') // the volume has no mount at the path
      expect(await fixture.machine.host.mounts.isMountPoint(path)).toBe(true)
      await fixture.machine.host.mounts.unmount(path)
      await rm(path, { recursive: true })
      await fixture.publish(id)
      await fixture.unpublish(otherVolume.id)
      await fixture.unstage(otherVolume.id)
      await fixture.remove(otherVolume.id)
      await removeVolume(id)
    })

    it('does not unstage a published volume', async () => {
      const { id, path } = await fixture.use('busy')
      expect(await outcomeOf(fixture.unstage(id))).toMatch(/^FAILED_PRECONDITION: .*still published at/)
      await writeFile(join(path, 'still'), 'here')
      await removeVolume(id)
    })
  })

  describe('start after a kill', () => {
    const readRecord = async (id: string): Promise<VolumeRecord> =>
      JSON.parse(await readFile(join(fixture.pool, '.stowage', 'volumes', `${id}.json`), 'utf8'))
    const rewriteRecord = async (id: string, change: Partial<VolumeRecord>) =>
      writeFile(
        join(fixture.pool, '.stowage', 'volumes', `${id}.json`),
        JSON.stringify({ ...(await readRecord(id)), ...change }),
      )

    it('completes an interrupted create, and returns the volume for the same name', async () => {
      const id = await fixture.create('creating')
      await fixture.stop()
      await rewriteRecord(id, { state: 'creating' })
      await rm(imageOf(id))
      await fixture.start()
      expect((await fixture.machine.host.files.sizes(imageOf(id)))?.bytes).toBe(320 * MIB)
      expect(await fixture.create('creating')).toBe(id)
      await fixture.remove(id)
      expect(await findLeftovers(id)).toEqual([])
    })

    it.each([
      ['a copy in state creating', { state: 'creating', source: { kind: 'volume', id: volumeIdOf('origin') } }],
      ['a volume in state deleting', { state: 'deleting' }],
    ] as const)('removes %s', async (name, change) => {
      const id = await fixture.create(name)
      await fixture.machine.host.loops.attach(imageOf(id))
      await fixture.stop()
      await rewriteRecord(id, change)
      await fixture.start()
      expect(await findLeftovers(id)).toEqual([])
    })

    it('REX-1 completes an interrupted expansion', async () => {
      const id = await fixture.create('growing')
      await fixture.stop()
      await rewriteRecord(id, { state: 'growing', growingToBytes: 500 * MIB })
      await fixture.start()
      expect((await fixture.csi.controller.controllerGetVolume({ volumeId: id })).volume?.capacityBytes).toBe(
        BigInt(500 * MIB),
      )
      await fixture.stage(id)
      expect((await fixture.machine.host.files.sizes(imageOf(id)))?.allocatedBytes).toBeGreaterThanOrEqual(500 * MIB)
      await fixture.publish(id)
      await removeVolume(id)
    })

    it('formats a partially formatted device again, and records that a published one is in use', async () => {
      const id = await fixture.create('formatting')
      const file = await open(imageOf(id), 'r+')
      await file.write(Buffer.from('part of a file system'), 0, undefined, 4096)
      await file.close()
      await fixture.stage(id)
      await writeFile(join(await fixture.publish(id), 'file'), 'data')
      expect((await readRecord(id)).isUnused).toBeUndefined()
      await removeVolume(id)
    })

    it('thaws only file systems that an interrupted snapshot left frozen', async () => {
      const { id, path } = await fixture.use('frozen')
      const staging = fixture.path(`stage-${id}`)
      const { snapshot } = await fixture.csi.controller.createSnapshot({ name: 'killed', sourceVolumeId: id })
      const record = join(fixture.pool, '.stowage', 'snapshots', `${snapshot!.snapshotId}.json`)
      await fixture.stop()
      execFileSync('fsfreeze', ['-f', staging])
      await fixture.start()
      expect(() => execFileSync('fsfreeze', ['-f', staging], { stdio: 'pipe' })).toThrow(/busy/i) // the driver did not thaw it
      await fixture.stop()
      await writeFile(record, JSON.stringify({ ...JSON.parse(await readFile(record, 'utf8')), state: 'creating' }))
      await fixture.start()
      await writeFile(join(path, 'file'), 'data')
      await removeVolume(id)
    })

    it('detaches unused devices, and keeps an unknown mount', async () => {
      const id = await fixture.create('loose')
      await fixture.stage(id)
      await fixture.unstage(id)
      const device = await fixture.machine.host.loops.attach(imageOf(id))
      await fixture.restart()
      expect(await listLoops()).toEqual([])

      await fixture.stop()
      const attachedDevice = await fixture.machine.host.loops.attach(imageOf(id))
      const mountPoint = await fixture.machine.directory('by-hand')
      await fixture.machine.host.mounts.mount(attachedDevice, mountPoint, 'xfs')
      await fixture.start()
      expect(fixture.logLines.join('\n')).toMatch(/found at startup and not changed .*which has no record/)
      expect(await outcomeOf(fixture.remove(id))).toMatch(/^FAILED_PRECONDITION: .*in use at .*by-hand/)
      await fixture.machine.host.mounts.unmount(mountPoint)
      await fixture.machine.host.loops.detach(attachedDevice)
      await fixture.remove(id)
      expect(device).toMatch(/^\/dev\/loop/)
    })

    it('unstages a volume whose record was set aside while in use and then restored', async () => {
      const { id, path } = await fixture.use('misread')
      const record = join(fixture.pool, '.stowage', 'volumes', `${id}.json`)
      const text = await readFile(record, 'utf8')
      await fixture.stop()
      await writeFile(record, 'x')
      await fixture.start()
      await writeFile(join(path, 'still'), 'in use')
      await fixture.stop()
      await writeFile(record, text)
      await fixture.start()
      await removeVolume(id)
      expect(await fixture.machine.host.mounts.isMountPoint(fixture.path(`stage-${id}`))).toBe(false)
    })

    it('clears records of missing mounts and devices, as after a reboot', async () => {
      const { id, path } = await fixture.use('rebooted', { mutableParameters: { iops: '100' } })
      await writeFile(join(path, 'data'), 'survives')
      await fixture.stop()
      for (const target of [path, fixture.path(`stage-${id}`)]) await fixture.machine.host.mounts.unmount(target)
      for (const { device } of await listLoops()) await fixture.machine.host.loops.detach(device)
      await fixture.start()
      const statsCall = fixture.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: path })
      expect(await outcomeOf(statsCall)).toMatch(/^NOT_FOUND/)
      expect(await readdir(fixture.path(''))).not.toContain(`publish-${id}`)
      await fixture.stage(id)
      expect(await readFile(join(await fixture.publish(id), 'data'), 'utf8')).toBe('survives')
      await removeVolume(id)
    })

    it('removes partial copies, and keeps unknown files', async () => {
      await fixture.stop()
      const partialCopy = `${imagePathOf(fixture.pool, snapshotIdOf('part') as SnapshotId)}.part`
      const foreignFile = join(fixture.pool, 'volumes', 'backup.tar')
      await appendFile(partialCopy, 'half')
      await appendFile(foreignFile, 'precious')
      await appendFile(imageOf(volumeIdOf('unknown')), 'precious too')
      await fixture.start()
      expect(await readdir(join(fixture.pool, 'snapshots'))).toEqual([])
      expect(await readFile(foreignFile, 'utf8')).toBe('precious')
      expect(await readFile(imageOf(volumeIdOf('unknown')), 'utf8')).toBe('precious too')
      await rm(foreignFile)
      await rm(imageOf(volumeIdOf('unknown')))
    })
  })

  it('reports its backend and missing capabilities in GetPluginInfo', async () => {
    const info = await fixture.csi.identity.getPluginInfo({})
    expect(info).toMatchObject({ name: 'local.csi.stowage.dev', vendorVersion: '1.2.3', manifest: { backend: 'loop' } })
    expect(Object.values(info.manifest).length).toBe(1 + fixture.runningDriver.limitations.length)
  })
})
