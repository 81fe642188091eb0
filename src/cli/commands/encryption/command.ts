// `stowage encryption rotate`: flags, help and output. rotate.ts adds the key.
import { join } from 'node:path'
import { Argument } from 'commander'
import type { AddCommand } from '../../command.ts'
import { dataDirOption, outputOption, parseDataDir, pkiDirOption } from '../../flags/common.ts'
import { formatOutput } from '../../output/format-output.ts'

export const addEncryption: AddCommand = (program, deps) => {
  program
    .command('encryption')
    .summary('rotate the key that encrypts Secrets in the store')
    .description(
      'Adds a new key to the encryption configuration. A running server reloads the file, encrypts with the new key and ' +
        'rewrites the values that older keys encrypt; a stopped server does so when it starts.',
    )
    .addArgument(new Argument('<action>', 'the action').choices(['rotate']))
    .addOption(dataDirOption())
    .addOption(pkiDirOption())
    .option('--encryption-provider-config <file>', 'file of the configuration (default: PKI-DIR/encryption.yaml)')
    .option('--dry-run', 'check the configuration and name the keys that it has, without adding one')
    .addOption(outputOption())
    .addHelpText('after', '\nExample:\n  stowage encryption rotate --data-dir /var/lib/stowage\n')
    .action(async (_action: string, flags) => {
      const { rotateKey } = await import('./rotate.ts')
      const { ENCRYPTION_FILE } = await import('../../../processes/server/encryption.ts')
      const pkiDir = flags.pkiDir ?? join(parseDataDir(flags.dataDir), 'pki')
      const configFile = flags.encryptionProviderConfig ?? join(pkiDir, ENCRYPTION_FILE)
      const rotation = await rotateKey(configFile, { isDryRun: flags.dryRun === true })
      const { file, key, oldKeys } = rotation
      const text = () =>
        key === undefined
          ? `Would add a key to ${file} before the existing ones: ${oldKeys.join(', ')}\n`
          : `Added ${key} to ${file}. Servers that use the file now encrypt with the new key and rewrite all values.\n` +
            `Keep a copy of the file apart from backups. When the server has logged that it rewrote the values and\n` +
            `--history-minutes have passed, remove from the file: ${oldKeys.join(', ')}\n`
      deps.write(await formatOutput(flags.output, rotation, text))
    })
}
