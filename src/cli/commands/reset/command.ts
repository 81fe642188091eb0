// `stowage reset`: flags, help, confirmation and output. reset.ts plans and runs the reset.
import type { AddCommand } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { dataDirOption, outputOption, parseDataDir } from '../../flags/common.ts'
import { formatOutput } from '../../output/format-output.ts'

export const addReset: AddCommand = (program, deps) => {
  program
    .command('reset')
    .summary('delete a data directory, with the processes, mounts and devices of its nodes')
    .description(
      'Stops the server of the data directory, ends the processes of pods, unmounts volumes, detaches loop devices, removes ' +
        'cgroups, and deletes objects, credentials and volumes. It first prints what it will delete, and asks for confirmation on a ' +
        'terminal. It keeps volumes with reclaim policy Retain, volumes with data that no PersistentVolume refers to, ' +
        'and all volumes if the store cannot be read. ' +
        'It can be repeated after any crash.',
    )
    .addOption(dataDirOption())
    .option('--yes', 'delete without asking')
    .option('--dry-run', 'print what would be deleted, and change nothing')
    .option('--including-retained', 'delete the volumes that are otherwise kept')
    .addOption(outputOption())
    .addHelpText('after', '\nExamples:\n  stowage reset --dry-run\n  stowage reset --data-dir /var/lib/stowage --yes\n')
    .action(async (flags) => {
      const { planReset, reset } = await import('./reset.ts')
      const { formatPlan, formatResult } = await import('./format-reset.ts')
      const isText = flags.output === 'text'
      const options = {
        dataDir: parseDataDir(flags.dataDir),
        includesRetained: flags.includingRetained === true,
        clock: deps.clock,
      }
      const plan = await planReset(options)
      if (flags.dryRun) return deps.write(await formatOutput(flags.output, plan, () => formatPlan(plan)))
      if (isText) deps.write(formatPlan(plan))
      if (!plan.isEmpty && !flags.yes)
        await confirm({
          withoutTerminal: 'Nothing was deleted: without a terminal, reset needs --yes.',
          declined: 'Nothing was deleted.',
        })
      if (plan.isEmpty && isText) return
      const result = await reset(plan, options)
      deps.write(await formatOutput(flags.output, result, () => formatResult(result)))
    })
}
