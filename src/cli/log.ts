// The process's log: one JSON object per line on standard error, for machines and `jq` alike.
import { pino } from 'pino'
import type { Logger } from '../base/log.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

export const createLog = (level: string): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    pino.destination(2),
  )
