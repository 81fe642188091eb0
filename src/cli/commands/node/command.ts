// `stowage node`: flags, help and output. run.ts runs the command.
import { filePages } from '../../../base/heap/file-pages.ts'
import { type AddCommand, createProcessDeps } from '../../command.ts'
import { collectValues, kubeconfigOption, logFormatOption, logLevelOption, outputOption } from '../../flags/common.ts'
import { addPodFlags } from '../../flags/pod-options.ts'
import { loadValueFormatter } from '../../output/format-output.ts'
import { addManageCommands } from './manage/commands.ts'

/** Has the layout of the kubelet's directory, but another path, so that both can run on one machine. */
const DEFAULT_ROOT = '/var/lib/stowage-node'

export const addNode: AddCommand = (program, deps) => {
  const command = program
    .command('node')
    .summary('run the node agent: mount volumes for the pods of this node')
    .description(
      'Registers this machine as a node with its CSI drivers, and mounts, expands and unmounts the volumes of the pods ' +
        'scheduled to it. It does not run containers; with --run-commands it runs their commands as processes.',
    )
    .addOption(kubeconfigOption())
    .option('--server <url>', 'address of the API server; overrides the kubeconfig')
    .option('--join <url>', 'address of the API server to join with --token; without effect once the node has joined')
    .option('--token <token>', 'token of "stowage token create" for this node')
    .option(
      '--ca-cert-hash <hash>',
      'hash of the CA of the server, as "stowage token create" prints it; may be repeated',
      collectValues,
    )
    .option('--node-name <name>', 'name of the node (default: the name of this machine)')
    .option('--root-dir <dir>', 'directory for pods, plugins and mount records', DEFAULT_ROOT)
    .option('--driver-socket <path>', 'socket of a CSI driver without a registrar; may be repeated', collectValues)
    .option('--label <key=value>', 'label of the node; may be repeated', collectValues)
    .option('--max-pods <number>', 'maximum number of pods', '110')
    .option(
      '--node-lease-duration <duration>',
      'how long the lease of the node is valid; it is renewed four times in this time (default: 40s)',
    )
    .option('--http-endpoint <host:port>', 'address on which to serve /metrics, /healthz and /operations')
    .option(
      '--stream-endpoint <host:port>',
      'address on which the API server reaches this node for kubectl logs, exec and attach (default: address of this machine, any port)',
    )
    .addOption(logLevelOption())
    .addOption(logFormatOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n  stowage node --join https://10.0.0.1:7443 --token abcdef.0123456789abcdef --ca-cert-hash sha256:…\n  stowage node --kubeconfig ~/.kube/config --node-name $(hostname) --driver-socket /run/stowage/csi.sock\n',
    )
    .action(async (flags) => {
      const { runNode } = await import('./run.ts')
      const formatValue = await loadValueFormatter(flags.output)
      await runNode(flags, {
        ...(await createProcessDeps(deps, flags)),
        onReady: (node) => {
          filePages.releaseProgram() // an agent runs on every node, beside pods, and has loaded all that it needs
          const { nodeName, server, metrics } = node
          const metricsNote = metrics ? ` Metrics are at ${metrics}/metrics.` : ''
          deps.write(formatValue?.(node) ?? `Node ${nodeName} is ready; API server ${server}.${metricsNote}\n`)
        },
      })
    })
  addPodFlags(command)
  addManageCommands(command, deps)
}
