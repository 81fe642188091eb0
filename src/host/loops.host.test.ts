import { open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../test/allowed-skips.ts'
import { type HostTrial, startHostTrial } from './host.fixture.ts'

const MIB = 1024 * 1024
const missing = skipReason(await probeThisMachine(), ['loop', 'mount', 'ext4'])

describe.skipIf(missing)(`real loop devices${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let trial: HostTrial
  beforeEach(async () => {
    trial = await startHostTrial()
  })
  afterEach(() => trial.dispose())

  it('SYS-6 one file has one writable device, however many ask at once', async () => {
    const { loops, files } = trial.host
    const file = join(trial.pool, 'volume')
    await files.extend(file, 16 * MIB)
    const devices = await Promise.all(Array.from({ length: 10 }, () => loops.attach(file)))
    expect(new Set(devices).size).toBe(1)
    expect(await loops.findByFile(file)).toMatchObject([{ device: devices[0], isReadOnly: false, isAutoclear: false }])
  })

  it('SYS-6 many files get a device each, attached at once', async () => {
    const devices = await Promise.all(Array.from({ length: 8 }, (_, index) => trial.device(`volume-${index}`, MIB)))
    expect(new Set(devices.map((it) => it.device)).size).toBe(8)
  })

  it('SYS-6 another driver process finds the device by inode, also after a rename', async () => {
    const { file, device } = await trial.device('volume', 16 * MIB)
    const renamed = join(trial.pool, 'renamed')
    await rename(file, renamed)
    const restarted = await startHostTrial()
    try {
      expect(await restarted.host.loops.attach(renamed)).toBe(device)
    } finally {
      await restarted.dispose()
    }
  })

  it('SYS-6 a read-only device lies beside the writable one and cannot be written', async () => {
    const { loops } = trial.host
    const { file, device } = await trial.device('volume', MIB)
    const readOnly = await loops.attach(file, { readOnly: true })
    expect(readOnly).not.toBe(device)
    expect(await loops.attach(file, { readOnly: true }), 'again').toBe(readOnly)
    expect(await loops.attach(file), 'the writable one is still found').toBe(device)
    await expect(writeFile(readOnly, 'x', { flag: 'r+' })).rejects.toThrow('EPERM')
  })

  it('SYS-6 a mark left by blockdev --setro does not make the next volume read-only', async () => {
    const { loops } = trial.host
    const { file, device } = await trial.device('first', MIB)
    await trial.run('blockdev', ['--setro', device])
    await loops.detach(device, { file })
    const next = await trial.device('next', MIB) // mostly the same number; whichever it is, it can be written
    expect((await readFile(`/sys/block/${next.device.slice('/dev/'.length)}/ro`, 'utf8')).trim()).toBe('0')
    await (await open(next.device, 'r+')).close()
    await trial.run('blockdev', ['--setrw', device])
  })

  it('REX-1 a device takes the new size of its file when told', async () => {
    const { loops, files } = trial.host
    const { file, device } = await trial.device('volume', 16 * MIB)
    await files.extend(file, 32 * MIB)
    expect(await loops.sizeBytes(device)).toBe(16 * MIB)
    await loops.refreshSize(device)
    expect(await loops.sizeBytes(device)).toBe(32 * MIB)
  })

  it('SYS-6 detaching twice is as good as once, and a deleted file’s device goes too', async () => {
    const { loops } = trial.host
    const { file, device } = await trial.device('volume', MIB)
    await rm(file)
    expect((await loops.list()).find((it) => it.device === device)).toMatchObject({ file, isDeleted: true })
    expect(await loops.detach(device, { file })).toEqual({ is: 'gone' })
    expect(await loops.detach(device, { file })).toEqual({ is: 'gone' })
    expect((await loops.list()).filter((it) => it.file === file)).toEqual([])
  })

  it('SYS-6 a late repeat of a detach does not take another volume’s device', async () => {
    const { loops } = trial.host
    const first = await trial.device('first', MIB)
    expect(await loops.detach(first.device, { file: join(trial.pool, 'some other file') })).toEqual({ is: 'gone' })
    expect(await loops.findByFile(first.file)).toHaveLength(1)
  })

  it('SYS-6 a mounted device goes with its last mount, and is taken back if it is wanted again before', async () => {
    const { loops, mounts, filesystems } = trial.host
    const { file, device } = await trial.device('volume', 16 * MIB)
    await filesystems.make(device, 'ext4', { keepReservation: false })
    const stage = await trial.directory('stage')
    await mounts.mount(device, stage, 'ext4')

    expect(await loops.detach(device, { file })).toEqual({
      is: 'going',
      because: `${device} is mounted at ${stage} and goes when that is unmounted`,
    })
    expect(await loops.attach(file)).toBe(device)
    await mounts.unmount(stage)
    expect(await loops.findByFile(file), 'kept').toHaveLength(1)

    await mounts.mount(device, stage, 'ext4')
    await loops.detach(device, { file })
    await mounts.unmount(stage)
    expect(await loops.findByFile(file), 'gone with the mount').toEqual([])
  })

  it('SYS-6 a device that a process has open goes when it lets go', async () => {
    const { loops } = trial.host
    const { file, device } = await trial.device('volume', MIB)
    const holder = await open(device, 'r')
    const detaching = loops.detach(device, { file })
    try {
      // Marked, but still there.
      await expect.poll(async () => (await loops.findByFile(file))[0]?.isAutoclear).toBe(true)
    } finally {
      await holder.close()
    }
    expect(await detaching).toEqual({ is: 'gone' })
  })
})
