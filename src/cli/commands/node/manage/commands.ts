// The subcommands of `stowage node` that manage a cluster's nodes: flags and help. run.ts runs them.
import type { Command } from 'commander'
import type { ProgramDeps } from '../../../command.ts'
import { kubeconfigOption, outputOption, parseDurationFlag } from '../../../flags/common.ts'
import { invalidFlag } from '../../../flags/flag-types.ts'

const NODE = ['<node>', 'name of the node'] as const

export function addManageCommands(node: Command, deps: ProgramDeps): void {
  const add = (name: string, summary: string, description: string, examples: string) =>
    node
      .command(name)
      .summary(summary)
      .description(description)
      .addOption(kubeconfigOption())
      .addOption(outputOption())
      .addHelpText('after', `\nExamples:\n${examples}`)
  const load = () => import('./run.ts')

  add(
    'list',
    'list the nodes with their pods and volumes',
    'Lists the nodes of any Kubernetes cluster: their state, pods, attached volumes, volumes that exist on the node only, and CSI drivers.',
    '  stowage node list\n  stowage node list -o json\n',
  ).action(async (flags) => (await load()).runList(flags, deps))

  add(
    'cordon',
    'keep new pods away from a node',
    'Marks the node as unschedulable. Its pods continue to run.',
    '  stowage node cordon node-1\n',
  )
    .argument(...NODE)
    .option('--dry-run', 'validate on the server and change nothing')
    .action(async (name: string, flags) => (await load()).runCordon(name, true, flags, deps))

  add('uncordon', 'allow new pods on a node', 'Marks the node as schedulable.', '  stowage node uncordon node-1\n')
    .argument(...NODE)
    .option('--dry-run', 'validate on the server and change nothing')
    .action(async (name: string, flags) => (await load()).runCordon(name, false, flags, deps))

  add(
    'drain',
    'move the pods and attached volumes of a node to other nodes',
    'Cordons the node, evicts its pods, and waits until they have left and their volumes are detached. Pods that would be lost, would ' +
      'lose data or could not run elsewhere stay and are listed, unless a flag allows their eviction. The same command continues after an interruption.',
    '  stowage node drain node-1 --dry-run\n  stowage node drain node-1 --timeout 20m\n  stowage node drain node-1 --evict-local --force\n',
  )
    .argument(...NODE)
    .option('--dry-run', 'show which pods would move, which would stay and what would be lost')
    .option('--force', 'also evict pods that no controller creates again')
    .option(
      '--evict-local',
      'also evict pods whose volumes exist on this node only; new pods wait until the node is back',
    )
    .option('--delete-emptydir-data', 'also evict pods with emptyDir volumes, whose data is lost')
    .option('--grace-period <seconds>', 'time that pods have to stop (default: that of each pod)')
    .option('--timeout <duration>', 'how long to wait for pods and volumes', '10m')
    .action(async (name: string, { force, evictLocal, deleteEmptydirData, gracePeriod, timeout, ...flags }) => {
      const drainFlags = {
        force: force === true,
        evictLocal: evictLocal === true,
        deleteEmptyDirData: deleteEmptydirData === true,
        gracePeriodSeconds: gracePeriod === undefined ? undefined : parseSeconds('--grace-period', gracePeriod),
        timeoutMs: parseDurationFlag('--timeout', timeout),
      }
      await (await load()).runDrain(name, { ...flags, ...drainFlags }, deps)
    })

  add(
    'fence',
    'mark a node whose machine is off, so that its volumes can move',
    'Sets the taint node.kubernetes.io/out-of-service: the pods of the node are removed and its volumes detached without the confirmation of ' +
      'the node. Only for a machine that is off: otherwise two nodes could write to one volume.',
    '  stowage node fence node-1 --confirm-off\n',
  )
    .argument(...NODE)
    .option('--confirm-off', 'confirm that the machine is off and stays off until `stowage node unfence`')
    .option('--dry-run', 'validate on the server and change nothing')
    .action(async (name: string, flags) => (await load()).runFence(name, flags, deps))

  add(
    'unfence',
    'return a fenced node to service',
    'Removes the taint of `stowage node fence`. Fails while the node is not ready or still uses volumes of pods that were removed.',
    '  stowage node unfence node-1\n',
  )
    .argument(...NODE)
    .option('--dry-run', 'validate on the server and change nothing')
    .action(async (name: string, flags) => (await load()).runUnfence(name, flags, deps))

  add(
    'forget',
    'remove the objects of a node that will not come back',
    'Shows and, once confirmed, removes the pods, attachments, capacity objects, CSINode, lease and Node of a machine that is off for good. ' +
      'Volumes that existed on this node only are kept unless --delete-volumes is given.',
    '  stowage node forget node-1 --dry-run\n  stowage node forget node-1 --delete-volumes --yes\n',
  )
    .argument(...NODE)
    .option('--dry-run', 'show what would be removed')
    .option('--yes', 'remove without asking; confirms that the machine is off')
    .option('--delete-volumes', 'also remove volumes that existed on this node only, and their claims; LOSES DATA')
    .option('--timeout <duration>', 'how long to wait until drivers have detached its volumes', '2m')
    .action(async (name: string, { timeout, ...flags }) =>
      (await load()).runForget(name, { ...flags, timeoutMs: parseDurationFlag('--timeout', timeout) }, deps),
    )
}

function parseSeconds(flag: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw invalidFlag(flag, text, 'a whole number of seconds')
  return Number(text)
}
