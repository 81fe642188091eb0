// Detects a device's content: blank, a file system, or data that must not be overwritten. A device is blank only
// if blkid finds nothing and the first MiB is zero, because blkid also finds nothing in data without a known signature.
import { open } from 'node:fs/promises'
import type { DeviceContent } from './host.ts'
import type { Run } from './run.ts'

/** The part of a device that must be zero if the device is blank. */
export const START_BYTES = 1024 * 1024

export async function readContent(run: Run, device: string): Promise<DeviceContent> {
  const start = await readStart(device, START_BYTES) // read first: for a missing device, blkid also reports that it found nothing
  const { stdout, code } = await run('blkid', ['--probe', '--output', 'export', device], { okCodes: [0, 2, 8] })
  return classifyContent({ code, stdout, isStartZero: isZero(start) })
}

export const isZero = (bytes: Buffer): boolean => bytes.equals(Buffer.alloc(bytes.length))

const BLKID_NOTHING_FOUND = 2
const BLKID_AMBIGUOUS = 8

export function classifyContent(probe: { code: number; stdout: string; isStartZero: boolean }): DeviceContent {
  if (probe.code === BLKID_AMBIGUOUS) return { is: 'unclear', message: 'it has several conflicting signatures' }
  if (probe.code === BLKID_NOTHING_FOUND) {
    if (probe.isStartZero) return { is: 'blank' }
    return { is: 'unclear', message: 'it starts with data that has no known signature' }
  }
  const tags = parseBlkid(probe.stdout)
  const type = tags.get('TYPE')
  if (type && tags.get('USAGE') === 'filesystem') {
    return { is: 'filesystem', type, uuid: tags.get('UUID'), label: tags.get('LABEL') }
  }
  return { is: 'unclear', message: `it contains ${type ?? `a partition table (${tags.get('PTTYPE') ?? 'unknown'})`}` }
}

/** Parses `KEY=value` lines. blkid escapes special characters with a backslash. */
export function parseBlkid(stdout: string): Map<string, string> {
  const tags = new Map<string, string>()
  for (const line of stdout.split('\n')) {
    const separatorIndex = line.indexOf('=')
    if (separatorIndex > 0)
      tags.set(line.slice(0, separatorIndex), line.slice(separatorIndex + 1).replace(/\\(.)/g, '$1'))
  }
  return tags
}

/** Returns the first `length` bytes, or fewer if the device is smaller. */
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
