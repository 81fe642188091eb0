// Adds a CSI sidecar command from a table of flags and the function that runs the sidecar.
import { type Command, Option } from 'commander'
import { stowageVersion } from '../apiserver/version.ts'
import { LOG_FORMATS } from '../base/log.ts'
import type { SidecarRun, SidecarSettings } from '../processes/run-sidecar.ts'
import { createProcessDeps, type ProgramDeps } from './command.ts'
import { logFormatOption, logLevelOption } from './flags/common.ts'
import { addFlags, type FlagTable } from './flags/flag-types.ts'
import { addIgnoredFlags, findIgnoredFlags } from './flags/ignored-flags.ts'

export interface SidecarCommand<Settings extends SidecarSettings> {
  readonly name: string
  readonly summary: string
  readonly description: string
  readonly flags: FlagTable
  /**
   * Flags of the upstream sidecar that have no effect here and take a value, in addition to those of ignored-flags.ts.
   */
  readonly ignoredFlags?: readonly string[]
  /** The flags of an example, without program or command. */
  readonly example: string
  readonly moreExamples?: readonly string[]
  readSettings(flags: Readonly<Record<string, unknown>>): Settings
  /** Imports the function that runs the sidecar. */
  loadRun(): Promise<(run: SidecarRun<Settings>) => Promise<void>>
}

export function addSidecarCommand<Settings extends SidecarSettings>(
  program: Command,
  deps: ProgramDeps,
  sidecar: SidecarCommand<Settings>,
): void {
  const command = program.command(sidecar.name).summary(sidecar.summary).description(sidecar.description)
  addFlags(command, sidecar.flags)
  addIgnoredFlags(command, sidecar.ignoredFlags)
  command
    .addOption(logLevelOption())
    .addOption(logFormatOption())
    .option('-v, --v <number>', 'log level as a number; 4 and higher is debug (default: 2)')
    .addOption(new Option('--logging-format <format>', 'alias of --log-format').choices(LOG_FORMATS))
    .version(stowageVersion, '--version', 'print the version')
    .addHelpText(
      'after',
      `\nExample:\n${[sidecar.example, ...(sidecar.moreExamples ?? [])].map((flags) => `  stowage ${sidecar.name} ${flags}\n`).join('')}`,
    )
    .action(async (flags) => {
      const settings = sidecar.readSettings(flags)
      const run = await sidecar.loadRun()
      const logLevel = flags.logLevel ?? (Number(flags.v ?? 2) >= 4 ? 'debug' : 'info')
      const logFormat = flags.logFormat ?? flags.loggingFormat
      const sidecarDeps = await createProcessDeps(deps, { logLevel, logFormat })
      const ignoredFlags = findIgnoredFlags(flags, sidecar.ignoredFlags)
      if (ignoredFlags.length > 0)
        sidecarDeps.log.warn({ flags: ignoredFlags }, 'these flags of the upstream sidecar have no effect here')
      await run({ settings, ...sidecarDeps, write: deps.write })
    })
}
