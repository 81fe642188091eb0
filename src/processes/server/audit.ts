// Opens a server's audit log: reads the policy, opens the file and registers the metrics.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Counter, type Registry } from 'prom-client'
import {
  type Audit,
  type AuditSink,
  createAudit,
  createAuditLog,
  defaultAuditPolicy,
  openRotatingFile,
  parseAuditPolicy,
} from '../../apiserver/index.ts'
import type { Clock } from '../../base/clock.ts'
import { ensurePrivateDirectory } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import { UsageError } from '../../base/usage-error.ts'

export interface AuditSettings {
  /** Default: the built-in policy. */
  readonly policyFile: string | undefined
  /** `-` for standard output. Default: audit/audit.log in the data directory. */
  readonly logPath: string | undefined
  /** Size in megabytes at which the file is rotated. 0: never. */
  readonly maxSize: number
  /** Days for which rotated files are retained. 0: forever. */
  readonly maxAge: number
  /** Number of rotated files that are retained. 0: all. */
  readonly maxBackup: number
}

export interface ServerAudit {
  readonly audit: Audit
  registerMetrics(registry: Registry): void
  /** Flushes the buffered events and closes the log. */
  close(): Promise<void>
}

export interface OpenAuditOptions {
  readonly settings: AuditSettings
  readonly dataDir: string
  readonly clock: Clock
  readonly log: Logger
}

export async function openAudit({ settings, dataDir, clock, log }: OpenAuditOptions): Promise<ServerAudit> {
  const policy = settings.policyFile === undefined ? await defaultAuditPolicy() : await readPolicy(settings.policyFile)
  const sink = await openSink(settings, dataDir, clock)
  const auditLog = createAuditLog({ sink, clock, log })
  return {
    audit: createAudit({ policy, write: auditLog.write, clock }),
    registerMetrics(registry) {
      const addCounter = (name: string, help: string, value: () => number, labels: Record<string, string> = {}) =>
        new Counter({
          name,
          help,
          labelNames: Object.keys(labels),
          registers: [registry],
          collect() {
            this.reset()
            this.inc(labels, value())
          },
        })
      addCounter('apiserver_audit_event_total', 'Audit events.', () => auditLog.stats().events)
      const plugin = { plugin: 'log' }
      addCounter(
        'apiserver_audit_error_total',
        'Failed writes to the audit log, which are retried.',
        () => auditLog.stats().errors,
        plugin,
      )
      addCounter(
        'stowage_audit_dropped_events_total',
        'Audit events that were lost, because the log could not be written and the buffer was full.',
        () => auditLog.stats().dropped,
      )
    },
    close: () => auditLog.close(),
  }
}

async function readPolicy(path: string) {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new UsageError(`--audit-policy-file ${path} cannot be read: ${error.message}`)
  })
  return parseAuditPolicy(text).catch((error: Error) => {
    throw new UsageError(`--audit-policy-file ${path}: ${error.message}`)
  })
}

const MEGABYTE = 1024 * 1024
const DAY_MS = 24 * 60 * 60 * 1_000

async function openSink(settings: AuditSettings, dataDir: string, clock: Clock): Promise<AuditSink> {
  if (settings.logPath === '-') return stdoutSink
  const dir = join(dataDir, 'audit')
  if (settings.logPath === undefined) await ensurePrivateDirectory(dir)
  const path = settings.logPath ?? join(dir, 'audit.log')
  return openRotatingFile({
    path,
    bytesMax: settings.maxSize * MEGABYTE,
    backupsMax: settings.maxBackup,
    ageMsMax: settings.maxAge * DAY_MS,
    clock,
  }).catch((error: Error) => {
    throw new Error(`Cannot open the audit log ${path}: ${error.message}. Choose another file with --audit-log-path.`)
  })
}

const stdoutSink: AuditSink = {
  write: (lines) =>
    new Promise((resolve, reject) => process.stdout.write(lines, (error) => (error ? reject(error) : resolve()))),
  close: async () => {},
}
