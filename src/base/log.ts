// The log as everything below main sees it: structured fields first, then a sentence. main.ts makes it with pino.
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export const silentLog: Logger = { debug() {}, info() {}, warn() {}, error() {} }
