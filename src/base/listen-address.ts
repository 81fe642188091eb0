// The address a server listens on, as flags spell it.
import { UsageError } from './usage-error.ts'

export const DEFAULT_LISTEN = '127.0.0.1:7443'

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** `HOST:PORT`, `[V6]:PORT`, `:PORT` (all interfaces) or a bare PORT (loopback). */
export function parseListen(text: string, flag = '--listen'): ListenAddress {
  const match = /^(?:(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):)?(\d{1,5})$/.exec(text.trim())
  const port = Number(match?.[3])
  if (!match || port > 65_535) {
    throw new UsageError(`${flag} ${JSON.stringify(text)}: expected HOST:PORT, such as ${DEFAULT_LISTEN}`)
  }
  const named = match[1] ?? match[2]
  const host = named === undefined ? '127.0.0.1' : named === '' ? '0.0.0.0' : named
  return { host, port }
}

/** The URL under which clients on this machine reach a server that listens on the address. */
export function urlOf({ host, port }: ListenAddress): string {
  const dial = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `https://${dial.includes(':') ? `[${dial}]` : dial}:${port}`
}
