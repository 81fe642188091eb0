// The logger interface: structured fields, then a message. runtime/log/log.ts implements it with pino.
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export const LOG_FORMATS = ['text', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** An error that these fields describe completely: the log contains them and the message instead of a stack trace. */
export interface HasLogFields {
  logFields(): object
}

export const hasLogFields = (error: unknown): error is Error & HasLogFields =>
  error instanceof Error && 'logFields' in error && typeof error.logFields === 'function'

export const silentLog: Logger = { debug() {}, info() {}, warn() {}, error() {} }
