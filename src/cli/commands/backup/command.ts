// `stowage backup` and `stowage backup verify`: flags, help and output. backup.ts creates a backup that is a directory, archive.ts
// one that is an archive, and verify-archives.ts verifies archives.
import { randomUUID } from 'node:crypto'
import { type Command, Option } from 'commander'
import { UsageError } from '../../../base/usage-error.ts'
import type { InspectedArchive } from '../../../store/backup/index.ts'
import type { AddCommand, ProgramDeps } from '../../command.ts'
import { ExitError } from '../../exit-error.ts'
import { dataDirOption, outputOption, parseDataDir, pkiDirOption } from '../../flags/common.ts'
import { formatOutput, loadValueFormatter, OUTPUT_FORMATS, type OutputFormat } from '../../output/format-output.ts'

export const addBackup: AddCommand = (program, deps) => {
  const backup = program
    .command('backup')
    .summary('back up the objects and credentials of the server on this machine')
    .description(
      'Copies a consistent snapshot of the embedded store and the credentials to a new directory, which a server can use as ' +
        'its data directory, or to an archive, which has checksums and can be incremental. The server may keep running. The ' +
        'contents of volumes are not copied. Secrets stay encrypted; without --with-encryption-key, their key is not ' +
        'copied, so keep it separately. Only the owner ' +
        'can read the backup. `stowage restore` restores it. Records are compared with their checksums: if some are damaged, ' +
        'the backup contains them unchanged, and the command names them and fails.',
    )
    .option('--to <dir>', 'directory to create')
    .option('--archive <file>', 'archive to create; - is standard output')
    .option('--since <file|revision>', 'write an incremental archive with the changes since this archive or revision')
    .option('--with-encryption-key', 'copy the key that decrypts Secrets too')
    .addOption(dataDirOption())
    .addOption(pkiDirOption())
    .addOption(
      new Option('-o, --output <format>', 'format of the output; - is short for --archive -')
        .choices([...OUTPUT_FORMATS, '-'])
        .default('text'),
    )
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage backup --to /var/backups/stowage/$(date +%F)\n' +
        '  stowage backup -o - | ssh HOST "cat > stowage.backup"\n' +
        '  stowage backup --archive tuesday.backup --since monday.backup\n',
    )
    .action(async (flags: BackupFlags) => {
      const isStream = flags.output === '-' || flags.archive === '-'
      if (flags.archive === '' || flags.to === '') throw new UsageError('--to and --archive require a path')
      if (!isStream && (flags.to === undefined) === (flags.archive === undefined)) {
        throw new UsageError('set either --to for a directory or --archive for an archive')
      }
      if (isStream && (flags.to !== undefined || (flags.archive ?? '-') !== '-')) {
        throw new UsageError('-o - writes an archive to standard output: omit --to and --archive')
      }
      if (flags.to === undefined) return runArchive(flags, isStream, deps)
      if (flags.since !== undefined) throw new UsageError('--since requires --archive')
      return runDirectory(flags, flags.to, deps)
    })
  addVerify(backup, deps)
}

interface BackupFlags {
  readonly to?: string
  readonly archive?: string
  readonly since?: string
  readonly withEncryptionKey?: boolean
  readonly dataDir?: string
  readonly pkiDir?: string
  readonly output: OutputFormat | '-'
}

/** The format of the result. With `-`, the archive is on standard output and the result, as text, on standard error. */
const formatOf = ({ output }: BackupFlags): OutputFormat => (output === '-' ? 'text' : output)

const fileOptionsOf = ({ dataDir, pkiDir, withEncryptionKey }: BackupFlags) => ({
  dataDir: parseDataDir(dataDir),
  pkiDir,
  includesEncryptionKey: withEncryptionKey === true,
})

const formatKeyNote = (keyFile: string | undefined): string =>
  keyFile ? `Secrets in it are encrypted. Keep a copy of their key separately: ${keyFile}\n` : ''

async function runDirectory(flags: BackupFlags, targetDir: string, deps: ProgramDeps): Promise<void> {
  const { backUp } = await import('./backup.ts')
  const { requireIntactRecords } = await import('./damaged-records.ts')
  const backup = await backUp({ ...fileOptionsOf(flags), targetDir })
  const text = () =>
    `Backed up to ${backup.to}: ${backup.storeBytes} bytes of objects, ${backup.files.length - 1} other files.\n` +
    formatKeyNote(backup.keyFile)
  deps.write(await formatOutput(formatOf(flags), backup, text))
  requireIntactRecords(backup.damagedRecords)
}

async function runArchive(flags: BackupFlags, isStream: boolean, deps: ProgramDeps): Promise<void> {
  if (isStream && process.stdout.isTTY) {
    throw new UsageError('standard output is a terminal: redirect it to a file or a program, or set --archive FILE')
  }
  const { writeArchive } = await import('./archive.ts')
  const { requireIntactRecords } = await import('./damaged-records.ts')
  const archive = await writeArchive({
    ...fileOptionsOf(flags),
    target: isStream ? process.stdout : (flags.archive as string),
    since: flags.since,
    id: randomUUID(),
    clock: deps.clock,
  })
  const content = archive.since === undefined ? '' : `changes after revision ${archive.since} up to `
  const text =
    `Backed up ${content}revision ${archive.revision}${isStream ? '' : ` to ${archive.archive}`}: ` +
    `${archive.bytes} bytes.\n${formatKeyNote(archive.keyFile)}`
  if (isStream) process.stderr.write(text)
  else deps.write(await formatOutput(formatOf(flags), archive, () => text))
  requireIntactRecords(archive.damagedRecords)
}

function addVerify(backup: Command, deps: ProgramDeps): void {
  backup
    .command('verify')
    .summary('verify archives and their records')
    .description(
      'Reads archives completely and verifies their checksums and those of their records. An incremental archive must follow ' +
        'the one that it continues, unless it is the first. If the first archive is full, the command also verifies that the ' +
        'archives contain all records that the store had.',
    )
    .argument('<archive...>', 'archives of `stowage backup --archive`, in order')
    .addOption(outputOption())
    .addHelpText('after', '\nExample:\n  stowage backup verify monday.backup tuesday.backup\n')
    .action(async (archives: string[], flags) => {
      const { verifyArchives } = await import('./verify-archives.ts')
      const { formatDamagedRecord } = await import('./damaged-records.ts')
      const formatValue = await loadValueFormatter(flags.output, { isStream: true })
      let isDamaged = false
      for await (const { name, ...inspected } of verifyArchives(archives, deps.clock)) {
        const { damagedRecords, missingRevisions } = inspected
        isDamaged ||= damagedRecords.length > 0 || missingRevisions.length > 0
        const lines = [formatArchive({ name, ...inspected }), ...damagedRecords.map(formatDamagedRecord)]
        deps.write(formatValue?.({ archive: name, ...inspected }) ?? `${lines.join('\n')}\n`)
      }
      if (isDamaged) throw new ExitError(1)
    })
}

function formatArchive(inspectedArchive: InspectedArchive): string {
  const { name, manifest, end, isComplete, damagedRecords, missingRevisions } = inspectedArchive
  const range = manifest.since === undefined ? '' : `, changes after revision ${manifest.since}`
  const content = `revision ${manifest.revision}${range}, ${end.entries} entries, store format ${manifest.storeFormat}`
  const lines = [`${name} is intact: ${content}.`]
  if (!isComplete) lines.push('  Name the archives before it too, to verify that no record is missing.')
  if (missingRevisions.length > 0) lines.push(`  No archive has the revisions ${missingRevisions.join(', ')}.`)
  if (damagedRecords.length > 0) lines.push(`  Records that were damaged before the backup: ${damagedRecords.length}`)
  return lines.join('\n')
}
