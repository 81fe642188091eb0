// Creates the log of the process on standard error, as JSON or as text.
import { type DestinationStream, pino } from 'pino'
import { ApiError } from '../../api/status-error.ts'
import { hasLogFields, type LogFormat, type Logger } from '../../base/log.ts'
import { createLogLines } from './log-lines.ts'
import { formatLogLine } from './log-text.ts'

/** Text for readers at a terminal, JSON for programs. */
const defaultFormat = (): LogFormat => (process.stderr.isTTY ? 'text' : 'json')

export const createLog = (level: string, format: LogFormat = defaultFormat()): Logger =>
  logTo(standardError(format), level)

export const logTo = (destination: DestinationStream, level: string): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: serializeError },
    },
    destination,
  )

function standardError(format: LogFormat): DestinationStream {
  const lines = createLogLines(2, format === 'text' ? formatLogLine : undefined)
  process.once('exit', lines.flush)
  return lines
}

/** Omits the stack trace of an ApiError and of errors that define their log fields. */
function serializeError(error: Error): object {
  if (error instanceof ApiError)
    return { type: error.name, message: error.message, code: error.code, reason: error.reason }
  if (hasLogFields(error)) return { type: error.name, message: error.message, ...error.logFields() }
  return pino.stdSerializers.err(error)
}
