// How a provisioner runs: what its author chose in code, what the operator's flags say instead, and the defaults.
// Flags win, then the code, then the defaults. The flags are those that external provisioners have everywhere.
import { parseArgs } from 'node:util'
import { parseDuration } from '../base/duration.ts'
import { UsageError } from '../base/usage-error.ts'

/** Every one of them has a flag; see --help. */
export interface RunOptions {
  /** Path of a kubeconfig. Default: $KUBECONFIG, else the cluster this process runs in. */
  readonly kubeconfig?: string
  /** Of several processes with the same provisioner one works, and another takes over when it ends. Default: true. */
  readonly leaderElection?: boolean
  /** Namespace of the lease. Default: the one this process runs in, or the kubeconfig's. */
  readonly leaderElectionNamespace?: string
  /** `HOST:PORT` or `:PORT` for /metrics, /healthz and /readyz. Default: none. */
  readonly httpEndpoint?: string
  /** Claims worked on at once, and as many volumes. Default 100. */
  readonly workerThreads?: number
  /** Between two tries for one claim: from this, doubling. Default 1 s. */
  readonly retryIntervalStartMs?: number
  /** Up to this. Default 5 min. */
  readonly retryIntervalMaxMs?: number
  /** After this long `provision` and `delete` are told to give up. Default 10 min. */
  readonly timeoutMs?: number
  /** How long calls that do not give up are waited for when the process is to stop; then it ends. Default 30 s. */
  readonly stopTimeoutMs?: number
  /** What the names of volumes begin with. Default `pvc`. */
  readonly volumeNamePrefix?: string
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Takes the place of JSON lines on standard error. */
  readonly log?: ProvisionerLog
  /** Stops it. Default: SIGTERM or SIGINT. */
  readonly signal?: AbortSignal
  /** The command line, without the program. Default: the process's own. Give [] if you read flags of your own. */
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Fields first, then a sentence; pino fits. */
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
    doc: 'of several processes only one works (default true)',
  },
  'leader-election-namespace': {
    setting: 'leaderElectionNamespace',
    takes: 'text',
    doc: "where its lease is (default: this pod's or the kubeconfig's namespace)",
  },
  'http-endpoint': {
    setting: 'httpEndpoint',
    takes: 'text',
    doc: 'HOST:PORT for /metrics, /healthz and /readyz (default none)',
  },
  'worker-threads': { setting: 'workerThreads', takes: 'number', doc: 'claims worked on at once (default 100)' },
  'retry-interval-start': {
    setting: 'retryIntervalStartMs',
    takes: 'duration',
    doc: 'first wait after a failure (default 1s)',
  },
  'retry-interval-max': {
    setting: 'retryIntervalMaxMs',
    takes: 'duration',
    doc: 'longest wait after failures (default 5m)',
  },
  timeout: { setting: 'timeoutMs', takes: 'duration', doc: 'for one call of the provisioner (default 10m)' },
  'stop-timeout': {
    setting: 'stopTimeoutMs',
    takes: 'duration',
    doc: 'how long a stop waits for calls that do not give up (default 30s)',
  },
  'volume-name-prefix': {
    setting: 'volumeNamePrefix',
    takes: 'text',
    doc: 'what names of volumes begin with (default pvc)',
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
  // A switch alone means true, as everywhere.
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
