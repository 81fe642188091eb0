// Tests of the loop backend only: raw devices, read-only use, online expansion, file systems that are never overwritten,
// and recovery of what a killed driver left.
import { execFileSync } from 'node:child_process'
import { appendFile, mkdir, open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type DriverFixture, GIB, MIB, Mode, outcomeOf, startDriverFixture } from '../src/driver/driver.fixture.ts'
import { type SnapshotId, snapshotIdOf, type VolumeId, volumeIdOf } from '../src/driver/ids.ts'
import { imageOf } from '../src/driver/pool/pool-layout.ts'
import type { VolumeRecord } from '../src/driver/pool/records.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'

const facts = await probeThisMachine()
const skipped = skipReason(facts, ['loop', 'mount', 'xfs', 'ext4'])

describe.skipIf(skipped)(`loop volumes${skipped ? ` (${skipped})` : ''}`, () => {
  let fixture: DriverFixture
  beforeAll(async () => {
    fixture = await startDriverFixture({ backend: 'loop' })
  })
  afterAll(() => fixture?.dispose())

  const loops = async () =>
    (await fixture.machine.host.loops.list()).filter(({ file }) => file.startsWith(fixture.pool))
  const image = (id: string) => imageOf(fixture.pool, id as VolumeId)
  const totalBytes = async (path: string) => Number((await fixture.machine.host.usage.ofFilesystem(path)).totalBytes)
  const expand = (volumeId: string, bytes: number) =>
    fixture.csi.controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: BigInt(bytes) } })
  const expandNode = (volumeId: string, volumePath: string) =>
    fixture.csi.node.nodeExpandVolume({ volumeId, volumePath })
  /** Files of a volume in the pool, and devices on them. */
  const traces = async (id: string) => [
    ...(await readdir(join(fixture.pool, 'volumes'))).filter((file) => file.startsWith(id)),
    ...(await readdir(join(fixture.pool, '.stowage', 'volumes'))).filter((file) => file.startsWith(id)),
    ...(await loops()).filter(({ file }) => file === image(id)).map(({ device }) => device),
  ]
  const dismantle = async (id: string, at?: string) => {
    await fixture.unpublish(id, at)
    await fixture.unstage(id)
    await fixture.remove(id)
    expect(await traces(id)).toEqual([])
  }

  describe('space', () => {
    it('PROV-19 a reserved volume has its space, also after formatting; a thin one allocates on write', async () => {
      const reserved = await fixture.use('reserved')
      expect((await fixture.machine.host.files.sizes(image(reserved.id)))?.allocatedBytes).toBeGreaterThanOrEqual(
        320 * MIB,
      )
      await dismantle(reserved.id)
      const thin = await fixture.use('thin', { bytes: 10 * GIB, parameters: { provisioning: 'thin' } })
      expect((await fixture.machine.host.files.sizes(image(thin.id)))?.allocatedBytes).toBeLessThan(200 * MIB)
      await dismantle(thin.id)
    })

    it.each([
      ['xfs', 299 * MIB, /^OUT_OF_RANGE: A volume with xfs needs at least 300Mi/],
      ['ext4', 1000, /^OUT_OF_RANGE: A volume with ext4 needs at least/],
    ])('SYS-6 a volume too small for %s is refused', async (fsType, bytes, message) => {
      expect(await outcomeOf(fixture.create('small', { fsType, bytes }))).toMatch(message)
      expect(await readdir(join(fixture.pool, 'volumes'))).toEqual([])
    })

    it('SYS-6 keeps a size that is not a multiple of the page size to the byte', async () => {
      const { id } = await fixture.use('uneven', { bytes: 300 * MIB + 777 })
      const { volume } = await fixture.csi.controller.controllerGetVolume({ volumeId: id })
      expect(volume?.capacityBytes).toBe(BigInt(300 * MIB + 777))
      expect((await stat(image(id))).size).toBe(300 * MIB + 4096)
      await dismantle(id)
    })
  })

  describe('file systems', () => {
    it('REX-1 expands xfs while it is published', async () => {
      const { id, path } = await fixture.use('xfs-grows')
      const before = await totalBytes(path)
      expect((await expand(id, GIB)).nodeExpansionRequired).toBe(true)
      expect((await expandNode(id, path)).capacityBytes).toBe(BigInt(GIB))
      expect((await totalBytes(path)) - before).toBeGreaterThan(600 * MIB)
      const above = fixture.csi.node.nodeExpandVolume({
        volumeId: id,
        volumePath: path,
        capacityRange: { requiredBytes: BigInt(2 * GIB) },
      })
      expect(await outcomeOf(above)).toMatch(/^OUT_OF_RANGE: .*at the controller first/)
      await dismantle(id)
    })

    const online = skipReason(facts, ['ext4OnlineGrowth'])
    it.skipIf(online)(`REX-1 expands ext4 in use${online ? ` (${online})` : ''}`, async () => {
      const { id, path } = await fixture.use('ext4-online', { fsType: 'ext4' })
      await expand(id, GIB)
      await expandNode(id, path)
      expect(await totalBytes(path)).toBeGreaterThan(900 * MIB)
      await dismantle(id)
    })

    const refused = skipReason(facts, ['ext4OnlineGrowthRefused'])
    it.skipIf(refused)(
      `REX-1 refuses to expand ext4 in use and expands it at the next stage${refused ? ` (${refused})` : ''}`,
      async () => {
        const { id, path } = await fixture.use('ext4-grows', { fsType: 'ext4' })
        await writeFile(join(path, 'kept'), 'kept')
        await expand(id, GIB)
        expect(await outcomeOf(expandNode(id, path))).toMatch(/^FAILED_PRECONDITION: .*when it is next staged/)
        await fixture.unpublish(id)
        await fixture.unstage(id)
        await fixture.stage(id, { fsType: 'ext4' })
        await fixture.publish(id)
        expect(await totalBytes(path)).toBeGreaterThan(900 * MIB)
        expect(await readFile(join(path, 'kept'), 'utf8')).toBe('kept')
        await dismantle(id)
      },
    )

    it('SYS-6 never formats a device that has content', async () => {
      const { id, path } = await fixture.use('as-block', { isBlock: true })
      execFileSync('mkfs.ext4', ['-q', path])
      await fixture.unpublish(id)
      await fixture.unstage(id)
      expect(await outcomeOf(fixture.stage(id))).toMatch(/^FAILED_PRECONDITION: .*was created as a block volume/)
      expect(await loops()).toEqual([])
      await fixture.stage(id, { isBlock: true })
      expect(
        execFileSync('blkid', ['-p', '-o', 'value', '-s', 'TYPE', await fixture.publish(id, { isBlock: true })])
          .toString()
          .trim(),
      ).toBe('ext4')
      await dismantle(id)
    })

    it('SYS-6 rejects another file system type, and mount flags that would release reserved space', async () => {
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
      expect(fixture.logged.join('\n')).not.toContain('s3cret')
      expect(await loops()).toEqual([])
      await fixture.stage(id, { flags: ['noatime'] })
      await fixture.publish(id)
      expect(await outcomeOf(fixture.stage(id, { flags: ['nodiratime'] }))).toMatch(/^ALREADY_EXISTS/)
      await dismantle(id)
    })

    it('SYS-6 rejects and reports a truncated file instead of extending it', async () => {
      const id = await fixture.create('cut', { parameters: { provisioning: 'thin' } })
      await truncate(image(id), 310 * MIB)
      const isAbnormal = async () =>
        (await fixture.csi.controller.controllerGetVolume({ volumeId: id })).status?.volumeCondition?.abnormal
      expect(await isAbnormal()).toBe(true)
      expect(await outcomeOf(fixture.stage(id))).toMatch(/^FAILED_PRECONDITION: .*has 310Mi of the 320Mi/)
      expect(await outcomeOf(expand(id, GIB))).toMatch(/^FAILED_PRECONDITION: .*it was truncated/)
      await fixture.restart()
      expect((await stat(image(id))).size).toBe(310 * MIB)
      expect(await isAbnormal()).toBe(true)
      expect(await loops()).toEqual([])
      await fixture.remove(id)
    })
  })

  describe('publishing', () => {
    it('SYS-6 publishes read-only as a file system and as a device', async () => {
      const id = await fixture.create('seen')
      await fixture.stage(id)
      const path = await fixture.publish(id, { readonly: true })
      await expect(writeFile(join(path, 'x'), '')).rejects.toThrow(/EROFS/)
      expect(await outcomeOf(fixture.publish(id))).toMatch(/^ALREADY_EXISTS: .*read-only/)
      const writable = await fixture.publish(id, { at: 'writable' })
      await writeFile(join(writable, 'x'), 'seen')
      expect(await readFile(join(path, 'x'), 'utf8')).toBe('seen')
      await fixture.unpublish(id, 'writable')
      await dismantle(id)

      const block = await fixture.create('raw', { isBlock: true })
      await fixture.stage(block, { isBlock: true })
      const device = await fixture.publish(block, { isBlock: true, readonly: true })
      await expect(
        open(device, 'r+').then(async (file) => file.write(Buffer.alloc(4096)).finally(() => file.close())),
      ).rejects.toThrow()
      await fixture.unpublish(block)
      expect(await loops()).toHaveLength(1)
      await dismantle(block)
    })

    it('SYS-6 publishes a reader-only access mode read-only', async () => {
      const id = await fixture.create('reader')
      const mode = Mode.SINGLE_NODE_READER_ONLY
      await fixture.stage(id, { mode })
      await expect(writeFile(join(await fixture.publish(id, { mode }), 'x'), '')).rejects.toThrow(/EROFS/)
      await dismantle(id)
    })

    it('REX-1 a raw device keeps its data, expands in place, and reports its size', async () => {
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
      const again = await open(path, 'r')
      expect((await again.read(Buffer.alloc(1), 0, 1, 60 * MIB)).buffer[0]).toBe(7)
      await again.close()
      await dismantle(id)
    })

    it('SYS-6 leaves a mount of another program at the path alone', async () => {
      const id = await fixture.create('elsewhere')
      await fixture.stage(id)
      const path = fixture.path(`publish-${id}`)
      const other = await fixture.use('other')
      await mkdir(path)
      await fixture.machine.host.mounts.bind(other.path, path)
      expect(await outcomeOf(fixture.publish(id))).toMatch(/^FAILED_PRECONDITION: .*that is not volume/)
      expect(await outcomeOf(fixture.unpublish(id))).toBe('OK') // this volume has no mount at the path
      expect(await fixture.machine.host.mounts.isMountPoint(path)).toBe(true)
      await fixture.machine.host.mounts.unmount(path)
      await rm(path, { recursive: true })
      await fixture.publish(id)
      await fixture.unpublish(other.id)
      await fixture.unstage(other.id)
      await fixture.remove(other.id)
      await dismantle(id)
    })

    it('SYS-6 neither unstages nor deletes a volume in use', async () => {
      const { id, path } = await fixture.use('busy')
      expect(await outcomeOf(fixture.unstage(id))).toMatch(/^FAILED_PRECONDITION: .*still published at/)
      await writeFile(join(path, 'still'), 'here')
      await dismantle(id)
    })
  })

  describe('a start after a kill', () => {
    const recordOf = async (id: string): Promise<VolumeRecord> =>
      JSON.parse(await readFile(join(fixture.pool, '.stowage', 'volumes', `${id}.json`), 'utf8'))
    const rewrite = async (id: string, change: Partial<VolumeRecord>) =>
      writeFile(
        join(fixture.pool, '.stowage', 'volumes', `${id}.json`),
        JSON.stringify({ ...(await recordOf(id)), ...change }),
      )

    it('PROV-5 completes an interrupted create, and returns the volume for the same name', async () => {
      const id = await fixture.create('left-creating')
      await fixture.stop()
      await rewrite(id, { state: 'creating' })
      await rm(image(id))
      await fixture.start()
      expect((await fixture.machine.host.files.sizes(image(id)))?.bytes).toBe(320 * MIB)
      expect(await fixture.create('left-creating')).toBe(id)
      await fixture.remove(id)
      expect(await traces(id)).toEqual([])
    })

    it.each([
      ['a copy that was left creating', { state: 'creating', source: { kind: 'volume', id: volumeIdOf('origin') } }],
      ['what was left deleting', { state: 'deleting' }],
    ] as const)('PROV-5 removes %s', async (what, change) => {
      const id = await fixture.create(what)
      await fixture.machine.host.loops.attach(image(id))
      await fixture.stop()
      await rewrite(id, change)
      await fixture.start()
      expect(await traces(id)).toEqual([])
    })

    it('REX-1 completes an interrupted expansion', async () => {
      const id = await fixture.create('left-growing')
      await fixture.stop()
      await rewrite(id, { state: 'growing', growingToBytes: 500 * MIB })
      await fixture.start()
      expect((await fixture.csi.controller.controllerGetVolume({ volumeId: id })).volume?.capacityBytes).toBe(
        BigInt(500 * MIB),
      )
      await fixture.stage(id)
      expect((await fixture.machine.host.files.sizes(image(id)))?.allocatedBytes).toBeGreaterThanOrEqual(500 * MIB)
      await fixture.publish(id)
      await dismantle(id)
    })

    it('SYS-6 formats a half-formatted device again, and never one that was published', async () => {
      const id = await fixture.create('left-formatting')
      const half = await open(image(id), 'r+')
      await half.write(Buffer.from('half of a file system'), 0, undefined, 4096)
      await half.close()
      await fixture.stage(id)
      await writeFile(join(await fixture.publish(id), 'mine'), 'mine')
      expect((await recordOf(id)).isUnused).toBeUndefined()
      await dismantle(id)
    })

    it('SYS-6 thaws a file system that a snapshot left frozen, and no other', async () => {
      const { id, path } = await fixture.use('frozen')
      const staging = fixture.path(`stage-${id}`)
      const { snapshot } = await fixture.csi.controller.createSnapshot({ name: 'killed', sourceVolumeId: id })
      const record = join(fixture.pool, '.stowage', 'snapshots', `${snapshot!.snapshotId}.json`)
      await fixture.stop()
      execFileSync('fsfreeze', ['-f', staging])
      await fixture.start()
      expect(() => execFileSync('fsfreeze', ['-f', staging], { stdio: 'pipe' })).toThrow(/busy/i) // frozen by its owner
      await fixture.stop()
      await writeFile(record, JSON.stringify({ ...JSON.parse(await readFile(record, 'utf8')), state: 'creating' }))
      await fixture.start()
      await writeFile(join(path, 'flows'), 'again')
      await dismantle(id)
    })

    it('SYS-6 detaches unused devices, and leaves an unknown mount', async () => {
      const id = await fixture.create('loose')
      await fixture.stage(id)
      await fixture.unstage(id)
      const device = await fixture.machine.host.loops.attach(image(id))
      await fixture.restart()
      expect(await loops()).toEqual([])

      await fixture.stop()
      const again = await fixture.machine.host.loops.attach(image(id))
      const place = await fixture.machine.directory('by-hand')
      await fixture.machine.host.mounts.mount(again, place, 'xfs')
      await fixture.start()
      expect(fixture.logged.join('\n')).toMatch(/found at startup and not changed .*which has no record/)
      expect(await outcomeOf(fixture.remove(id))).toMatch(/^FAILED_PRECONDITION: .*in use at .*by-hand/)
      await fixture.machine.host.mounts.unmount(place)
      await fixture.machine.host.loops.detach(again)
      await fixture.remove(id)
      expect(device).toMatch(/^\/dev\/loop/)
    })

    it('SYS-6 unstages a volume whose record was set aside while in use and then restored', async () => {
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
      await dismantle(id)
      expect(await fixture.machine.host.mounts.isMountPoint(fixture.path(`stage-${id}`))).toBe(false)
    })

    it('SYS-6 clears records of missing mounts and devices, as after a reboot', async () => {
      const { id, path } = await fixture.use('rebooted', { mutable: { iops: '100' } })
      await writeFile(join(path, 'data'), 'survives')
      await fixture.stop()
      for (const target of [path, fixture.path(`stage-${id}`)]) await fixture.machine.host.mounts.unmount(target)
      for (const { device } of await loops()) await fixture.machine.host.loops.detach(device)
      await fixture.start()
      const gone = fixture.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: path })
      expect(await outcomeOf(gone)).toMatch(/^NOT_FOUND/)
      expect(await readdir(fixture.path(''))).not.toContain(`publish-${id}`)
      await fixture.stage(id)
      expect(await readFile(join(await fixture.publish(id), 'data'), 'utf8')).toBe('survives')
      await dismantle(id)
    })

    it('SYS-6 removes partial copies, and reports unknown files', async () => {
      await fixture.stop()
      const part = `${imageOf(fixture.pool, snapshotIdOf('part') as SnapshotId)}.part`
      const stranger = join(fixture.pool, 'volumes', 'backup.tar')
      await appendFile(part, 'half')
      await appendFile(stranger, 'precious')
      await appendFile(image(volumeIdOf('unknown')), 'precious too')
      await fixture.start()
      expect(await readdir(join(fixture.pool, 'snapshots'))).toEqual([])
      expect(await readFile(stranger, 'utf8')).toBe('precious')
      expect(await readFile(image(volumeIdOf('unknown')), 'utf8')).toBe('precious too')
      await rm(stranger)
      await rm(image(volumeIdOf('unknown')))
    })
  })

  it('SYS-6 reports its backend and missing capabilities, to programs and in the log', async () => {
    const info = await fixture.csi.identity.getPluginInfo({})
    expect(info).toMatchObject({ name: 'local.csi.stowage.dev', vendorVersion: '1.2.3', manifest: { backend: 'loop' } })
    expect(Object.values(info.manifest).length).toBe(1 + fixture.running.shortcomings.length)
  })
})
