// `stowage store check` and `stowage store repair`: flags, help and output. check.ts and repair.ts do the work.
import type { AddCommand } from '../../command.ts'
import { ExitError } from '../../exit-error.ts'
import { dataDirOption, outputOption, parseDataDir } from '../../flags/common.ts'
import { formatOutput } from '../../output/format-output.ts'

export const addStore: AddCommand = (program, deps) => {
  const store = program.command('store').summary('check and repair the embedded store on this machine')
  store.description('Checks and repairs the embedded store in a data directory. The server must be stopped.')

  store
    .command('check')
    .summary('list damaged records and pages, and missing revisions')
    .description(
      'Reads the whole store and lists damaged records and pages, and the revisions that may be missing. Changes nothing.',
    )
    .addOption(dataDirOption())
    .option(
      '--backup <path...>',
      'check a backup instead of the data directory: a directory, or a full archive and the incremental ones that continue it',
    )
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage store check --data-dir /var/lib/stowage\n' +
        '  stowage store check --backup monday.backup tuesday.backup\n',
    )
    .action(async (flags) => {
      const { checkBackup, checkStore, formatInspection } = await import('./check.ts')
      const { clock } = deps
      const inspection = await (flags.backup
        ? checkBackup(flags.backup, clock)
        : checkStore(parseDataDir(flags.dataDir), clock))
      deps.write(await formatOutput(flags.output, inspection, () => formatInspection(inspection)))
      if (inspection.isDamaged) throw new ExitError(1)
    })

  store
    .command('repair')
    .summary('restore damaged records from a backup, or drop them')
    .description(
      'Shows what a repair restores and what it loses, and with --yes carries it out: writes the intact records to a new file. ' +
        'With --backup, lost records are taken from the backup. The damaged file is renamed, not deleted.',
    )
    .addOption(dataDirOption())
    .option(
      '--backup <path...>',
      'backup to restore records from: a directory, or a full archive and the incremental ones that continue it',
    )
    .option('--dry-run', 'show what would be done, as without --yes')
    .option('--yes', 'repair the store')
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExample:\n  stowage store repair --data-dir /var/lib/stowage --backup /var/backups/stowage/2026-11-16 --yes\n',
    )
    .action(async (flags) => {
      const { runRepair, formatRepair } = await import('./repair.ts')
      const result = await runRepair(parseDataDir(flags.dataDir), {
        backup: flags.backup,
        isConfirmed: flags.yes === true && flags.dryRun !== true,
        clock: deps.clock,
      })
      deps.write(await formatOutput(flags.output, result, () => formatRepair(result)))
      if (result.is === 'planned') throw new ExitError(1)
    })
}
