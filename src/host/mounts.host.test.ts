import { mkdir, open, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../test/allowed-skips.ts'
import { type HostFixture, startHostFixture } from './host.fixture.ts'

const MIB = 1024 * 1024
const hostSkip = skipReason(await probeThisMachine(), ['loop', 'mount', 'ext4'])

describe.skipIf(hostSkip)(`real mounts${hostSkip ? ` (skipped: ${hostSkip})` : ''}`, () => {
  let fixture: HostFixture
  let device: string
  let stage: string

  beforeEach(async () => {
    fixture = await startHostFixture()
    ;({ device } = await fixture.device('volume', 16 * MIB))
    await fixture.host.filesystems.format(device, 'ext4', { keepReservation: false })
    stage = await fixture.directory('stage with\na strange \\040 name')
    await fixture.host.mounts.mount(device, stage, 'ext4', ['noatime'])
  })
  afterEach(() => fixture.dispose())

  it('are found by path, even with special characters', async () => {
    const { mounts } = fixture.host
    expect(await mounts.mountAt(stage)).toMatchObject({ target: stage, type: 'ext4', source: device, root: '/' })
    expect((await mounts.mountAt(stage))?.options).toContain('noatime')
    expect(await mounts.sourceOf(stage)).toBe(device)
    await mounts.mount(device, stage, 'ext4', ['noatime'])
    expect(await mounts.mountsOf(device)).toHaveLength(1)
  })

  it('are found through a symbolic link', async () => {
    const linkPath = join(fixture.pool, 'link')
    await symlink(stage, linkPath)
    expect(await fixture.host.mounts.isMountPoint(linkPath)).toBe(true)
  })

  it('can be bound read-only while the staging path is writable', async () => {
    const { mounts } = fixture.host
    await writeFile(join(stage, 'data'), 'from the stage')
    const target = await fixture.directory('published')
    await mounts.bind(stage, target, { readOnly: true })
    await mounts.bind(stage, target, { readOnly: true })
    expect(await readFile(join(target, 'data'), 'utf8')).toBe('from the stage')
    await expect(writeFile(join(target, 'more'), 'x')).rejects.toThrow('EROFS')
    await writeFile(join(stage, 'more'), 'x')
    await expect(mounts.bind(stage, target)).rejects.toThrow('is bound there read-only')
    expect((await mounts.mountsOf(device)).map((entry) => entry.target).sort()).toEqual([stage, target].sort())
  })

  it('are made read-only by a retry after a crash left them writable', async () => {
    const { mounts } = fixture.host
    const target = await fixture.directory('published')
    await mounts.bind(stage, target)
    await mounts.bind(stage, target, { readOnly: true })
    await expect(writeFile(join(target, 'more'), 'x')).rejects.toThrow('EROFS')
  })

  it('are not bound over another mount', async () => {
    const { mounts } = fixture.host
    const innerDir = join(stage, 'inner')
    await mkdir(innerDir)
    const target = await fixture.directory('published')
    await mounts.bind(innerDir, target)
    await expect(mounts.bind(stage, target)).rejects.toThrow('is mounted there. Unmount it first.')
  })

  it('report the block device if its device file is bind-mounted onto a file', async () => {
    const { mounts } = fixture.host
    const target = join(fixture.pool, 'block')
    await writeFile(target, '')
    await mounts.bind(device, target)
    await mounts.bind(device, target)
    expect(await mounts.sourceOf(target)).toBe(device)
    expect((await mounts.mountsOf(device)).map((entry) => entry.target)).toContain(target)
    await mounts.unmount(target)
    expect(await mounts.sourceOf(target)).toBeUndefined()
  })

  it('are unmounted completely and idempotently', async () => {
    const { mounts } = fixture.host
    const target = await fixture.directory('published')
    await fixture.run('mount', ['--bind', stage, target])
    await fixture.run('mount', ['--bind', stage, target])
    await mounts.unmount(target)
    expect(await mounts.isMountPoint(target)).toBe(false)
    await mounts.unmount(target)
    await mounts.unmount(join(fixture.pool, 'missing'))
  })

  it('fail for a write-protected device instead of being created read-only', async () => {
    const { loops, mounts } = fixture.host
    const { file, device: otherDevice } = await fixture.device('other', 16 * MIB)
    await fixture.host.filesystems.format(otherDevice, 'ext4', { keepReservation: false })
    await loops.detach(otherDevice, { file })
    const readOnlyDevice = await loops.attach(file, { readOnly: true })
    const target = await fixture.directory('target')
    await expect(mounts.mount(readOnlyDevice, target, 'ext4')).rejects.toThrow(/write-protected/)
    expect(await mounts.isMountPoint(target)).toBe(false)
  })

  it('PIO-8 update the counters of the device', async () => {
    const { counters } = fixture.host
    await counters.begin(device)
    const handle = await open(join(stage, 'data'), 'w')
    await handle.write(Buffer.alloc(MIB, 7))
    await handle.sync()
    await handle.close()
    const counts = await counters.read(device)
    expect(counts?.totals.writtenBytes).toBeGreaterThanOrEqual(MIB)
    expect(counts?.totals.writes).toBeGreaterThan(0)
  })
})
