// Runs `stowage verify`: starts the driver if a command is given, runs the checks, and prints the report. Throws ExitError with
// code 1 if a rule is violated and 130 if the run is interrupted, and UsageError if the driver cannot be verified.
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { quoteShellWord } from '../../../base/shell-word.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { createMounts } from '../../../host/mounts.ts'
import { createRun } from '../../../host/run.ts'
import { createHostDisk } from '../../../nodeagent/disk/host-disk.ts'
import { createDriverProcess, type DriverProcess } from '../../../verify/driver-process.ts'
import {
  CannotVerifyError,
  type Check,
  openSocket,
  selectChecks,
  type VerifyReport,
  type VerifySettings,
  verifyDriver,
} from '../../../verify/index.ts'
import type { ProgramDeps } from '../../command.ts'
import { ExitError } from '../../exit-error.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { createWorkProgress, type ProgressOutput } from '../../output/work-progress.ts'
import { formatJunit } from './format-junit.ts'
import { formatVerifyReport } from './format-report.ts'
import { readSettings, type SettingsFlags } from './read-settings.ts'

export interface VerifyFlags extends SettingsFlags {
  readonly csiAddress?: string
  readonly controllerAddress?: string
  readonly driver?: string
  readonly only?: readonly string[]
  readonly workDir?: string
  readonly junit?: string
  readonly dryRun?: boolean
  readonly output: OutputFormat
}

export interface VerifyDeps extends ProgramDeps {
  readonly hasColors: boolean
  readonly progressOutput: ProgressOutput
}

const INTERRUPTED_EXIT_CODE = 130

export async function runVerify(flags: VerifyFlags, deps: VerifyDeps): Promise<void> {
  const checks = selectRequested(flags.only ?? [])
  const settings = await readSettings(flags, deps.random)
  if (flags.dryRun) {
    const plan = {
      checks: checks.map(({ id, title, rule, needs }) => ({ id, title, rule, ...(needs ? { needs } : {}) })),
    }
    deps.write(await formatOutput(flags.output, plan, () => formatPlan(checks)))
    return
  }
  if (flags.csiAddress === undefined && flags.driver === undefined)
    throw new UsageError('Set --csi-address to the socket of the driver, or --driver to the command that starts it.')

  const report = await verify(flags, { checks, settings }, deps)
  if (flags.junit !== undefined) await writeFile(flags.junit, formatJunit(report))
  const replayCommand = (id: string) => formatReplay(flags, id, settings.seed)
  deps.write(
    await formatOutput(flags.output, { ...report, checks: report.checks.map(addReplay) }, () =>
      formatVerifyReport(report, { hasColors: deps.hasColors, replayCommand }),
    ),
  )
  function addReplay(check: VerifyReport['checks'][number]) {
    const hasFinding = check.status === 'violated' || check.status === 'advice'
    return hasFinding ? { ...check, replay: replayCommand(check.id) } : check
  }
  if (deps.signal.aborted) throw new ExitError(INTERRUPTED_EXIT_CODE)
  if (report.counts.violated > 0) throw new ExitError(1)
}

interface VerifyPlan {
  readonly checks: readonly Check[]
  readonly settings: VerifySettings
}

async function verify(flags: VerifyFlags, { checks, settings }: VerifyPlan, deps: VerifyDeps): Promise<VerifyReport> {
  const { clock, signal, progressOutput } = deps
  const directory = await makeDirectory(flags.workDir)
  const socket = flags.csiAddress ?? join(directory, 'csi.sock')
  const run = createRun({ clock })
  const disk = createHostDisk({ mounts: createMounts({ run }), run })
  const progress = createWorkProgress({
    title: 'Verifying',
    unit: 'checks',
    total: checks.length,
    clock,
    output: progressOutput,
  })
  let driverProcess: DriverProcess | undefined
  try {
    if (flags.driver !== undefined) {
      driverProcess = createDriverProcess({ command: flags.driver, socket, clock, signal })
      await driverProcess.start().catch((error: Error) => {
        throw new CannotVerifyError(error.message)
      })
    }
    const volumesDirectory = join(directory, 'volumes')
    await mkdir(volumesDirectory)
    return await verifyDriver({
      csiAddress: socket,
      ...(flags.controllerAddress ? { controllerAddress: flags.controllerAddress } : {}),
      checks,
      settings,
      open: openSocket(clock),
      ...(driverProcess ? { driverProcess } : {}),
      directory: volumesDirectory,
      disk,
      clock,
      signal,
      onProgress: (_check, index) => progress.set(index),
    })
  } catch (error) {
    if (error instanceof CannotVerifyError) throw new UsageError(error.message) // for exit code 2
    throw error
  } finally {
    progress.finish()
    await driverProcess?.kill()
    await rm(join(directory, 'csi.sock'), { force: true })
    await disk.removeTree(directory).catch(() => {}) // the report names what is still mounted
  }
}

/** Creates an empty directory. Its name is short, because the path of a Unix socket in it may have at most 107 bytes. */
async function makeDirectory(parent = tmpdir()): Promise<string> {
  try {
    return await realpath(await mkdtemp(join(parent, 'stowage-verify-')))
  } catch (error) {
    throw new UsageError(`--work-dir ${parent}: cannot create a directory in it: ${(error as Error).message}`)
  }
}

function selectRequested(patterns: readonly string[]): readonly Check[] {
  for (const pattern of patterns)
    if (selectChecks([pattern]).length === 0)
      throw new UsageError(`--only ${pattern}: there is no such check. \`stowage verify --dry-run\` lists all checks.`)
  return selectChecks(patterns)
}

const formatPlan = (checks: readonly Check[]): string =>
  `${checks.map(({ id, title, rule }) => `${id}: ${title}\n  ${rule.section}: ${rule.text}\n`).join('')}\n${checks.length} checks\n`

/** Returns the command that repeats one check with this run's flags. */
function formatReplay(flags: VerifyFlags, id: string, seed: number): string {
  const given = {
    '--csi-address': flags.csiAddress,
    '--controller-address': flags.controllerAddress,
    '--driver': flags.driver,
    '--class': flags.class,
    '--secrets': flags.secrets,
    '--size': flags.size === '1Gi' ? undefined : flags.size,
    '--expanded-size': flags.expandedSize,
    '--other-node': flags.otherNode,
    '--call-timeout': flags.callTimeout === '10s' ? undefined : flags.callTimeout,
    '--work-dir': flags.workDir,
    '--only': id,
    '--seed': String(seed),
  }
  const words = Object.entries(given).flatMap(([flag, value]) =>
    value === undefined ? [] : [flag, quoteShellWord(value)],
  )
  return ['stowage verify', ...words].join(' ')
}
