import { open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../test/allowed-skips.ts'
import { type HostFixture, startHostFixture } from './host.fixture.ts'

const MIB = 1024 * 1024
const hostSkip = skipReason(await probeThisMachine(), ['loop', 'mount', 'ext4'])

describe.skipIf(hostSkip)(`createLoops with real devices${hostSkip ? ` (skipped: ${hostSkip})` : ''}`, () => {
  let fixture: HostFixture
  beforeEach(async () => {
    fixture = await startHostFixture()
  })
  afterEach(() => fixture.dispose())

  it('attaches one writable device per file for concurrent calls', async () => {
    const { loops, files } = fixture.host
    const file = join(fixture.pool, 'volume')
    await files.extend(file, 16 * MIB)
    const devices = await Promise.all(Array.from({ length: 10 }, () => loops.attach(file)))
    expect(new Set(devices).size).toBe(1)
    expect(await loops.findByFile(file)).toMatchObject([{ device: devices[0], isReadOnly: false, isAutoclear: false }])
  })

  it('attaches many files concurrently', async () => {
    const devices = await Promise.all(Array.from({ length: 8 }, (_, index) => fixture.device(`volume-${index}`, MIB)))
    expect(new Set(devices.map(({ device }) => device)).size).toBe(8)
  })

  it('finds the device of an earlier driver by inode after a rename', async () => {
    const { file, device } = await fixture.device('volume', 16 * MIB)
    const renamedFile = join(fixture.pool, 'renamed')
    await rename(file, renamedFile)
    const restartedFixture = await startHostFixture()
    try {
      expect(await restartedFixture.host.loops.attach(renamedFile)).toBe(device)
    } finally {
      await restartedFixture.dispose()
    }
  })

  it('attaches a read-only device in addition to the writable one', async () => {
    const { loops } = fixture.host
    const { file, device } = await fixture.device('volume', MIB)
    const readOnlyDevice = await loops.attach(file, { readOnly: true })
    expect(readOnlyDevice).not.toBe(device)
    expect(await loops.attach(file, { readOnly: true }), 'again').toBe(readOnlyDevice)
    expect(await loops.attach(file), 'the writable one is still found').toBe(device)
    await expect(writeFile(readOnlyDevice, 'x', { flag: 'r+' })).rejects.toThrow('EPERM')
  })

  it('clears the read-only flag of a loop number for the next volume', async () => {
    const { loops } = fixture.host
    const { file, device } = await fixture.device('first', MIB)
    await fixture.run('blockdev', ['--setro', device])
    await loops.detach(device, { file })
    const nextVolume = await fixture.device('next', MIB) // usually the same loop number; in any case writable
    expect((await readFile(`/sys/block/${nextVolume.device.slice('/dev/'.length)}/ro`, 'utf8')).trim()).toBe('0')
    await (await open(nextVolume.device, 'r+')).close()
    await fixture.run('blockdev', ['--setrw', device])
  })

  it("REX-1 sets a device's size to its file's size", async () => {
    const { loops, files } = fixture.host
    const { file, device } = await fixture.device('volume', 16 * MIB)
    await files.extend(file, 32 * MIB)
    expect(await loops.sizeBytes(device)).toBe(16 * MIB)
    await loops.refreshSize(device)
    expect(await loops.sizeBytes(device)).toBe(32 * MIB)
  })

  it('detaches idempotently if the file was deleted', async () => {
    const { loops } = fixture.host
    const { file, device } = await fixture.device('volume', MIB)
    await rm(file)
    expect((await loops.list()).find((loop) => loop.device === device)).toMatchObject({ file, isDeleted: true })
    expect(await loops.detach(device, { file })).toEqual({ is: 'detached' })
    expect(await loops.detach(device, { file })).toEqual({ is: 'detached' })
    expect((await loops.list()).filter((loop) => loop.file === file)).toEqual([])
  })

  it('does not detach the device of another volume on a late retry', async () => {
    const { loops } = fixture.host
    const firstVolume = await fixture.device('first', MIB)
    expect(await loops.detach(firstVolume.device, { file: join(fixture.pool, 'some other file') })).toEqual({
      is: 'detached',
    })
    expect(await loops.findByFile(firstVolume.file)).toHaveLength(1)
  })

  it('detaches a mounted device at its last unmount, unless its file is attached again before', async () => {
    const { loops, mounts, filesystems } = fixture.host
    const { file, device } = await fixture.device('volume', 16 * MIB)
    await filesystems.format(device, 'ext4', { keepReservation: false })
    const stage = await fixture.directory('stage')
    await mounts.mount(device, stage, 'ext4')

    expect(await loops.detach(device, { file })).toEqual({
      is: 'pending',
      message: `${device} is mounted at ${stage} and is detached when that is unmounted`,
    })
    expect(await loops.attach(file)).toBe(device)
    await mounts.unmount(stage)
    expect(await loops.findByFile(file), 'kept').toHaveLength(1)

    await mounts.mount(device, stage, 'ext4')
    await loops.detach(device, { file })
    await mounts.unmount(stage)
    expect(await loops.findByFile(file), 'detached with the unmount').toEqual([])
  })

  it('detaches an open device when the process closes it', async () => {
    const { loops } = fixture.host
    const { file, device } = await fixture.device('volume', MIB)
    const openDevice = await open(device, 'r')
    const detachRun = loops.detach(device, { file })
    try {
      // The device is marked for detachment, but still attached.
      await expect.poll(async () => (await loops.findByFile(file))[0]?.isAutoclear).toBe(true)
    } finally {
      await openDevice.close()
    }
    expect(await detachRun).toEqual({ is: 'detached' })
  })
})
