// `stowage console`: flags and help. run.ts runs the command.
import { DEFAULT_PORT } from '../../../console/default-port.ts'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, logFormatOption, logLevelOption, outputOption } from '../../flags/common.ts'
import { parsePort } from './parse-port.ts'

export const addConsole: AddCommand = (program, deps) => {
  program
    .command('console')
    .summary('serve a browser console on this machine for any API server')
    .description(
      'Serves a page on the loopback address with claims, capacity, operations and causes of any Kubernetes cluster, and ' +
        'forwards the requests of the page to the API server with your credentials, as `kubectl proxy` does. Only the ' +
        'printed URL opens it. `stowage up` starts its own console.',
    )
    .addOption(kubeconfigOption())
    .option('--context <name>', 'context of the kubeconfig (default: its current context)')
    .option('--port <number>', `port on 127.0.0.1 (default: ${DEFAULT_PORT}, or a free one if it is in use)`)
    .option('--open', 'open the URL in the browser')
    .addOption(logLevelOption('warn'))
    .addOption(logFormatOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage console --open\n' +
        '  stowage console --kubeconfig ~/.kube/config --context production --port 8080\n',
    )
    .action(async (flags) => {
      const port = parsePort('--port', flags.port)
      const { runConsole } = await import('./run.ts')
      await runConsole({ ...flags, port }, deps)
    })
}
