// The settings of a provisioner process. Flags override options in code, which override the defaults. The flags are those of
// the upstream external provisioners.
import { parseArgs } from 'node:util'
import { parseDuration } from '../base/duration.ts'
import { UsageError } from '../base/usage-error.ts'

/** Most have a flag; see --help. */
export interface RunOptions {
  /** Path of a kubeconfig. Default: $KUBECONFIG, else the cluster this process runs in. */
  readonly kubeconfig?: string
  /** Elect a leader among several processes; only the leader works. Default: true. */
  readonly leaderElection?: boolean
  /** Namespace of the lease. Default: the one this process runs in, or the kubeconfig's. */
  readonly leaderElectionNamespace?: string
  /** `HOST:PORT` or `:PORT` for /metrics, /healthz and /readyz. Default: none. */
  readonly httpEndpoint?: string
  /** Claims processed at once, and as many volumes. Default 100. */
  readonly workerThreads?: number
  /** First delay after a failure; doubles. Default 1 s. */
  readonly retryIntervalStartMs?: number
  /** Longest delay. Default 5 min. */
  readonly retryIntervalMaxMs?: number
  /** Timeout of `provision` and `delete`; then their signal fires. Default 10 min. */
  readonly timeoutMs?: number
  /** How long a stop waits for running calls. Default 30 s. */
  readonly stopTimeoutMs?: number
  /** Prefix of volume names. Default `pvc`. */
  readonly volumeNamePrefix?: string
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Replaces the JSON log on standard error. */
  readonly log?: ProvisionerLog
  /** Stops it. Default: SIGTERM or SIGINT. */
  readonly signal?: AbortSignal
  /** The command line, without the program. Default: the process's own. Give [] if you read flags of your own. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Fields first, then the message; pino fits. */
export interface ProvisionerLog {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export type Settings = Omit<RunOptions, 'args' | 'env' | 'signal' | 'log'>

interface Flag {
  readonly setting: keyof Settings
  readonly takes: 'text' | 'number' | 'duration' | 'switch' | 'level'
  readonly doc: string
}

const FLAGS: Readonly<Record<string, Flag>> = {
  kubeconfig: {
    setting: 'kubeconfig',
    takes: 'text',
    doc: 'kubeconfig of the server (default $KUBECONFIG, else in-cluster)',
  },
  'leader-election': {
    setting: 'leaderElection',
    takes: 'switch',
    doc: 'elect a leader; only the leader works (default true)',
  },
  'leader-election-namespace': {
    setting: 'leaderElectionNamespace',
    takes: 'text',
    doc: 'namespace of the Lease (default: that of this pod or the kubeconfig)',
  },
  'http-endpoint': {
    setting: 'httpEndpoint',
    takes: 'text',
    doc: 'HOST:PORT for /metrics, /healthz and /readyz (default none)',
  },
  'worker-threads': { setting: 'workerThreads', takes: 'number', doc: 'claims processed at once (default 100)' },
  'retry-interval-start': {
    setting: 'retryIntervalStartMs',
    takes: 'duration',
    doc: 'first delay after a failure (default 1s)',
  },
  'retry-interval-max': {
    setting: 'retryIntervalMaxMs',
    takes: 'duration',
    doc: 'longest delay after failures (default 5m)',
  },
  timeout: { setting: 'timeoutMs', takes: 'duration', doc: 'timeout of one call of the provisioner (default 10m)' },
  'stop-timeout': {
    setting: 'stopTimeoutMs',
    takes: 'duration',
    doc: 'how long a stop waits for running calls (default 30s)',
  },
  'volume-name-prefix': {
    setting: 'volumeNamePrefix',
    takes: 'text',
    doc: 'prefix of volume names (default pvc)',
  },
  'log-level': { setting: 'logLevel', takes: 'level', doc: 'debug, info, warn, error or silent (default info)' },
}

export function readSettings(options: RunOptions, args: readonly string[]): Settings | { readonly help: true } {
  const given = parseFlags(args)
  if (given.help) return { help: true }
  const settings: Record<string, unknown> = { ...options }
  for (const [name, { setting, takes }] of Object.entries(FLAGS)) {
    if (given[name] !== undefined) settings[setting] = valueFrom(name, takes, String(given[name]))
  }
  return settings
}

export function helpText(provisioner: string): string {
  const lines = Object.entries(FLAGS).map(([name, { doc }]) => `  --${name.padEnd(26)} ${doc}`)
  return `The provisioner ${provisioner}.\n\nFlags:\n${lines.join('\n')}\n  --help                       print this\n`
}

function parseFlags(args: readonly string[]): Record<string, string | boolean | undefined> {
  const options = Object.fromEntries(Object.keys(FLAGS).map((name) => [name, { type: 'string' as const }]))
  // A boolean flag without a value is true.
  const spelled = args.map((arg) => (FLAGS[arg.replace(/^--/, '')]?.takes === 'switch' ? `${arg}=true` : arg))
  try {
    return parseArgs({ args: spelled, options: { ...options, help: { type: 'boolean' } }, strict: true }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message.replace(/\.$/, '')}. --help lists the flags.`)
  }
}

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent']

function valueFrom(name: string, takes: Flag['takes'], text: string): unknown {
  const refuse = (expected: string) => new UsageError(`--${name} ${JSON.stringify(text)}: expected ${expected}`)
  switch (takes) {
    case 'text':
      if (text === '') throw refuse('a text that is not empty')
      return text
    case 'number': {
      const value = Number(text)
      if (!(Number.isInteger(value) && value > 0)) throw refuse('a whole number above 0')
      return value
    }
    case 'duration': {
      const ms = parseDuration(text)
      if (!ms) throw refuse('a duration above 0, such as 500ms, 10s or 5m')
      return ms
    }
    case 'switch':
      if (text !== 'true' && text !== 'false') throw refuse('true or false')
      return text === 'true'
    case 'level':
      if (!LEVELS.includes(text)) throw refuse(LEVELS.join(', '))
      return text
  }
}
