// `stowage stop`: flags, help and output. stop-server.ts stops the server.
import type { AddCommand } from '../../command.ts'
import { dataDirOption, outputOption, parseDataDir, parseDurationFlag } from '../../flags/common.ts'
import { formatOutput } from '../../output/format-output.ts'

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
    .option('--dry-run', 'print which server would be stopped, and stop nothing')
    .addOption(outputOption())
    .addHelpText('after', '\nExample:\n  stowage stop --data-dir /var/lib/stowage\n')
    .action(async (flags) => {
      const { findServer, stopServer } = await import('./stop-server.ts')
      const dataDir = parseDataDir(flags.dataDir)
      const timeoutMs = parseDurationFlag('--timeout', flags.timeout)
      const none = () => `No server runs on ${dataDir}.\n`
      if (flags.dryRun) {
        const pid = (await findServer(dataDir))?.pid
        const text = () => (pid === undefined ? none() : `Would stop the server on ${dataDir} (pid ${pid}).\n`)
        return deps.write(await formatOutput(flags.output, { dataDir, dryRun: true, pid }, text))
      }
      const { pid, durationMs } = await stopServer({ dataDir, timeoutMs, clock: deps.clock })
      const text = () =>
        pid === undefined ? none() : `Stopped the server on ${dataDir} (pid ${pid}, ${durationMs} ms).\n`
      deps.write(await formatOutput(flags.output, { dataDir, pid, durationMs }, text))
    })
}
