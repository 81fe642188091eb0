// Flags that several commands share, and how their values are read. A bad value ends the command with a
// message that says what would be right.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isQuantity, quantitySign, quantityToBytes } from '../api/quantity.ts'
import { UsageError } from '../base/usage-error.ts'

/** The user's data home, as the XDG base directory rules place it. */
export const defaultDataDir = (env: NodeJS.ProcessEnv = process.env): string =>
  join(env.XDG_DATA_HOME?.startsWith('/') ? env.XDG_DATA_HOME : join(homedir(), '.local', 'share'), 'stowage')

export function dataDirOf(flag: string | undefined): string {
  if (flag === '') throw new UsageError('--data-dir is empty: name a directory, or leave the flag out')
  return resolve(flag ?? defaultDataDir())
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
