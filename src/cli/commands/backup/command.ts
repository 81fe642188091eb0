// `stowage backup`: flags, help and output. backup.ts creates the backup.
import type { AddCommand } from '../../command.ts'
import { dataDirOption, outputOption, parseDataDir, pkiDirOption } from '../../flags/common.ts'

export const addBackup: AddCommand = (program, deps) => {
  program
    .command('backup')
    .summary('back up the objects and credentials of the server on this machine')
    .description(
      'Copies a consistent snapshot of the embedded store and the credentials to a new directory, which a server can use as ' +
        'its data directory. The server may keep running. The contents of volumes are not copied. Secrets stay encrypted; ' +
        'their key is not copied, so keep it apart. Only the owner can read the backup.',
    )
    .requiredOption('--to <dir>', 'directory to create')
    .option('--with-encryption-key', 'copy the key that decrypts Secrets too')
    .addOption(dataDirOption())
    .addOption(pkiDirOption())
    .addOption(outputOption())
    .addHelpText('after', '\nExample:\n  stowage backup --to /var/backups/stowage/$(date +%F)\n')
    .action(async (flags) => {
      const { backUp } = await import('./backup.ts')
      const backup = await backUp({
        dataDir: parseDataDir(flags.dataDir),
        pkiDir: flags.pkiDir,
        to: flags.to,
        hasEncryptionKey: flags.withEncryptionKey === true,
      })
      const keyNote = backup.keyFile
        ? `Secrets in it are encrypted. Keep a copy of their key apart: ${backup.keyFile}\n`
        : ''
      deps.write(
        flags.output === 'json'
          ? `${JSON.stringify(backup)}\n`
          : `Backed up to ${backup.to}: ${backup.storeBytes} bytes of objects, ${backup.files.length - 1} other files.\n${keyNote}`,
      )
    })
}
