// `stowage why`: flags and help. run.ts runs the command.
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'
import { canShowColors, noColorOption } from '../../output/color.ts'

export const addWhy: AddCommand = (program, deps) => {
  program
    .command('why')
    .summary('explain why a claim, pod, volume or node is not ready, and how to fix it')
    .description(
      'Prints the causes that keep a claim, pod, volume or node of any Kubernetes cluster from being ready, as a tree down to ' +
        'each node and its amounts, with the commands that fix them. It only reads, and evaluates the objects with the rules of ' +
        'the Stowage scheduler and controllers. Objects that you may not read are reported as unknown, with the missing permission.',
    )
    .argument('<object>', 'kind and name: pvc/NAME, pod/NAME, pv/NAME or node/NAME')
    .option('-n, --namespace <name>', 'namespace of the claim or pod (default: the namespace of the kubeconfig)')
    .option(
      '--watch',
      'print the tree again after each change, until the object is ready; wait while the server is unavailable',
    )
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addOption(noColorOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage why pvc/data -n shop\n' +
        '  stowage why pod/web-0 --watch\n' +
        '  stowage why node/node-1 -o json\n' +
        '  kubectl get operations -A            # what waits in the whole cluster, if it runs on a Stowage server\n',
    )
    .action(async (object: string, { color, ...flags }) => {
      const { runWhy } = await import('./run.ts')
      const writeError = (text: string) => void process.stderr.write(text)
      await runWhy(object, flags, { ...deps, env: process.env, hasColors: canShowColors(color), writeError })
    })
}
