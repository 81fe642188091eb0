// `stowage status`: flags, help and output. read-status.ts collects the status; format-status.ts prints it.
import { UsageError } from '../../../base/usage-error.ts'
import type { AddCommand } from '../../command.ts'
import { ExitError } from '../../exit-error.ts'
import { dataDirOption, outputOption, parseDataDir } from '../../flags/common.ts'
import { formatOutput } from '../../output/format-output.ts'

export const addStatus: AddCommand = (program, deps) => {
  program
    .command('status')
    .summary('show what runs on a data directory, and whether it is healthy')
    .description(
      'Shows the server of the data directory: its process, address and version, what /readyz reports, nodes, drivers, ' +
        'leader, the size of the store, and when its certificates expire. Without a running server it shows what is on disk.',
    )
    .addOption(dataDirOption())
    .addOption(outputOption())
    .addHelpText('after', '\nExamples:\n  stowage status\n  stowage status --data-dir /var/lib/stowage -o json\n')
    .action(async (flags) => {
      const { readStatus } = await import('./read-status.ts')
      const { formatStatus } = await import('./format-status.ts')
      const status = await readStatus({ dataDir: parseDataDir(flags.dataDir), clock: deps.clock }).catch((error) => {
        throw new UsageError((error as Error).message) // for exit code 2
      })
      deps.write(await formatOutput(flags.output, status, () => formatStatus(status)))
      if (!status.isHealthy) throw new ExitError(1)
    })
}
