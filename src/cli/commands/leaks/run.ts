// Runs `stowage leaks`: connects to drivers and API server, prints the leaks, and adopts or deletes them after a confirmation.
import { setMaxListeners } from 'node:events'
import { UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { httpClient } from '../../../client/index.ts'
import type { ProgramDeps } from '../../command.ts'
import { confirm } from '../../confirm.ts'
import { ExitError } from '../../exit-error.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { formatDuration } from '../../output/units.ts'
import type { AdoptOptions } from './adopt.ts'
import { type Change, type ChangeAction, changeLeaks, selectCandidates } from './change.ts'
import { type FindDeps, findLeaks, type LeakReport } from './find-leaks.ts'
import { formatChange, formatPlan, formatReport } from './format-leaks.ts'
import { openDrivers } from './open-drivers.ts'

export interface LeaksRequest extends AdoptOptions {
  readonly kubeconfig?: string
  readonly driver?: string
  readonly addresses: readonly string[]
  readonly dataDir: string
  readonly action?: ChangeAction
  readonly handles: readonly string[]
  readonly gracePeriodMs: number
  readonly dryRun: boolean
  readonly yes: boolean
  readonly output: OutputFormat
}

export interface LeaksDeps extends ProgramDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly hasColors: boolean
  /** Writes progress to standard error. */
  writeProgress(text: string): void
}

const TIMEOUT_MS = 30_000
const USER_AGENT = 'stowage-leaks'

export async function runLeaks(request: LeaksRequest, deps: LeaksDeps): Promise<void> {
  const { clock, signal } = deps
  setMaxListeners(0, signal) // every list and call adds a listener
  const { connection } = await loadClientConfig(request.kubeconfig, deps)
  const drivers = await openDrivers(request, { clock, signal })
  const client = httpClient({ connection, clock, timeoutMs: TIMEOUT_MS, userAgent: USER_AGENT })
  try {
    await reportAndChange(request, { client, processes: drivers.processes, clock, signal }, drivers.problems, deps)
  } finally {
    client.close()
    drivers.close()
  }
}

async function reportAndChange(
  request: LeaksRequest,
  findDeps: FindDeps & { readonly client: ReturnType<typeof httpClient> },
  problems: readonly string[],
  deps: LeaksDeps,
): Promise<void> {
  const { action, output, dryRun } = request
  const options = { ...request, namedHandles: new Set(request.handles) }
  const check = await findLeaks(findDeps, options)
  const report: LeakReport = { ...check.report, unknown: [...check.report.unknown, ...problems] }
  const text = () => formatReport(report, { nowMs: deps.clock.nowMs(), hasColors: deps.hasColors })
  if (action === undefined) {
    deps.write(await formatOutput(output, report, text))
    return failIfLeaksRemain(report.leaks.length)
  }
  const candidates = selectCandidates(check, { ...options, action })
  if (dryRun) {
    const plan = { ...report, dryRun: true, action, candidates: candidates.map(({ handle }) => handle) }
    deps.write(
      await formatOutput(
        output,
        plan,
        () => `${text()}${formatPlan(action, candidates)}Nothing was changed (--dry-run).\n`,
      ),
    )
    return failIfLeaksRemain(report.leaks.length)
  }
  if (output === 'text') deps.write(text())
  const changes = candidates.length === 0 ? [] : await applyChanges(candidates, request, action, findDeps, deps)
  if (output === 'text') {
    if (candidates.length === 0) deps.write(formatPlan(action, candidates))
  } else deps.write(await formatOutput(output, { ...report, changes }, text))
  const changed = changes.filter(({ result }) => result === 'adopted' || result === 'deleted').length
  failIfLeaksRemain(report.leaks.length - changed)
}

async function applyChanges(
  candidates: ReturnType<typeof selectCandidates>,
  request: LeaksRequest,
  action: ChangeAction,
  findDeps: FindDeps & { readonly client: ReturnType<typeof httpClient> },
  deps: LeaksDeps,
): Promise<readonly Change[]> {
  const isText = request.output === 'text'
  if (isText) deps.write(formatPlan(action, candidates))
  if (!request.yes) {
    if (!isText) throw new UsageError(`Nothing was changed: with --output ${request.output}, --${action} needs --yes.`)
    await confirm({
      withoutTerminal: `Nothing was changed: without a terminal, --${action} needs --yes.`,
      declined: 'Nothing was changed.',
    })
  }
  const options = { ...request, action, namedHandles: new Set(request.handles) }
  return changeLeaks(candidates, options, {
    ...findDeps,
    onWait: (ms) =>
      deps.writeProgress(
        `Checking again in ${formatDuration(ms)}, because the driver does not report when it created the volumes.\n`,
      ),
    onChange: (change) => {
      if (isText) deps.write(formatChange(change))
    },
  })
}

/** Throws ExitError with code 1 if leaks remain. */
function failIfLeaksRemain(leakCount: number): void {
  if (leakCount > 0) throw new ExitError(1)
}
