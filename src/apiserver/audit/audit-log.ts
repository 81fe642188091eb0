// Buffers the lines of the audit log and writes them in batches, so that requests do not wait for the disk. A failed
// batch is retried. Lines that do not fit in the buffer are dropped, and the next batch has a record with their number.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { microTimestamp } from '../../base/timestamps.ts'
import { createLineBuffer } from './line-buffer.ts'
import { AUDIT_API_VERSION } from './policy.ts'

/** Where batches of lines are written: a file or standard output. */
export interface AuditSink {
  /** Writes all the bytes or, if it rejects, none. */
  write(lines: Uint8Array): Promise<void>
  close(): Promise<void>
}

export interface AuditLogOptions {
  readonly sink: AuditSink
  readonly clock: Clock
  readonly log: Logger
}

export interface AuditLog {
  write(line: string): void
  stats(): AuditLogStats
  /** Writes the buffered lines and closes the sink. */
  close(): Promise<void>
}

interface AuditLogStats {
  /** Events passed to write(). */
  readonly events: number
  /** Failed attempts to write a batch. */
  readonly errors: number
  /** Events that did not fit in the buffer. */
  readonly dropped: number
}

const BUFFER_BYTES_MAX = 16 * 1024 * 1024 // further events are dropped and counted
const FLUSH_DELAY_MS = 100
const RETRY_DELAY_MS = 1_000

export function createAuditLog({ sink, clock, log }: AuditLogOptions): AuditLog {
  const buffer = createLineBuffer(BUFFER_BYTES_MAX)
  let events = 0
  let errors = 0
  let droppedCount = 0
  let droppedSinceWrite = 0
  let lastError = ''
  let pendingFlush: Promise<void> | undefined
  let cancelTimer: (() => void) | undefined

  function write(line: string): void {
    events++
    if (!buffer.add(line)) {
      droppedCount++
      droppedSinceWrite++
      return
    }
    if (!pendingFlush && !cancelTimer) schedule()
  }

  function schedule(): void {
    cancelTimer ??= clock.after(lastError ? RETRY_DELAY_MS : FLUSH_DELAY_MS, () => void flush())
  }

  function flush(): Promise<void> {
    cancelTimer?.()
    cancelTimer = undefined
    pendingFlush ??= flushBuffer().finally(() => {
      pendingFlush = undefined
      if (buffer.lineCount > 0) schedule()
    })
    return pendingFlush
  }

  async function flushBuffer(): Promise<void> {
    const droppedBefore = droppedSinceWrite
    const batch = buffer.takeBatch()
    const report = droppedBefore > 0 ? droppedEventsRecord(droppedBefore, lastError, clock.nowMs()) : ''
    try {
      await sink.write(report ? Buffer.concat([...batch.chunks, Buffer.from(report)]) : joinChunks(batch.chunks))
    } catch (error) {
      batch.putBack()
      errors++
      const { message } = error as Error
      if (message !== lastError) log.error({ reason: message }, 'cannot write the audit log; events are buffered')
      lastError = message
      return
    }
    batch.release()
    droppedSinceWrite -= droppedBefore
    if (lastError) log.info({ dropped: droppedBefore }, 'the audit log can be written again')
    lastError = ''
  }

  return {
    write,
    stats: () => ({ events, errors, dropped: droppedCount }),
    async close() {
      await pendingFlush
      if (buffer.lineCount > 0) await flush()
      cancelTimer?.()
      if (buffer.lineCount > 0)
        log.error({ events: buffer.lineCount, reason: lastError }, 'audit events were lost when the server stopped')
      await sink.close()
    },
  }
}

const joinChunks = (chunks: readonly Uint8Array[]): Uint8Array =>
  chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)

/** Returns an event of the server itself, with the number of dropped events. */
function droppedEventsRecord(count: number, reason: string, nowMs: number): string {
  const time = microTimestamp(nowMs)
  return `${JSON.stringify({
    kind: 'Event',
    apiVersion: AUDIT_API_VERSION,
    level: 'Metadata',
    auditID: '',
    stage: 'ResponseComplete',
    requestURI: '',
    verb: '',
    user: { username: 'system:apiserver' },
    requestReceivedTimestamp: time,
    stageTimestamp: time,
    annotations: { 'audit.stowage.dev/dropped-events': String(count), 'audit.stowage.dev/reason': reason },
  })}\n`
}
