// The flags of the audit log. Their names are those of kube-apiserver.
import { type Command, Option } from 'commander'
import { UsageError } from '../../base/usage-error.ts'
import type { AuditSettings } from '../../processes/server/audit.ts'

const MAX_SIZE = 100
const MAX_AGE = 30
const MAX_BACKUP = 10

export const addAuditFlags = (command: Command): Command =>
  command
    .option('--audit-policy-file <file>', 'policy of the audit log, audit.k8s.io/v1 (default: writes and Secrets)')
    .option(
      '--audit-log-path <file>',
      'file of the audit log; - is standard output (default: DATA-DIR/audit/audit.log)',
    )
    .addOption(new Option('--audit-log-maxsize <megabytes>', 'size at which the file is rotated').default(MAX_SIZE))
    .addOption(new Option('--audit-log-maxage <days>', 'how long rotated files are kept').default(MAX_AGE))
    .addOption(new Option('--audit-log-maxbackup <count>', 'how many rotated files are kept').default(MAX_BACKUP))

interface AuditFlags {
  readonly auditPolicyFile?: string
  readonly auditLogPath?: string
  readonly auditLogMaxsize: number | string
  readonly auditLogMaxage: number | string
  readonly auditLogMaxbackup: number | string
}

export const parseAuditFlags = (flags: AuditFlags): AuditSettings => ({
  policyFile: flags.auditPolicyFile,
  logPath: flags.auditLogPath,
  maxSize: parseCount('--audit-log-maxsize', flags.auditLogMaxsize),
  maxAge: parseCount('--audit-log-maxage', flags.auditLogMaxage),
  maxBackup: parseCount('--audit-log-maxbackup', flags.auditLogMaxbackup),
})

function parseCount(flag: string, value: number | string): number {
  const count = Number(value)
  if (Number.isSafeInteger(count) && count >= 0) return count
  throw new UsageError(`${flag} ${JSON.stringify(value)}: expected a whole number; 0 means no limit`)
}
