// Flags that several commands share, and how their values are read. A wrong value ends the command with a message that
// names the expected format.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { isQuantity, quantitySign, quantityToBytes } from '../../api/quantity.ts'
import { UsageError } from '../../base/usage-error.ts'
import { leaseDurationOption } from './lease-duration.ts'

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent']

export const logLevelOption = () =>
  new Option('--log-level <level>', 'lowest level to log, on standard error').choices(LOG_LEVELS)

export const outputOption = () =>
  new Option('-o, --output <format>', 'format of the output').choices(['text', 'json']).default('text')

export const kubeconfigOption = () =>
  new Option('--kubeconfig <file>', 'kubeconfig of the API server (default: $KUBECONFIG, else the in-cluster config)')

export const dataDirOption = () => new Option('--data-dir <dir>', `data directory (default: ${defaultDataDir()})`)

export const pkiDirOption = () =>
  new Option('--pki-dir <dir>', 'keys and certificates of the server (default: DATA-DIR/pki)')

/** Collects the values of a flag that may be repeated. */
export const collect = (value: string, before: readonly string[] = []): string[] => [...before, value]

export const driverSocketOption = () =>
  new Option(
    '--driver-socket <path>',
    'run the controllers of the CSI driver at this socket; may be repeated',
  ).argParser(collect)

export const capacityReservationOption = () =>
  new Option('--capacity-reservation <on|off>', 'reserve capacity for scheduled volumes that are not provisioned yet')
    .choices(['on', 'off'])
    .default('on')

/** Options of every command that runs controllers against an API server elsewhere. */
export const addRemoteOptions = (command: Command): Command =>
  command
    .option('--no-leader-election', 'start at once, even if another process runs the same controllers')
    .addOption(leaseDurationOption())
    .option('--http-endpoint <host:port>', 'serve /metrics, /healthz and /readyz here')
    .addOption(logLevelOption().default('info'))

/** `$XDG_DATA_HOME/stowage`, as the XDG base directory specification places it. */
export const defaultDataDir = (env: NodeJS.ProcessEnv = process.env): string =>
  join(env.XDG_DATA_HOME?.startsWith('/') ? env.XDG_DATA_HOME : join(homedir(), '.local', 'share'), 'stowage')

export function parseDataDir(flag: string | undefined): string {
  if (flag === '') throw new UsageError('--data-dir is empty: name a directory, or leave the flag out')
  return resolve(flag ?? defaultDataDir())
}

export function parsePoolSize(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const bytes = isQuantity(text) && quantitySign(text) > 0 ? Number(quantityToBytes(text)) : Number.NaN
  if (!Number.isSafeInteger(bytes))
    throw new UsageError(`--pool-size ${JSON.stringify(text)}: expected a size, such as 10Gi`)
  return bytes
}

/** Ends the command with an exit code after it has printed its result. */
export class ExitError extends Error {
  override readonly name = 'ExitError'
  readonly exitCode: number
  constructor(exitCode: number) {
    super(`exit code ${exitCode}`)
    this.exitCode = exitCode
  }
}
