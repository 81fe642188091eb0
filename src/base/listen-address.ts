// The address that a server listens on: parses it from the value of a flag, and returns the URL for clients.
import { UsageError } from './usage-error.ts'

export const DEFAULT_LISTEN = '127.0.0.1:7443'

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Parses `HOST:PORT`, `[IPv6]:PORT`, `:PORT` (all interfaces) or a bare PORT (loopback). */
export function parseListen(text: string, flag = '--listen'): ListenAddress {
  const match = /^(?:(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):)?(\d+)$/.exec(text.trim())
  const port = Number(match?.[3])
  if (!match) throw new UsageError(`${flag} ${JSON.stringify(text)}: expected HOST:PORT, such as ${DEFAULT_LISTEN}`)
  checkPort(flag, text, match[3]!)
  const explicitHost = match[1] ?? match[2]
  const host = explicitHost === undefined ? '127.0.0.1' : explicitHost === '' ? '0.0.0.0' : explicitHost
  return { host, port }
}

const PORT_MAX = 65_535

/** Throws if the port in a flag's value is out of range. */
export function checkPort(flag: string, text: string, port: string): void {
  if (Number(port) <= PORT_MAX) return
  throw new UsageError(`${flag} ${JSON.stringify(text)}: port ${port} is out of range; a port is at most ${PORT_MAX}`)
}

/** Returns the URL at which clients on this host reach a server that listens on the address. */
export function urlOf({ host, port }: ListenAddress): string {
  const clientHost = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `https://${clientHost.includes(':') ? `[${clientHost}]` : clientHost}:${port}`
}
