// The flags and help of `stowage backup`. What it does is backup.ts, loaded when it is asked for.
import { type Command, Option } from 'commander'
import { dataDirOf, defaultDataDir } from './flags.ts'
import type { ProgramDeps } from './program-deps.ts'

export function addBackup(program: Command, deps: ProgramDeps): void {
  program
    .command('backup')
    .summary('copy the objects and credentials of this machine’s server, also while it runs')
    .description(
      'Copies the embedded store as it is at one moment, with the credentials beside it, into a new directory that a ' +
        'server can be started on. The server may run meanwhile. What volumes hold is not copied. The copy holds secrets: ' +
        'it is readable for its owner alone.',
    )
    .requiredOption('--to <dir>', 'where to, a directory that does not exist yet')
    .option('--data-dir <dir>', `the directory of the server (default: ${defaultDataDir()})`)
    .option('--pki-dir <dir>', 'where the server keeps its credentials (default: pki in the data directory)')
    .addOption(new Option('-o, --output <format>', 'how to print the answer').choices(['text', 'json']).default('text'))
    .addHelpText('after', '\nExample:\n  stowage backup --to /var/backups/stowage/$(date +%F)\n')
    .action(async (flags) => {
      const { backUp } = await import('./backup.ts')
      const backup = await backUp({ dataDir: dataDirOf(flags.dataDir), pkiDir: flags.pkiDir, to: flags.to })
      deps.write(
        flags.output === 'json'
          ? `${JSON.stringify(backup)}\n`
          : `Backed up to ${backup.to}: ${backup.storeBytes} bytes of objects, ${backup.files.length - 1} other files.\n`,
      )
    })
}
