// Reads what `losetup --list --json` prints. Releases differ: yes and no come as true and false or as 1 and 0, numbers
// bare or quoted, device numbers padded with spaces.
import type { LoopDevice } from './host.ts'

export const LOOP_COLUMNS = 'NAME,BACK-FILE,BACK-INO,BACK-MAJ:MIN,RO,AUTOCLEAR,OFFSET,SIZELIMIT'

const DELETED = ' (deleted)'

export function parseLoopList(text: string): LoopDevice[] {
  if (text.trim() === '') return [] // some releases print nothing at all when there is none
  const { loopdevices } = JSON.parse(text) as { loopdevices: Record<string, unknown>[] }
  return loopdevices
    .filter((row) => row['back-file']) // a device that lost its file while the list was made
    .map((row) => {
      const file = String(row['back-file'])
      const isDeleted = file.endsWith(DELETED)
      return {
        device: String(row.name),
        file: isDeleted ? file.slice(0, -DELETED.length) : file,
        isDeleted,
        fileId: formatFileId(String(row['back-maj:min']).replaceAll(' ', ''), String(row['back-ino'])),
        isReadOnly: isYes(row.ro),
        isAutoclear: isYes(row.autoclear),
        offsetBytes: Number(row.offset),
        sizeLimitBytes: Number(row.sizelimit),
      }
    })
}

export const formatFileId = (deviceNumber: string, inode: bigint | string) => `${deviceNumber}/${Number(inode)}`

const isYes = (value: unknown) => value === true || value === 1 || value === '1'
