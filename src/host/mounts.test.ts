import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ProgramFailedError } from './errors.ts'
import { createMounts } from './mounts.ts'
import type { Run } from './run.ts'

let directory: string
let mountInfo: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'stowage-mounts-'))
  mountInfo = join(directory, 'mountinfo')
  await writeFile(mountInfo, '')
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const writeMountInfo = (...lines: string[]) => writeFile(mountInfo, lines.map((line) => `${line}\n`).join(''))

function createTestMounts(onCommand: (command: string) => Promise<void> | void = () => {}) {
  const commands: string[] = []
  const run: Run = async (program, args) => {
    commands.push([program, ...args].join(' '))
    await onCommand(commands.at(-1)!)
    return { stdout: '', stderr: '', code: 0 }
  }
  return { commands, mounts: createMounts({ run, mountInfo }) }
}

describe('mount', () => {
  it('requests read-write or read-only explicitly', async () => {
    const { mounts, commands } = createTestMounts()
    await mounts.mount('/dev/null', '/stage', 'xfs', ['noatime', 'nodiratime'])
    await mounts.mount('/dev/null', '/stage', 'ext4', [], { readOnly: true })
    expect(commands).toEqual([
      'mount -t xfs --rw -o noatime,nodiratime /dev/null /stage',
      'mount -t ext4 --read-only /dev/null /stage',
    ])
  })

  it('is idempotent, and fails if another device is mounted or the mode differs', async () => {
    const { mounts, commands } = createTestMounts()
    await writeMountInfo('40 1 1:3 / /stage rw - xfs /dev/loop3 rw', '41 1 7:9 / /other rw - xfs /dev/loop9 rw')
    await mounts.mount('/dev/null', '/stage', 'xfs') // 1:3 is the number of /dev/null
    await expect(mounts.mount('/dev/null', '/stage', 'xfs', [], { readOnly: true })).rejects.toThrow(
      'mounted there for writing',
    )
    await expect(mounts.mount('/dev/null', '/other', 'xfs')).rejects.toThrow('/dev/loop9 is mounted there')
    expect(commands).toEqual([])
  })

  it.each([
    'bind',
    'remount',
    'loop=/dev/loop1',
    'noatime,move',
    'logdev=/dev/sda',
    'X-mount.mkdir',
    'helper=x',
    'a b',
    'SHARED',
  ])('rejects the option %s', async (flag) => {
    const { mounts, commands } = createTestMounts()
    await expect(mounts.mount('/dev/null', '/stage', 'xfs', [flag])).rejects.toThrow('is not allowed for a volume')
    expect(commands).toEqual([])
  })
})

describe('unmount', () => {
  it('unmounts all stacked mounts, topmost first', async () => {
    const stack = ['40 1 7:3 / /stage rw - xfs /dev/loop3 rw', '41 40 7:4 / /stage rw - xfs /dev/loop4 rw']
    await writeMountInfo(...stack)
    const { mounts, commands } = createTestMounts(async () => {
      stack.pop()
      await writeMountInfo(...stack)
    })
    expect((await mounts.mountAt('/stage'))?.source).toBe('/dev/loop4')
    await mounts.unmount('/stage')
    expect(commands).toEqual(['umount /stage', 'umount /stage'])
  })

  it('succeeds if nothing is mounted, even after a concurrent unmount', async () => {
    const { mounts, commands } = createTestMounts(() => {
      throw new ProgramFailedError(['umount'], {
        code: 32,
        stderr: 'umount: /stage: not mounted.',
        reason: 'exited with 32',
      })
    })
    await mounts.unmount('/nowhere')
    expect(commands).toEqual([])
    await writeMountInfo('40 1 7:3 / /stage rw - xfs /dev/loop3 rw')
    await mounts.unmount('/stage')
  })

  it('fails if the path is busy', async () => {
    await writeMountInfo('40 1 7:3 / /stage rw - xfs /dev/loop3 rw')
    const { mounts } = createTestMounts(() => {
      throw new ProgramFailedError(['umount'], {
        code: 32,
        stderr: 'umount: /stage: target is busy.',
        reason: 'exited with 32',
      })
    })
    await expect(mounts.unmount('/stage')).rejects.toThrow('target is busy')
  })

  it('fails after 64 stacked mounts', async () => {
    await writeMountInfo('40 1 7:3 / /stage rw - xfs /dev/loop3 rw')
    await expect(createTestMounts().mounts.unmount('/stage')).rejects.toThrow('more than 64 mounts')
  })
})

it('mountAt finds the topmost mount by parent id, not by position', async () => {
  await writeMountInfo('41 40 7:4 / /stage rw - xfs /dev/loop4 rw', '40 1 7:3 / /stage rw - xfs /dev/loop3 rw')
  expect((await createTestMounts().mounts.mountAt('/stage'))?.source).toBe('/dev/loop4')
})

it('isMountPoint returns false for a directory below a mount point', async () => {
  await writeMountInfo('40 1 7:3 / /stage rw - xfs /dev/loop3 rw')
  const { mounts } = createTestMounts()
  expect(await mounts.isMountPoint('/stage')).toBe(true)
  expect(await mounts.isMountPoint('/stage/inner')).toBe(false)
})
