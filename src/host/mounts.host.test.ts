import { mkdir, open, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../test/allowed-skips.ts'
import { type HostTrial, startHostTrial } from './host.fixture.ts'

const MIB = 1024 * 1024
const missing = skipReason(await probeThisMachine(), ['loop', 'mount', 'ext4'])

describe.skipIf(missing)(`real mounts${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let trial: HostTrial
  let device: string
  let stage: string

  beforeEach(async () => {
    trial = await startHostTrial()
    ;({ device } = await trial.device('volume', 16 * MIB))
    await trial.host.filesystems.make(device, 'ext4', { keepReservation: false })
    stage = await trial.directory('stage with\na strange \\040 name')
    await trial.host.mounts.mount(device, stage, 'ext4', ['noatime'])
  })
  afterEach(() => trial.dispose())

  it('SYS-6 a mount is found again, whatever its directory is called', async () => {
    const { mounts } = trial.host
    expect(await mounts.at(stage)).toMatchObject({ target: stage, type: 'ext4', source: device, root: '/' })
    expect((await mounts.at(stage))?.options).toContain('noatime')
    expect(await mounts.sourceOf(stage)).toBe(device)
    await mounts.mount(device, stage, 'ext4', ['noatime'])
    expect(await mounts.mountsOf(device)).toHaveLength(1)
  })

  it('SYS-6 a mount is found through a symbolic link to it', async () => {
    const name = join(trial.pool, 'link')
    await symlink(stage, name)
    expect(await trial.host.mounts.isMountPoint(name)).toBe(true)
  })

  it('SYS-6 a read-only view cannot be written while the stage can', async () => {
    const { mounts } = trial.host
    await writeFile(join(stage, 'data'), 'from the stage')
    const target = await trial.directory('published')
    await mounts.bind(stage, target, { readOnly: true })
    await mounts.bind(stage, target, { readOnly: true })
    expect(await readFile(join(target, 'data'), 'utf8')).toBe('from the stage')
    await expect(writeFile(join(target, 'more'), 'x')).rejects.toThrow('EROFS')
    await writeFile(join(stage, 'more'), 'x')
    await expect(mounts.bind(stage, target)).rejects.toThrow('it is bound there read-only')
    expect((await mounts.mountsOf(device)).map((it) => it.target).sort()).toEqual([stage, target].sort())
  })

  it('SYS-6 a view that a crash left writable is made read-only by the repeat', async () => {
    const { mounts } = trial.host
    const target = await trial.directory('published')
    await mounts.bind(stage, target)
    await mounts.bind(stage, target, { readOnly: true })
    await expect(writeFile(join(target, 'more'), 'x')).rejects.toThrow('EROFS')
  })

  it('SYS-6 nothing is bound over another mount', async () => {
    const { mounts } = trial.host
    const inner = join(stage, 'inner')
    await mkdir(inner)
    const target = await trial.directory('published')
    await mounts.bind(inner, target)
    await expect(mounts.bind(stage, target)).rejects.toThrow('is mounted there. Unmount it first.')
  })

  it('SYS-6 a device node is bound on a file, and known as the device it is', async () => {
    const { mounts } = trial.host
    const target = join(trial.pool, 'block')
    await writeFile(target, '')
    await mounts.bind(device, target)
    await mounts.bind(device, target)
    expect(await mounts.sourceOf(target)).toBe(device)
    expect((await mounts.mountsOf(device)).map((it) => it.target)).toContain(target)
    await mounts.unmount(target)
    expect(await mounts.sourceOf(target)).toBeUndefined()
  })

  it('SYS-6 unmounting removes all that lies on a path, and is done when nothing does', async () => {
    const { mounts } = trial.host
    const target = await trial.directory('published')
    await trial.run('mount', ['--bind', stage, target])
    await trial.run('mount', ['--bind', stage, target])
    await mounts.unmount(target)
    expect(await mounts.isMountPoint(target)).toBe(false)
    await mounts.unmount(target)
    await mounts.unmount(join(trial.pool, 'never there'))
  })

  it('SYS-6 a write-protected device is refused for writing instead of mounted read-only', async () => {
    const { loops, mounts } = trial.host
    const { file, device: other } = await trial.device('other', 16 * MIB)
    await trial.host.filesystems.make(other, 'ext4', { keepReservation: false })
    await loops.detach(other, { file })
    const readOnly = await loops.attach(file, { readOnly: true })
    const target = await trial.directory('refused')
    await expect(mounts.mount(readOnly, target, 'ext4')).rejects.toThrow(/write-protected/)
    expect(await mounts.isMountPoint(target)).toBe(false)
  })

  it('PIO-8 the counters of the device see what is written through it', async () => {
    const { counters } = trial.host
    await counters.begin(device)
    const handle = await open(join(stage, 'data'), 'w')
    await handle.write(Buffer.alloc(MIB, 7))
    await handle.sync()
    await handle.close()
    const seen = await counters.read(device)
    expect(seen?.totals.writtenBytes).toBeGreaterThanOrEqual(MIB)
    expect(seen?.totals.writes).toBeGreaterThan(0)
  })
})
