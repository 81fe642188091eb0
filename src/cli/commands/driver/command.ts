// `stowage driver`: flags, help and output. run.ts runs the command.
import { Option } from 'commander'
import { type AddCommand, createProcessDeps } from '../../command.ts'
import { collectValues, logFormatOption, logLevelOption, maxVolumesOption, outputOption } from '../../flags/common.ts'
import { loadValueFormatter } from '../../output/format-output.ts'

export const addDriver: AddCommand = (program, deps) => {
  program
    .command('driver')
    .summary('run the local CSI driver')
    .description(
      'Serves the CSI driver local.csi.stowage.dev on a unix socket. Its volumes are files in a pool directory, attached ' +
        'as loop devices, each with its own file system and IO limits. Without root they are plain directories.',
    )
    .requiredOption('--endpoint <address>', 'socket to serve on, such as unix:///run/stowage/csi.sock')
    .requiredOption('--node-id <name>', 'name of this node')
    .requiredOption('--pool <dir>', 'directory for the volumes')
    .option('--pool-size <size>', 'total size of all volumes, such as 10Gi (default: the size of the disk)')
    .addOption(
      new Option('--backend <name>', 'storage of volumes').choices(['auto', 'loop', 'directory']).default('auto'),
    )
    .option('--topology-key <key>', 'topology key for the node of a volume', 'local.csi.stowage.dev/node')
    .option(
      '--workload-cgroup <path>',
      'cgroup to which IO limits apply, may contain * and **; may be repeated',
      collectValues,
    )
    .option(
      '--target-root <dir>',
      'directory in which volumes are staged and published; may be repeated (default: any)',
      collectValues,
    )
    .addOption(maxVolumesOption('this node'))
    .option('--metrics-address <host:port>', 'address on which to serve /metrics')
    .addOption(logLevelOption())
    .addOption(logFormatOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExample:\n  stowage driver --endpoint unix:///run/stowage/csi.sock --node-id $(hostname) --pool /var/lib/stowage/pool --pool-size 10Gi\n',
    )
    .action(async (flags) => {
      const { runDriver } = await import('./run.ts')
      const { clock, log, signal } = await createProcessDeps(deps, flags)
      const formatValue = await loadValueFormatter(flags.output)
      await runDriver(
        { ...flags, workloadCgroup: flags.workloadCgroup ?? [] },
        {
          clock,
          signal,
          log,
          onReady: ({ backend, limitations, poolBytes, metricsPort }) => {
            const { endpoint, pool } = flags
            const notes = limitations.map((text) => `  note        ${text}\n`).join('')
            deps.write(
              formatValue?.({ endpoint, backend, shortcomings: limitations, poolBytes, metricsPort }) ??
                `The local CSI driver is ready.\n  endpoint    ${endpoint}\n  pool        ${pool}\n  backend     ${backend}\n${notes}`,
            )
          },
        },
      )
    })
}
