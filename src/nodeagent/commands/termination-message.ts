// Reads a terminated container's message: the file at terminationMessagePath or, if it is empty after an error with
// the policy FallbackToLogsOnError, the end of the container's log. The read is bounded, because the container can write any
// amount.
import { open } from 'node:fs/promises'
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import { errorCode } from '../../base/disk-error.ts'
import { readLog } from './logs/read-log.ts'
import type { RunFiles } from './run-records.ts'

export const DEFAULT_MESSAGE_PATH = '/dev/termination-log'

/** The rest of the file is ignored. */
const FILE_BYTES_MAX = 4_096
const LOG_BYTES_MAX = 2_048
const LOG_LINES_MAX = 80
/** For all containers of a pod together. */
const POD_BYTES_MAX = 12_288

export async function readTerminationMessage(
  files: Pick<RunFiles, 'terminationLog' | 'log'>,
  { terminationMessagePolicy }: Readonly<Container>,
  { code, containerCount }: { readonly code: number; readonly containerCount: number },
): Promise<string | undefined> {
  const bytesMax = Math.min(FILE_BYTES_MAX, Math.floor(POD_BYTES_MAX / containerCount))
  const message = await readStart(files.terminationLog, bytesMax)
  if (message) return message
  if (code === 0 || terminationMessagePolicy !== 'FallbackToLogsOnError') return undefined
  const log = await readLogEnd(files.log, Math.min(LOG_BYTES_MAX, bytesMax))
  return log || undefined
}

/** Returns the last lines of the log, truncated at the start. */
async function readLogEnd(path: string, bytesMax: number): Promise<string> {
  let end: Buffer = Buffer.alloc(0)
  for await (const chunk of readLog(path, { tailLines: LOG_LINES_MAX }, { signal: new AbortController().signal })) {
    end = Buffer.concat([end, chunk]).subarray(-bytesMax)
  }
  return end.toString('utf8')
}

async function readStart(path: string, bytesMax: number): Promise<string> {
  let file: Awaited<ReturnType<typeof open>>
  try {
    file = await open(path, 'r')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return ''
    throw error
  }
  try {
    const buffer = Buffer.alloc(bytesMax)
    const { bytesRead } = await file.read(buffer, 0, bytesMax, 0)
    return buffer.subarray(0, bytesRead).toString('utf8')
  } finally {
    await file.close()
  }
}
