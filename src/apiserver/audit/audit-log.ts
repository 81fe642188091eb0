// Buffers the lines of the audit log and writes them in batches, so that requests do not wait for the disk. A batch that fails
// is written again. Lines that do not fit in the buffer are dropped, and the next batch has a record with their number.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { microTimestamp } from '../../base/timestamps.ts'
import { AUDIT_API_VERSION } from './policy.ts'

/** Where batches of lines are written: a file or standard output. */
export interface AuditSink {
  /** Writes the whole text or, if it rejects, nothing. */
  write(text: string): Promise<void>
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

const BUFFER_CHARACTERS_MAX = 16 * 1024 * 1024 // further events are dropped and counted
const FLUSH_DELAY_MS = 100
const RETRY_DELAY_MS = 1_000

export function createAuditLog({ sink, clock, log }: AuditLogOptions): AuditLog {
  let lines: string[] = []
  let characters = 0
  let events = 0
  let errors = 0
  let dropped = 0
  let droppedSinceWrite = 0
  let lastError = ''
  let flushing: Promise<void> | undefined
  let cancelTimer: (() => void) | undefined

  function write(line: string): void {
    events++
    if (characters + line.length > BUFFER_CHARACTERS_MAX) {
      dropped++
      droppedSinceWrite++
      return
    }
    lines.push(line)
    characters += line.length
    schedule(lastError ? RETRY_DELAY_MS : FLUSH_DELAY_MS)
  }

  function schedule(delayMs: number): void {
    if (flushing) return
    cancelTimer ??= clock.after(delayMs, () => void flush())
  }

  function flush(): Promise<void> {
    cancelTimer?.()
    cancelTimer = undefined
    flushing ??= flushBuffer().finally(() => {
      flushing = undefined
      if (lines.length > 0) schedule(lastError ? RETRY_DELAY_MS : FLUSH_DELAY_MS)
    })
    return flushing
  }

  async function flushBuffer(): Promise<void> {
    const batch = lines
    const droppedBefore = droppedSinceWrite
    const text = batch.join('')
    const report = droppedBefore > 0 ? droppedEventsRecord(droppedBefore, lastError, clock.nowMs()) : ''
    try {
      await sink.write(text + report)
    } catch (error) {
      errors++
      const { message } = error as Error
      if (message !== lastError) log.error({ reason: message }, 'cannot write the audit log; events are buffered')
      lastError = message
      return
    }
    lines = lines.slice(batch.length)
    characters -= text.length
    droppedSinceWrite -= droppedBefore
    if (lastError) log.info({ dropped: droppedBefore }, 'the audit log is written again')
    lastError = ''
  }

  return {
    write,
    stats: () => ({ events, errors, dropped }),
    async close() {
      await flushing
      if (lines.length > 0) await flush()
      cancelTimer?.()
      if (lines.length > 0) log.error({ events: lines.length, reason: lastError }, 'audit events were lost at the stop')
      await sink.close()
    },
  }
}

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
