// `stowage stop`: flags, help and output. stop-server.ts stops the server.
import type { AddCommand } from '../../command.ts'
import { dataDirOption, outputOption, parseDataDir, parseDurationFlag } from '../../flags/common.ts'

export const addStop: AddCommand = (program, deps) => {
  program
    .command('stop')
    .summary('stop the server of a data directory')
    .description(
      'Stops the server that runs on the data directory, with its controllers and nodes, and waits until it has exited. ' +
        'Volumes stay mounted, and processes of pods keep running. Succeeds if no server runs.',
    )
    .addOption(dataDirOption())
    .option('--timeout <duration>', 'how long to wait for the server to exit', '30s')
    .addOption(outputOption())
    .addHelpText('after', '\nExample:\n  stowage stop --data-dir /var/lib/stowage\n')
    .action(async (flags) => {
      const { stopServer } = await import('./stop-server.ts')
      const dataDir = parseDataDir(flags.dataDir)
      const timeoutMs = parseDurationFlag('--timeout', flags.timeout)
      const stopped = await stopServer({ dataDir, timeoutMs, clock: deps.clock })
      if (flags.output === 'json') return deps.write(`${JSON.stringify({ dataDir, ...stopped })}\n`)
      deps.write(
        stopped.pid === undefined
          ? `No server runs on ${dataDir}.\n`
          : `Stopped the server on ${dataDir} (pid ${stopped.pid}, ${stopped.durationMs} ms).\n`,
      )
    })
}
