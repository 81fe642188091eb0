// Lists the loop devices of this node with their backing files from sysfs, without a program and without root.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DELETED_SUFFIX } from './loop-list.ts'

export interface LoopFile {
  /** The device node: `/dev/loopN`. */
  readonly device: string
  /** The number of the device: `major:minor`. */
  readonly deviceNumber: string
  /** Path of the backing file, even if the file has been deleted. */
  readonly file: string
}

export async function listLoopFiles(sysBlock = '/sys/block'): Promise<LoopFile[]> {
  const names = (await readdir(sysBlock).catch(() => [])).filter((name) => /^loop\d+$/.test(name))
  const loops = await Promise.all(
    names.map(async (name) => {
      const readSysFile = (file: string) => readFile(join(sysBlock, name, file), 'utf8').catch(() => '')
      const [file, deviceNumber] = [
        (await readSysFile('loop/backing_file')).replace(/\n$/, ''),
        (await readSysFile('dev')).trim(),
      ]
      const path = file.endsWith(DELETED_SUFFIX) ? file.slice(0, -DELETED_SUFFIX.length) : file
      return { device: `/dev/${name}`, deviceNumber, file: path }
    }),
  )
  return loops.filter(({ file }) => file !== '') // the others have no file
}
