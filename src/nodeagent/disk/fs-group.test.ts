import { lstat, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from '../../../test/allowed-skips.ts'
import { applyFsGroup } from './fs-group.ts'

const skipMessage = skipReason(await probeThisMachine(), ['mount'])

describe.skipIf(skipMessage)(`applyFsGroup${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  it('applies the group and the mode to all files, does not follow links, and skips a volume whose root matches', async () => {
    const root = await mkdtemp(join(tmpdir(), 'stowage-group-'))
    await mkdir(join(root, 'd'), { mode: 0o700 })
    await writeFile(join(root, 'd', 'f'), 'x', { mode: 0o600 })
    const outsideDirectory = await mkdtemp(join(tmpdir(), 'stowage-outside-'))
    await symlink(outsideDirectory, join(root, 'l'))
    const { gid: outsideGid } = await lstat(outsideDirectory)
    await applyFsGroup(root, { group: 4321, readOnly: false, onlyOnRootMismatch: true })
    const readGroupAndMode = async (path: string) => {
      const { gid, mode } = await lstat(path)
      return [gid, (mode & 0o7777).toString(8)]
    }
    expect(await readGroupAndMode(root)).toEqual([4321, '2770'])
    expect(await readGroupAndMode(join(root, 'd'))).toEqual([4321, '2770'])
    expect(await readGroupAndMode(join(root, 'd', 'f'))).toEqual([4321, '660'])
    expect((await lstat(join(root, 'l'))).gid).toBe(4321)
    expect((await lstat(outsideDirectory)).gid).toBe(outsideGid)

    await writeFile(join(root, 'd', 'new'), 'x', { mode: 0o600 })
    await applyFsGroup(root, { group: 4321, readOnly: false, onlyOnRootMismatch: true })
    expect((await readGroupAndMode(join(root, 'd', 'new')))[1]).toBe('600')
    await applyFsGroup(root, { group: 4321, readOnly: false, onlyOnRootMismatch: false })
    expect((await readGroupAndMode(join(root, 'd', 'new')))[1]).toBe('660')
    expect(await readFile(join(root, 'd', 'f'), 'utf8')).toBe('x')
    await rm(root, { recursive: true })
    await rm(outsideDirectory, { recursive: true })
  })
})
