// Parses --driver and --driver-socket. Whether a value of --driver is a socket or a command depends on its form and on the file
// that it names:
//   unix:///run/csi.sock, /run/csi.sock   socket, which need not exist yet
//   ./my-driver                           command, if it is an executable file; a socket if it is a socket
//   my-driver --endpoint {socket}         command
import { accessSync, constants, type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { UsageError } from '../../../base/usage-error.ts'
import type { DriverSource } from '../../../processes/server/drivers/driver-source.ts'

export interface DriverFlags {
  readonly driver?: readonly string[]
  readonly driverSocket?: readonly string[]
}

/** Returns the drivers in the order of the flags. A socket that is given twice is one driver. */
export function parseDriverFlags({ driver = [], driverSocket = [] }: DriverFlags): DriverSource[] {
  const sources = [...driver.map(parseDriver), ...driverSocket.map((text) => parseSocket('--driver-socket', text))]
  return sources.filter(
    (source, index) =>
      source.is === 'command' ||
      sources.findIndex((other) => other.is === 'socket' && other.path === source.path) === index,
  )
}

function parseDriver(text: string): DriverSource {
  const trimmedText = text.trim()
  if (trimmedText === '') throw new UsageError(`--driver ${JSON.stringify(text)}: expected a socket, or a command`)
  const hasBlank = /\s/.test(trimmedText)
  if (/^unix:/i.test(trimmedText) || (!hasBlank && trimmedText.endsWith('.sock')))
    return parseSocket('--driver', trimmedText)
  if (!hasBlank && /^[a-z][a-z0-9+.-]*:\/\//i.test(trimmedText))
    throw new UsageError(`--driver ${trimmedText}: CSI drivers listen on Unix sockets. Use unix:///path/to/csi.sock.`)
  const stats = findStats(trimmedText)
  if (stats?.isSocket()) return parseSocket('--driver', trimmedText)
  if (stats?.isDirectory()) throw new UsageError(`--driver ${trimmedText}: is a directory, not a socket or a command`)
  if (!stats) return { is: 'command', command: trimmedText }
  try {
    accessSync(trimmedText, constants.X_OK)
  } catch {
    throw new UsageError(`--driver ${trimmedText}: the file is neither a socket nor executable`)
  }
  return { is: 'command', command: resolve(trimmedText) }
}

/** Returns undefined for a text that is not the path of an existing file. */
function findStats(text: string): Stats | undefined {
  try {
    return statSync(text)
  } catch {
    return undefined
  }
}

function parseSocket(flag: string, text: string): DriverSource {
  const path = text.replace(/^unix:(\/\/)?/i, '')
  if (path === '') throw new UsageError(`${flag} ${JSON.stringify(text)}: expected the path of a socket`)
  return { is: 'socket', path: resolve(path) }
}
