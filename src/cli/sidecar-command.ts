// Adds the command of a CSI sidecar, from a table of flags and the function that runs it.
import type { Command } from 'commander'
import { type ListenAddress, parseListen } from '../base/listen-address.ts'
import { UsageError } from '../base/usage-error.ts'
import type { SidecarRun, SidecarSettings } from '../processes/run-sidecar.ts'
import { type ProgramDeps, processDeps } from './command.ts'
import { logLevelOption } from './flags/common.ts'
import { addFlags, type FlagTable, wrong } from './flags/typed.ts'

export interface SidecarCommand<Settings extends SidecarSettings> {
  readonly name: string
  readonly summary: string
  readonly description: string
  readonly flags: FlagTable
  /** Flags only, without the program and command. */
  readonly example: string
  read(given: Readonly<Record<string, unknown>>): Settings
  /** Imports the code that runs. */
  load(): Promise<(run: SidecarRun<Settings>) => Promise<void>>
}

export function addSidecar<Settings extends SidecarSettings>(
  program: Command,
  deps: ProgramDeps,
  sidecar: SidecarCommand<Settings>,
): void {
  const command = program.command(sidecar.name).summary(sidecar.summary).description(sidecar.description)
  addFlags(command, sidecar.flags)
  command
    .addOption(logLevelOption())
    .option('-v, --v <number>', 'log level as a number: debug from 4 (default: 2)')
    .addHelpText('after', `\nExample:\n  stowage ${sidecar.name} ${sidecar.example}\n`)
    .action(async (given) => {
      const settings = sidecar.read(given)
      const run = await sidecar.load()
      const logLevel = given.logLevel ?? (Number(given.v ?? 2) >= 4 ? 'debug' : 'info')
      await run({ settings, ...(await processDeps(deps, logLevel)) })
    })
}

export interface MonitoringFlags {
  readonly httpEndpoint: string
  readonly metricsAddress: string
  readonly metricsPath: string
}

/** The address of the monitoring endpoint, if any. */
export function readMonitoring({
  httpEndpoint,
  metricsAddress,
  metricsPath,
}: MonitoringFlags): ListenAddress | undefined {
  if (httpEndpoint && metricsAddress) throw new UsageError('Give --http-endpoint or --metrics-address, not both.')
  if (!metricsPath.startsWith('/')) throw wrong('--metrics-path', metricsPath, 'a path such as /metrics')
  const address = httpEndpoint || metricsAddress
  return address ? parseListen(address) : undefined
}
