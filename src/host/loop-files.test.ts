import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { listLoopFiles } from './loop-files.ts'

it('listLoopFiles lists attached loop devices, including those of deleted files', async () => {
  const sysBlock = await mkdtemp(join(tmpdir(), 'stowage-sys-'))
  const addDevice = async (name: string, files: Readonly<Record<string, string>>) => {
    await mkdir(join(sysBlock, name, 'loop'), { recursive: true })
    for (const [file, text] of Object.entries(files)) await writeFile(join(sysBlock, name, file), text)
  }
  await addDevice('loop0', { dev: '7:0\n', 'loop/backing_file': '/pool/a b.img\n' })
  await addDevice('loop1', { dev: '7:1\n', 'loop/backing_file': '/pool/b.img (deleted)\n' })
  await addDevice('loop2', { dev: '7:2\n' })
  await addDevice('sda', { dev: '8:0\n' })
  try {
    expect(await listLoopFiles(sysBlock)).toEqual([
      { device: '/dev/loop0', deviceNumber: '7:0', file: '/pool/a b.img' },
      { device: '/dev/loop1', deviceNumber: '7:1', file: '/pool/b.img' },
    ])
  } finally {
    await rm(sysBlock, { recursive: true })
  }
})
