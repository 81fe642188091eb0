// The flags of the audit log. Their names are those of kube-apiserver.
import { type Command, Option } from 'commander'
import { UsageError } from '../../base/usage-error.ts'
import type { AuditSettings } from '../../processes/server/audit.ts'

const DEFAULT_MAX_SIZE_MEGABYTES = 100
const DEFAULT_MAX_AGE_DAYS = 30
const DEFAULT_MAX_BACKUP_FILES = 10

export const addAuditFlags = (command: Command): Command =>
  command
    .option('--audit-policy-file <file>', 'policy of the audit log, audit.k8s.io/v1 (default: writes and Secrets)')
    .option(
      '--audit-log-path <file>',
      'file of the audit log; - is standard output (default: DATA-DIR/audit/audit.log)',
    )
    .addOption(
      new Option('--audit-log-maxsize <megabytes>', 'size at which the file is rotated').default(
        DEFAULT_MAX_SIZE_MEGABYTES,
      ),
    )
    .addOption(
      new Option('--audit-log-maxage <days>', 'how long rotated files are retained').default(DEFAULT_MAX_AGE_DAYS),
    )
    .addOption(
      new Option('--audit-log-maxbackup <count>', 'how many rotated files are retained').default(
        DEFAULT_MAX_BACKUP_FILES,
      ),
    )

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
