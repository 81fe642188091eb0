// `stowage simulate`: flags and help. run.ts runs the command.
import type { AddCommand } from '../../command.ts'
import { collectValues, kubeconfigOption, outputOption } from '../../flags/common.ts'
import { invalidFlag } from '../../flags/flag-types.ts'
import { canShowColors, noColorOption } from '../../output/color.ts'
import { standardError } from '../../output/work-progress.ts'

const NODES_MAX = 100_000

export const addSimulate: AddCommand = (program, deps) => {
  program
    .command('simulate')
    .summary('predict whether pods and claims would fit, where they would go, and what would be left')
    .description(
      'Places the pods of manifests on a snapshot of any Kubernetes cluster with the Stowage scheduler and its capacity ' +
        'reservations, and prints where pods and volumes would go, what would not fit and why, and what would be left. It only ' +
        'reads. Nodes, classes and quotas can be added, changed or removed first.',
    )
    .option(
      '-f, --filename <file>',
      'manifests of pods and claims, or of workloads with them; - is standard input; may be repeated',
      collectValues,
    )
    .option(
      '-n, --namespace <name>',
      'namespace of objects whose manifest names none (default: that of the kubeconfig)',
    )
    .option('--pending', 'also place the pods of the cluster that have no node')
    .option('--drain <node>', 'place the pods of this node on other nodes; may be repeated', collectValues)
    .option(
      '--remove-node <node>',
      'remove this node and place its pods on other nodes; may be repeated',
      collectValues,
    )
    .option('--like <node>', 'add nodes like this one would be without its pods and volumes')
    .option(
      '--node-group <file>',
      'add nodes like the Node of this file, with its CSINode and CSIStorageCapacity objects',
    )
    .option('--add-nodes <count>', 'number of nodes to add (default: as many as the pods need)', parseCount)
    .option(
      '--set-class <file>',
      'StorageClasses that replace or extend those of the cluster; may be repeated',
      collectValues,
    )
    .option(
      '--quota <file>',
      'ResourceQuotas that replace or extend those of the cluster; may be repeated',
      collectValues,
    )
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addOption(noColorOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage simulate -f shop.yaml\n' +
        '  stowage simulate -f shop.yaml --like node-1    # how many such nodes are needed\n' +
        '  stowage simulate --drain node-1\n',
    )
    .action(async ({ color, ...flags }) => {
      const { runSimulate } = await import('./run.ts')
      const output = { hasColors: canShowColors(color), progressOutput: standardError() }
      await runSimulate(flags, { ...deps, ...output, env: process.env })
    })
}

function parseCount(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count <= NODES_MAX) return count
  throw invalidFlag('--add-nodes', text, `a whole number from 0 to ${NODES_MAX}`)
}
