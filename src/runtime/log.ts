// The process's log: one JSON object per line on standard error, for machines and `jq` alike.
import { type DestinationStream, pino } from 'pino'
import { ApiError } from '../api/status-error.ts'
import { hasLogFields, type Logger } from '../base/log.ts'
import { createLogLines } from './log-lines.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** Writes to standard error, unless told otherwise. */
export const createLog = (level: string, to: DestinationStream = standardError()): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: described },
    },
    to,
  )

function standardError(): DestinationStream {
  const lines = createLogLines(2)
  process.once('exit', lines.flush)
  return lines
}

/** Answers of a server or a driver say all there is to say; where they were thrown helps nobody. The rest is a surprise. */
function described(error: Error): object {
  if (error instanceof ApiError)
    return { type: error.name, message: error.message, code: error.code, reason: error.reason }
  if (hasLogFields(error)) return { type: error.name, message: error.message, ...error.logFields() }
  return pino.stdSerializers.err(error)
}
