// Parses the output of `losetup --list --json`. Releases of losetup differ: booleans are true and false or 1 and 0, numbers may
// be strings, and device numbers may be padded with spaces.
import type { LoopDevice } from './host.ts'

export const LOOP_COLUMNS = 'NAME,BACK-FILE,BACK-INO,BACK-MAJ:MIN,RO,AUTOCLEAR,OFFSET,SIZELIMIT'

/** The kernel appends this suffix to the path of a backing file that was deleted. */
export const DELETED_SUFFIX = ' (deleted)'

export function parseLoopList(text: string): LoopDevice[] {
  if (text.trim() === '') return [] // some releases print nothing if there are no devices
  const { loopdevices } = JSON.parse(text) as { loopdevices: Record<string, unknown>[] }
  return loopdevices
    .filter((row) => row['back-file']) // a device without a file was detached while losetup was reading
    .map((row) => {
      const file = String(row['back-file'])
      const isDeleted = file.endsWith(DELETED_SUFFIX)
      return {
        device: String(row.name),
        file: isDeleted ? file.slice(0, -DELETED_SUFFIX.length) : file,
        isDeleted,
        fileId: formatFileId(String(row['back-maj:min']).replaceAll(' ', ''), String(row['back-ino'])),
        isReadOnly: isTrue(row.ro),
        isAutoclear: isTrue(row.autoclear),
        offsetBytes: Number(row.offset),
        sizeLimitBytes: Number(row.sizelimit),
      }
    })
}

export const formatFileId = (deviceNumber: string, inode: bigint | string) => `${deviceNumber}/${Number(inode)}`

const isTrue = (value: unknown) => value === true || value === 1 || value === '1'
