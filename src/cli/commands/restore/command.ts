// `stowage restore`: flags, help and output. restore.ts restores the backup.
import type { AddCommand } from '../../command.ts'
import { ExitError } from '../../exit-error.ts'
import { dataDirOption, outputOption, parseDataDir, pkiDirOption } from '../../flags/common.ts'
import { formatOutput } from '../../output/format-output.ts'

export const addRestore: AddCommand = (program, deps) => {
  program
    .command('restore')
    .summary('restore a backup to a data directory')
    .description(
      'Restores the objects of a backup, and those credentials that the data directory lacks. The data directory must not ' +
        'contain a store: nothing is overwritten. Archives are verified; a restore that was interrupted continues when it is ' +
        'run again with the same archives. Stop everything that was connected to the server before it starts again. If the ' +
        'backup has damaged records, they are restored unchanged, and the command names them and fails.',
    )
    .argument(
      '<backup...>',
      'a full archive and the incremental ones that continue it, in order; - is standard input; or a directory',
    )
    .addOption(dataDirOption())
    .addOption(pkiDirOption())
    .option('--dry-run', 'verify the backup and that the data directory has no store, and write nothing')
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage restore --data-dir /var/lib/stowage monday.backup tuesday.backup\n' +
        '  ssh HOST cat stowage.backup | stowage restore --data-dir /var/lib/stowage -\n',
    )
    .action(async (backups: string[], flags) => {
      const dataDir = parseDataDir(flags.dataDir)
      if (flags.dryRun) {
        const { checkRestore, formatRestoreCheck } = await import('./check-restore.ts')
        const check = await checkRestore({ dataDir, backups, clock: deps.clock })
        deps.write(await formatOutput(flags.output, check, () => formatRestoreCheck(check)))
        if (check.isDamaged) throw new ExitError(1)
        return
      }
      const { restoreBackup } = await import('./restore.ts')
      const { requireIntactRecords } = await import('../backup/damaged-records.ts')
      const restored = await restoreBackup({ dataDir, pkiDir: flags.pkiDir, backups, clock: deps.clock })
      const { isResumed, filesWritten, filesKept } = restored
      const text = () =>
        `${isResumed ? 'Completed an interrupted restore' : 'Restored'} to ${restored.dataDir}` +
        `${restored.revision === undefined ? '' : ` at revision ${restored.revision}`}; ` +
        `other files: ${filesWritten.length} written, ${filesKept.length} kept because they exist.\n`
      deps.write(await formatOutput(flags.output, restored, text))
      requireIntactRecords(restored.damagedRecords)
    })
}
