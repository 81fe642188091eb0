// The flags and help of `stowage node`. What it does is node.ts, loaded when it is asked for.
import { type Command, Option } from 'commander'
import type { ProgramDeps } from './program-deps.ts'

/** Where the agent keeps its directories: the kubelet's layout in a place of our own, so that both may share a machine. */
const DEFAULT_ROOT = '/var/lib/stowage-node'

export function addNode(program: Command, deps: ProgramDeps, logLevels: readonly string[]): void {
  const each = (value: string, before: string[] = []) => [...before, value]
  program
    .command('node')
    .summary('bring volumes to the pods of this node')
    .description(
      'Registers this machine as a node and the CSI drivers on it, and mounts, grows and unmounts the volumes of the ' +
        'pods that are placed here. Containers are not run, unless --run-commands allows their commands as processes.',
    )
    .option('--kubeconfig <file>', 'kubeconfig of the server (default: $KUBECONFIG, else the cluster this runs in)')
    .option('--server <url>', 'address of the server, instead of the one in the kubeconfig')
    .option('--node-name <name>', 'name of the node (default: the name of this machine)')
    .option('--root-dir <dir>', 'where pods, plugins and records of volumes are', DEFAULT_ROOT)
    .option('--driver-socket <path>', 'a CSI driver that has no registrar; may be repeated', each)
    .option('--run-commands', "run containers' commands as processes of this machine, which are not isolated", false)
    .option('--label <key=value>', 'a label of the node; may be repeated', each)
    .option('--max-pods <number>', 'how many pods the node takes', '110')
    .option('--http-endpoint <host:port>', 'where to show metrics and /healthz')
    .addOption(
      new Option('--log-level <level>', 'how much to log (to standard error)').choices([...logLevels]).default('info'),
    )
    .addOption(new Option('-o, --output <format>', 'how to print the answer').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExample:\n  stowage node --kubeconfig ~/.kube/config --node-name $(hostname) --driver-socket /run/stowage/csi.sock\n',
    )
    .action(async (flags) => {
      const [{ runNode }, { createLog }] = await Promise.all([import('./node.ts'), import('../runtime/log.ts')])
      await runNode(flags, {
        ...deps,
        log: createLog(flags.logLevel),
        env: process.env,
        onReady: (ready) => {
          const { nodeName, server, metrics } = ready
          const shown = metrics ? ` Metrics are at ${metrics}/metrics.` : ''
          deps.write(
            flags.output === 'json'
              ? `${JSON.stringify(ready)}\n`
              : `Node ${nodeName} takes pods from ${server}.${shown}\n`,
          )
        },
      })
    })
}
