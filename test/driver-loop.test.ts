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
  let trial: DriverFixture
  beforeAll(async () => {
    trial = await startDriverFixture({ backend: 'loop' })
  })
  afterAll(() => trial?.dispose())

  const loops = async () => (await trial.machine.host.loops.list()).filter(({ file }) => file.startsWith(trial.pool))
  const image = (id: string) => imageOf(trial.pool, id as VolumeId)
  const totalBytes = async (path: string) => Number((await trial.machine.host.usage.ofFilesystem(path)).totalBytes)
  const expand = (volumeId: string, bytes: number) =>
    trial.csi.controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: BigInt(bytes) } })
  const expandNode = (volumeId: string, volumePath: string) => trial.csi.node.nodeExpandVolume({ volumeId, volumePath })
  /** Files of a volume in the pool, and devices on them. */
  const traces = async (id: string) => [
    ...(await readdir(join(trial.pool, 'volumes'))).filter((file) => file.startsWith(id)),
    ...(await readdir(join(trial.pool, '.stowage', 'volumes'))).filter((file) => file.startsWith(id)),
    ...(await loops()).filter(({ file }) => file === image(id)).map(({ device }) => device),
  ]
  const dismantle = async (id: string, at?: string) => {
    await trial.unpublish(id, at)
    await trial.unstage(id)
    await trial.remove(id)
    expect(await traces(id)).toEqual([])
  }

  describe('space', () => {
    it('PROV-19 a reserved volume has its space, also after formatting; a thin one allocates on write', async () => {
      const reserved = await trial.use('reserved')
      expect((await trial.machine.host.files.sizes(image(reserved.id)))?.allocatedBytes).toBeGreaterThanOrEqual(
        320 * MIB,
      )
      await dismantle(reserved.id)
      const thin = await trial.use('thin', { bytes: 10 * GIB, parameters: { provisioning: 'thin' } })
      expect((await trial.machine.host.files.sizes(image(thin.id)))?.allocatedBytes).toBeLessThan(200 * MIB)
      await dismantle(thin.id)
    })

    it.each([
      ['xfs', 299 * MIB, /^OUT_OF_RANGE: A volume with xfs needs at least 300Mi/],
      ['ext4', 1000, /^OUT_OF_RANGE: A volume with ext4 needs at least/],
    ])('SYS-6 a volume too small for %s is refused', async (fsType, bytes, message) => {
      expect(await outcomeOf(trial.create('small', { fsType, bytes }))).toMatch(message)
      expect(await readdir(join(trial.pool, 'volumes'))).toEqual([])
    })

    it('SYS-6 keeps a size that is not a multiple of the page size to the byte', async () => {
      const { id } = await trial.use('uneven', { bytes: 300 * MIB + 777 })
      const { volume } = await trial.csi.controller.controllerGetVolume({ volumeId: id })
      expect(volume?.capacityBytes).toBe(BigInt(300 * MIB + 777))
      expect((await stat(image(id))).size).toBe(300 * MIB + 4096)
      await dismantle(id)
    })
  })

  describe('file systems', () => {
    it('REX-1 expands xfs while it is published', async () => {
      const { id, path } = await trial.use('xfs-grows')
      const before = await totalBytes(path)
      expect((await expand(id, GIB)).nodeExpansionRequired).toBe(true)
      expect((await expandNode(id, path)).capacityBytes).toBe(BigInt(GIB))
      expect((await totalBytes(path)) - before).toBeGreaterThan(600 * MIB)
      const above = trial.csi.node.nodeExpandVolume({
        volumeId: id,
        volumePath: path,
        capacityRange: { requiredBytes: BigInt(2 * GIB) },
      })
      expect(await outcomeOf(above)).toMatch(/^OUT_OF_RANGE: .*at the controller first/)
      await dismantle(id)
    })

    const online = skipReason(facts, ['ext4OnlineGrowth'])
    it.skipIf(online)(`REX-1 expands ext4 in use${online ? ` (${online})` : ''}`, async () => {
      const { id, path } = await trial.use('ext4-online', { fsType: 'ext4' })
      await expand(id, GIB)
      await expandNode(id, path)
      expect(await totalBytes(path)).toBeGreaterThan(900 * MIB)
      await dismantle(id)
    })

    const refused = skipReason(facts, ['ext4OnlineGrowthRefused'])
    it.skipIf(refused)(
      `REX-1 refuses to expand ext4 in use and expands it at the next stage${refused ? ` (${refused})` : ''}`,
      async () => {
        const { id, path } = await trial.use('ext4-grows', { fsType: 'ext4' })
        await writeFile(join(path, 'kept'), 'kept')
        await expand(id, GIB)
        expect(await outcomeOf(expandNode(id, path))).toMatch(/^FAILED_PRECONDITION: .*when it is next staged/)
        await trial.unpublish(id)
        await trial.unstage(id)
        await trial.stage(id, { fsType: 'ext4' })
        await trial.publish(id)
        expect(await totalBytes(path)).toBeGreaterThan(900 * MIB)
        expect(await readFile(join(path, 'kept'), 'utf8')).toBe('kept')
        await dismantle(id)
      },
    )

    it('SYS-6 never formats a device that has content', async () => {
      const { id, path } = await trial.use('as-block', { isBlock: true })
      execFileSync('mkfs.ext4', ['-q', path])
      await trial.unpublish(id)
      await trial.unstage(id)
      expect(await outcomeOf(trial.stage(id))).toMatch(/^FAILED_PRECONDITION: .*was created as a block volume/)
      expect(await loops()).toEqual([])
      await trial.stage(id, { isBlock: true })
      expect(
        execFileSync('blkid', ['-p', '-o', 'value', '-s', 'TYPE', await trial.publish(id, { isBlock: true })])
          .toString()
          .trim(),
      ).toBe('ext4')
      await dismantle(id)
    })

    it('SYS-6 rejects another file system type, and mount flags that would release reserved space', async () => {
      const id = await trial.create('picky')
      expect(await outcomeOf(trial.stage(id, { fsType: 'ext4' }))).toMatch(/^FAILED_PRECONDITION: .*has xfs, not ext4/)
      expect(await outcomeOf(trial.stage(id, { fsType: 'ntfs' }))).toMatch(/^INVALID_ARGUMENT: fs_type "ntfs"/)
      expect(await outcomeOf(trial.stage(id, { flags: ['noatime,discard'] }))).toMatch(
        /^INVALID_ARGUMENT: The mount flag "discard"/,
      )
      expect(await outcomeOf(trial.stage(id, { flags: ['no-such-flag=s3cret'] }))).toMatch(
        /^INVALID_ARGUMENT: .*mount flags/,
      )
      expect(await outcomeOf(trial.stage(id, { flags: ['no-such-flag=s3cret'] }))).not.toContain('s3cret')
      expect(trial.logged.join('\n')).not.toContain('s3cret')
      expect(await loops()).toEqual([])
      await trial.stage(id, { flags: ['noatime'] })
      await trial.publish(id)
      expect(await outcomeOf(trial.stage(id, { flags: ['nodiratime'] }))).toMatch(/^ALREADY_EXISTS/)
      await dismantle(id)
    })

    it('SYS-6 rejects and reports a truncated file instead of extending it', async () => {
      const id = await trial.create('cut', { parameters: { provisioning: 'thin' } })
      await truncate(image(id), 310 * MIB)
      const isAbnormal = async () =>
        (await trial.csi.controller.controllerGetVolume({ volumeId: id })).status?.volumeCondition?.abnormal
      expect(await isAbnormal()).toBe(true)
      expect(await outcomeOf(trial.stage(id))).toMatch(/^FAILED_PRECONDITION: .*has 310Mi of the 320Mi/)
      expect(await outcomeOf(expand(id, GIB))).toMatch(/^FAILED_PRECONDITION: .*it was truncated/)
      await trial.restart()
      expect((await stat(image(id))).size).toBe(310 * MIB)
      expect(await isAbnormal()).toBe(true)
      expect(await loops()).toEqual([])
      await trial.remove(id)
    })
  })

  describe('publishing', () => {
    it('SYS-6 publishes read-only as a file system and as a device', async () => {
      const id = await trial.create('seen')
      await trial.stage(id)
      const path = await trial.publish(id, { readonly: true })
      await expect(writeFile(join(path, 'x'), '')).rejects.toThrow(/EROFS/)
      expect(await outcomeOf(trial.publish(id))).toMatch(/^ALREADY_EXISTS: .*read-only/)
      const writable = await trial.publish(id, { at: 'writable' })
      await writeFile(join(writable, 'x'), 'seen')
      expect(await readFile(join(path, 'x'), 'utf8')).toBe('seen')
      await trial.unpublish(id, 'writable')
      await dismantle(id)

      const block = await trial.create('raw', { isBlock: true })
      await trial.stage(block, { isBlock: true })
      const device = await trial.publish(block, { isBlock: true, readonly: true })
      await expect(
        open(device, 'r+').then(async (file) => file.write(Buffer.alloc(4096)).finally(() => file.close())),
      ).rejects.toThrow()
      await trial.unpublish(block)
      expect(await loops()).toHaveLength(1)
      await dismantle(block)
    })

    it('SYS-6 publishes a reader-only access mode read-only', async () => {
      const id = await trial.create('reader')
      const mode = Mode.SINGLE_NODE_READER_ONLY
      await trial.stage(id, { mode })
      await expect(writeFile(join(await trial.publish(id, { mode }), 'x'), '')).rejects.toThrow(/EROFS/)
      await dismantle(id)
    })

    it('REX-1 a raw device keeps its data, expands in place, and reports its size', async () => {
      const { id, path } = await trial.use('device', { isBlock: true, bytes: 64 * MIB })
      const file = await open(path, 'r+')
      await file.write(Buffer.alloc(4096, 7), 0, 4096, 60 * MIB)
      await file.sync()
      await file.close()
      expect((await expand(id, 128 * MIB)).nodeExpansionRequired).toBe(false)
      const [bytes] = (await trial.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: path })).usage
      expect(bytes?.total).toBe(BigInt(128 * MIB))
      expect(Number(execFileSync('blockdev', ['--getsize64', path]))).toBe(128 * MIB)
      await trial.restart()
      const again = await open(path, 'r')
      expect((await again.read(Buffer.alloc(1), 0, 1, 60 * MIB)).buffer[0]).toBe(7)
      await again.close()
      await dismantle(id)
    })

    it('SYS-6 leaves a mount of another program at the path alone', async () => {
      const id = await trial.create('elsewhere')
      await trial.stage(id)
      const path = trial.path(`publish-${id}`)
      const other = await trial.use('other')
      await mkdir(path)
      await trial.machine.host.mounts.bind(other.path, path)
      expect(await outcomeOf(trial.publish(id))).toMatch(/^FAILED_PRECONDITION: .*that is not volume/)
      expect(await outcomeOf(trial.unpublish(id))).toBe('OK') // nothing of this volume is there
      expect(await trial.machine.host.mounts.isMountPoint(path)).toBe(true)
      await trial.machine.host.mounts.unmount(path)
      await rm(path, { recursive: true })
      await trial.publish(id)
      await trial.unpublish(other.id)
      await trial.unstage(other.id)
      await trial.remove(other.id)
      await dismantle(id)
    })

    it('SYS-6 neither unstages nor deletes a volume in use', async () => {
      const { id, path } = await trial.use('busy')
      expect(await outcomeOf(trial.unstage(id))).toMatch(/^FAILED_PRECONDITION: .*still published at/)
      await writeFile(join(path, 'still'), 'here')
      await dismantle(id)
    })
  })

  describe('a start after a kill', () => {
    const recordOf = async (id: string): Promise<VolumeRecord> =>
      JSON.parse(await readFile(join(trial.pool, '.stowage', 'volumes', `${id}.json`), 'utf8'))
    const rewrite = async (id: string, change: Partial<VolumeRecord>) =>
      writeFile(
        join(trial.pool, '.stowage', 'volumes', `${id}.json`),
        JSON.stringify({ ...(await recordOf(id)), ...change }),
      )

    it('PROV-5 completes an interrupted create, and returns the volume for the same name', async () => {
      const id = await trial.create('left-creating')
      await trial.stop()
      await rewrite(id, { state: 'creating' })
      await rm(image(id))
      await trial.start()
      expect((await trial.machine.host.files.sizes(image(id)))?.bytes).toBe(320 * MIB)
      expect(await trial.create('left-creating')).toBe(id)
      await trial.remove(id)
      expect(await traces(id)).toEqual([])
    })

    it.each([
      ['a copy that was left creating', { state: 'creating', source: { kind: 'volume', id: volumeIdOf('origin') } }],
      ['what was left deleting', { state: 'deleting' }],
    ] as const)('PROV-5 removes %s', async (what, change) => {
      const id = await trial.create(what)
      await trial.machine.host.loops.attach(image(id))
      await trial.stop()
      await rewrite(id, change)
      await trial.start()
      expect(await traces(id)).toEqual([])
    })

    it('REX-1 completes an interrupted expansion', async () => {
      const id = await trial.create('left-growing')
      await trial.stop()
      await rewrite(id, { state: 'growing', growingToBytes: 500 * MIB })
      await trial.start()
      expect((await trial.csi.controller.controllerGetVolume({ volumeId: id })).volume?.capacityBytes).toBe(
        BigInt(500 * MIB),
      )
      await trial.stage(id)
      expect((await trial.machine.host.files.sizes(image(id)))?.allocatedBytes).toBeGreaterThanOrEqual(500 * MIB)
      await trial.publish(id)
      await dismantle(id)
    })

    it('SYS-6 formats a half-formatted device again, and never one that was published', async () => {
      const id = await trial.create('left-formatting')
      const half = await open(image(id), 'r+')
      await half.write(Buffer.from('half of a file system'), 0, undefined, 4096)
      await half.close()
      await trial.stage(id)
      await writeFile(join(await trial.publish(id), 'mine'), 'mine')
      expect((await recordOf(id)).isUnused).toBeUndefined()
      await dismantle(id)
    })

    it('SYS-6 thaws a file system that a snapshot left frozen, and no other', async () => {
      const { id, path } = await trial.use('frozen')
      const staging = trial.path(`stage-${id}`)
      const { snapshot } = await trial.csi.controller.createSnapshot({ name: 'killed', sourceVolumeId: id })
      const record = join(trial.pool, '.stowage', 'snapshots', `${snapshot!.snapshotId}.json`)
      await trial.stop()
      execFileSync('fsfreeze', ['-f', staging])
      await trial.start()
      expect(() => execFileSync('fsfreeze', ['-f', staging], { stdio: 'pipe' })).toThrow(/busy/i) // frozen by its owner
      await trial.stop()
      await writeFile(record, JSON.stringify({ ...JSON.parse(await readFile(record, 'utf8')), state: 'creating' }))
      await trial.start()
      await writeFile(join(path, 'flows'), 'again')
      await dismantle(id)
    })

    it('SYS-6 detaches unused devices, and leaves an unknown mount', async () => {
      const id = await trial.create('loose')
      await trial.stage(id)
      await trial.unstage(id)
      const device = await trial.machine.host.loops.attach(image(id))
      await trial.restart()
      expect(await loops()).toEqual([])

      await trial.stop()
      const again = await trial.machine.host.loops.attach(image(id))
      const place = await trial.machine.directory('by-hand')
      await trial.machine.host.mounts.mount(again, place, 'xfs')
      await trial.start()
      expect(trial.logged.join('\n')).toMatch(/found at startup and not changed .*which has no record/)
      expect(await outcomeOf(trial.remove(id))).toMatch(/^FAILED_PRECONDITION: .*in use at .*by-hand/)
      await trial.machine.host.mounts.unmount(place)
      await trial.machine.host.loops.detach(again)
      await trial.remove(id)
      expect(device).toMatch(/^\/dev\/loop/)
    })

    it('SYS-6 unstages a volume whose record was set aside while in use and then restored', async () => {
      const { id, path } = await trial.use('misread')
      const record = join(trial.pool, '.stowage', 'volumes', `${id}.json`)
      const text = await readFile(record, 'utf8')
      await trial.stop()
      await writeFile(record, 'x')
      await trial.start()
      await writeFile(join(path, 'still'), 'in use')
      await trial.stop()
      await writeFile(record, text)
      await trial.start()
      await dismantle(id)
      expect(await trial.machine.host.mounts.isMountPoint(trial.path(`stage-${id}`))).toBe(false)
    })

    it('SYS-6 clears records of missing mounts and devices, as after a reboot', async () => {
      const { id, path } = await trial.use('rebooted', { mutable: { iops: '100' } })
      await writeFile(join(path, 'data'), 'survives')
      await trial.stop()
      for (const target of [path, trial.path(`stage-${id}`)]) await trial.machine.host.mounts.unmount(target)
      for (const { device } of await loops()) await trial.machine.host.loops.detach(device)
      await trial.start()
      const gone = trial.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: path })
      expect(await outcomeOf(gone)).toMatch(/^NOT_FOUND/)
      expect(await readdir(trial.path(''))).not.toContain(`publish-${id}`)
      await trial.stage(id)
      expect(await readFile(join(await trial.publish(id), 'data'), 'utf8')).toBe('survives')
      await dismantle(id)
    })

    it('SYS-6 removes partial copies, and reports unknown files', async () => {
      await trial.stop()
      const part = `${imageOf(trial.pool, snapshotIdOf('part') as SnapshotId)}.part`
      const stranger = join(trial.pool, 'volumes', 'backup.tar')
      await appendFile(part, 'half')
      await appendFile(stranger, 'precious')
      await appendFile(image(volumeIdOf('unknown')), 'precious too')
      await trial.start()
      expect(await readdir(join(trial.pool, 'snapshots'))).toEqual([])
      expect(await readFile(stranger, 'utf8')).toBe('precious')
      expect(await readFile(image(volumeIdOf('unknown')), 'utf8')).toBe('precious too')
      await rm(stranger)
      await rm(image(volumeIdOf('unknown')))
    })
  })

  it('SYS-6 reports its backend and what it cannot do, to programs and in the log', async () => {
    const info = await trial.csi.identity.getPluginInfo({})
    expect(info).toMatchObject({ name: 'local.csi.stowage.dev', vendorVersion: '1.2.3', manifest: { backend: 'loop' } })
    expect(Object.values(info.manifest).length).toBe(1 + trial.running.shortcomings.length)
  })
})
