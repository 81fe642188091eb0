// The settings of a provisioner process. Flags override options in code, and options override the defaults. Flags that
// external-provisioner also has keep their names.
import { parseArgs } from 'node:util'
import { parseDuration } from '../base/duration.ts'
import { LOG_LEVELS, type LogLevel } from '../base/log.ts'
import { UsageError } from '../base/usage-error.ts'

/** Options of a provisioner process. Most of them have a flag that overrides them; --help lists the flags. */
export interface RunOptions {
  /** Path of the kubeconfig. Default: $KUBECONFIG, or the in-cluster configuration if it is not set. */
  readonly kubeconfig?: string
  /** Whether the processes elect a leader, which alone provisions, changes and deletes volumes. Default: true. */
  readonly leaderElection?: boolean
  /** Namespace of the Lease. Default: $NAMESPACE, or the namespace of the pod or of the kubeconfig if it is not set. */
  readonly leaderElectionNamespace?: string
  /** Address of /metrics, /operations, /healthz and /readyz, as `HOST:PORT` or `:PORT`. Default: they are not served. */
  readonly httpEndpoint?: string
  /** Maximum number of claims, and of volumes, that are processed concurrently. Default: 100. */
  readonly workerThreads?: number
  /** Delay after the first failure. It doubles with each further failure. Default: 1 s. */
  readonly retryIntervalStartMs?: number
  /** Maximum delay after failures. Default: 5 min. */
  readonly retryIntervalMaxMs?: number
  /** Timeout of calls to the functions of the provisioner, after which their signal is aborted. Default: 10 min. */
  readonly timeoutMs?: number
  /** Maximum time to wait for running calls during a shutdown. Default: 30 s. */
  readonly stopTimeoutMs?: number
  /** Prefix of volume names. Default: `pvc`. */
  readonly volumeNamePrefix?: string
  /** Minimum level of log messages. Default: `info`. */
  readonly logLevel?: LogLevel
  /** Logger. Default: standard error. */
  readonly log?: ProvisionerLog
  /** Shuts the process down. Default: a signal that SIGTERM and SIGINT abort. */
  readonly signal?: AbortSignal
  /** Command-line arguments. Default: those of the process. Pass [] if the program parses its own flags. */
  readonly args?: readonly string[]
  /** Environment variables. Default: those of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** A structured logger that takes fields and a message, such as pino. */
export interface ProvisionerLog {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type Settings = Omit<RunOptions, 'args' | 'env' | 'signal' | 'log'>

interface Flag {
  readonly setting: keyof Settings
  readonly type: 'string' | 'number' | 'duration' | 'boolean' | 'level'
  readonly help: string
}

const FLAGS: Readonly<Record<string, Flag>> = {
  kubeconfig: {
    setting: 'kubeconfig',
    type: 'string',
    help: 'path of the kubeconfig (default $KUBECONFIG, or the in-cluster configuration)',
  },
  'leader-election': {
    setting: 'leaderElection',
    type: 'boolean',
    help: 'elect a leader, which alone provisions, changes and deletes volumes (default true)',
  },
  'leader-election-namespace': {
    setting: 'leaderElectionNamespace',
    type: 'string',
    help: 'namespace of the Lease (default $NAMESPACE, or the namespace of the pod or of the kubeconfig)',
  },
  'http-endpoint': {
    setting: 'httpEndpoint',
    type: 'string',
    help: 'address of /metrics, /operations, /healthz and /readyz, as HOST:PORT (default: not served)',
  },
  'worker-threads': {
    setting: 'workerThreads',
    type: 'number',
    help: 'maximum number of claims, and of volumes, processed concurrently (default 100)',
  },
  'retry-interval-start': {
    setting: 'retryIntervalStartMs',
    type: 'duration',
    help: 'delay after the first failure (default 1s)',
  },
  'retry-interval-max': {
    setting: 'retryIntervalMaxMs',
    type: 'duration',
    help: 'maximum delay after failures (default 5m)',
  },
  timeout: { setting: 'timeoutMs', type: 'duration', help: 'timeout of calls to the provisioner (default 10m)' },
  'stop-timeout': {
    setting: 'stopTimeoutMs',
    type: 'duration',
    help: 'maximum time to wait for running calls during a shutdown (default 30s)',
  },
  'volume-name-prefix': {
    setting: 'volumeNamePrefix',
    type: 'string',
    help: 'prefix of volume names (default pvc)',
  },
  'log-level': {
    setting: 'logLevel',
    type: 'level',
    help: 'minimum log level: debug, info, warn, error or silent (default info)',
  },
}

export function readSettings(options: RunOptions, args: readonly string[]): Settings | { readonly help: true } {
  const flags = parseFlags(args)
  if (flags.help) return { help: true }
  const settings: Record<string, unknown> = { ...options }
  for (const [name, { setting, type }] of Object.entries(FLAGS)) {
    if (flags[name] !== undefined) settings[setting] = parseValue(name, type, String(flags[name]))
  }
  return settings
}

export function formatHelp(provisioner: string): string {
  const lines = Object.entries(FLAGS).map(([name, { help }]) => `  --${name.padEnd(26)} ${help}`)
  return `The provisioner ${provisioner}.\n\nFlags:\n${lines.join('\n')}\n  --help                       print this help\n`
}

function parseFlags(args: readonly string[]): Record<string, string | boolean | undefined> {
  const options = Object.fromEntries(Object.keys(FLAGS).map((name) => [name, { type: 'string' as const }]))
  // A boolean flag without a value is true.
  const normalizedArgs = args.map((arg) => (FLAGS[arg.replace(/^--/, '')]?.type === 'boolean' ? `${arg}=true` : arg))
  try {
    return parseArgs({ args: normalizedArgs, options: { ...options, help: { type: 'boolean' } }, strict: true }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message.replace(/\.$/, '')}. --help lists the flags.`)
  }
}

function parseValue(name: string, type: Flag['type'], text: string): unknown {
  const usageError = (expectation: string) =>
    new UsageError(`--${name} ${JSON.stringify(text)}: expected ${expectation}`)
  switch (type) {
    case 'string':
      if (text === '') throw usageError('a non-empty string')
      return text
    case 'number': {
      const value = Number(text)
      if (!(Number.isInteger(value) && value > 0)) throw usageError('a positive integer')
      return value
    }
    case 'duration': {
      const ms = parseDuration(text)
      if (!ms) throw usageError('a positive duration, such as 500ms, 10s or 5m')
      return ms
    }
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw usageError('true or false')
      return text === 'true'
    case 'level':
      if (!LOG_LEVELS.some((level) => level === text)) throw usageError(`one of ${LOG_LEVELS.join(', ')}`)
      return text
  }
}
