// What is on a device: nothing, a file system, or something we must not touch. Blank needs two witnesses: blkid knows
// nothing there, and the first mebibyte is zeros. blkid alone also says "nothing" about data it has no name for.
import { open } from 'node:fs/promises'
import type { DeviceContent } from './host.ts'
import type { Run } from './run.ts'

/** Beyond every superblock and partition table that anyone puts at the start of a disk. */
export const START_BYTES = 1024 * 1024

export async function readContent(run: Run, device: string): Promise<DeviceContent> {
  const start = await readStart(device, START_BYTES) // first: blkid's answer for a missing device is also "nothing"
  const { stdout, code } = await run('blkid', ['--probe', '--output', 'export', device], { okCodes: [0, 2, 8] })
  return judgeContent({ code, stdout, isStartZero: isZero(start) })
}

export const isZero = (bytes: Buffer): boolean => bytes.equals(Buffer.alloc(bytes.length))

const BLKID_NOTHING = 2
const BLKID_AMBIGUOUS = 8

export function judgeContent(seen: { code: number; stdout: string; isStartZero: boolean }): DeviceContent {
  if (seen.code === BLKID_AMBIGUOUS) return { is: 'unclear', because: 'it has the signatures of more than one thing' }
  if (seen.code === BLKID_NOTHING) {
    if (seen.isStartZero) return { is: 'blank' }
    return { is: 'unclear', because: 'it begins with data that no known signature explains' }
  }
  const tags = parseBlkid(seen.stdout)
  const type = tags.get('TYPE')
  if (type && tags.get('USAGE') === 'filesystem') {
    return { is: 'filesystem', type, uuid: tags.get('UUID'), label: tags.get('LABEL') }
  }
  return { is: 'unclear', because: `it holds ${type ?? `a partition table (${tags.get('PTTYPE') ?? 'unknown'})`}` }
}

/** `KEY=value` lines; a value may hold backslash escapes, which only stand for themselves. */
export function parseBlkid(stdout: string): Map<string, string> {
  const tags = new Map<string, string>()
  for (const line of stdout.split('\n')) {
    const equals = line.indexOf('=')
    if (equals > 0) tags.set(line.slice(0, equals), line.slice(equals + 1).replace(/\\(.)/g, '$1'))
  }
  return tags
}

/** The first `length` bytes, or fewer where the device is shorter. */
export async function readStart(device: string, length: number): Promise<Buffer> {
  const file = await open(device, 'r')
  try {
    const buffer = Buffer.alloc(length)
    const { bytesRead } = await file.read(buffer, 0, length, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

export async function zeroStart(device: string): Promise<void> {
  const file = await open(device, 'r+')
  try {
    await file.write(Buffer.alloc(START_BYTES), 0, START_BYTES, 0)
    await file.sync()
  } finally {
    await file.close()
  }
}
