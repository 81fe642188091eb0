// Flags that several commands share, and how their values are read. A bad value ends the command with a
// message that says what would be right.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isQuantity, quantitySign, quantityToBytes } from '../api/quantity.ts'

export const DEFAULT_LISTEN = '127.0.0.1:7443'

/** The user's data home, as the XDG base directory rules place it. */
export const defaultDataDir = (env: NodeJS.ProcessEnv = process.env): string =>
  join(env.XDG_DATA_HOME?.startsWith('/') ? env.XDG_DATA_HOME : join(homedir(), '.local', 'share'), 'stowage')

export function dataDirOf(flag: string | undefined): string {
  if (flag === '') throw new UsageError('--data-dir is empty: name a directory, or leave the flag out')
  return resolve(flag ?? defaultDataDir())
}

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** `HOST:PORT`, `[V6]:PORT`, `:PORT` (every address) or a bare PORT. */
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

/** How clients on this machine reach a server that listens there. */
export function urlOf({ host, port }: ListenAddress): string {
  const dial = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `https://${dial.includes(':') ? `[${dial}]` : dial}:${port}`
}

/** Said to the user as it is, without a stack; exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** What is to say has been printed; only the exit code is left to give. */
export class Unsuccessful extends Error {
  override readonly name = 'Unsuccessful'
  readonly exitCode: number
  constructor(exitCode: number) {
    super(`exit code ${exitCode}`)
    this.exitCode = exitCode
  }
}

export function poolBytesOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const bytes = isQuantity(text) && quantitySign(text) > 0 ? Number(quantityToBytes(text)) : Number.NaN
  if (!Number.isSafeInteger(bytes))
    throw new UsageError(`--pool-size ${JSON.stringify(text)}: expected a size, such as 10Gi`)
  return bytes
}

/** All of them are in one process. */
const NODES_MAX = 100

export function nodeCountOf(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count <= NODES_MAX) return count
  throw new UsageError(`--nodes ${JSON.stringify(text)}: expected a number from 0 to ${NODES_MAX}`)
}
