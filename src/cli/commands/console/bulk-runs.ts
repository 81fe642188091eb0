// Runs grow and migrate for the console with the code of the commands. The state of a run is recorded on its claims: a paused
// run resumes when it is started again, and the commands can continue a run that the console has forgotten.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { ApiError, badRequest } from '../../../api/status-error.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import { randomUuid } from '../../../base/identifiers.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { type Client, refOfKey } from '../../../client/index.ts'
import { listAll } from '../../../client/list-all.ts'
import type { BulkClaim, BulkRequest, BulkRun, BulkRuns, BulkState } from '../../../console/index.ts'
import { type BulkDeps, type ClaimResult, countResults } from '../../bulk/index.ts'
import { ExitError } from '../../exit-error.ts'
import { growClaims } from '../grow/run.ts'
import { undoGrowth } from '../grow/undo.ts'
import { migrateClaims } from '../migrate/run.ts'
import { type BulkCommand, readBulkCommand, undoCommandOf } from './bulk-command.ts'
import { findRecordedRuns } from './recorded-runs.ts'

export interface BulkRunsOptions {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
}

/** Beyond this number, the console forgets the oldest run that has ended. */
const RUNS_MAX = 50
/** Further runs are rejected with 429. */
const RUNNING_MAX = 4
/** Maximum number of claims that a run lists. Further claims are only counted. */
const CLAIMS_LISTED_MAX = 200

interface Run {
  readonly id: string
  readonly command: BulkCommand
  readonly request: BulkRequest
  readonly isUndo: boolean
  readonly startedAtMs: number
  state: BulkState
  message?: string
  finishedAtMs?: number
  total?: number
  results: Map<string, ClaimResult>
  working: Map<string, string>
  /** The command's output: a report as JSON. */
  output: string
  controller: AbortController
}

export function createBulkRuns({ client, clock, random }: BulkRunsOptions): BulkRuns & { close(): void } {
  const runs = new Map<string, Run>()

  function execute(command: BulkCommand, deps: BulkDeps): Promise<void> {
    switch (command.is) {
      case 'grow':
        return growClaims(client, command.request, deps)
      case 'undo grow':
        return undoGrowth(client, command.request, deps)
      case 'migrate':
        return migrateClaims(client, command.request, command.request.namespace, deps)
    }
  }

  const depsOf = (signal: AbortSignal, write: (text: string) => void): BulkDeps => ({
    ...{ clock, random, signal, write, env: {}, terminal: undefined },
  })

  function begin(run: Run): BulkRun {
    const running = [...runs.values()].filter(({ state }) => state === 'running').length
    if (running >= RUNNING_MAX) {
      throw new ApiError(
        429,
        'TooManyRequests',
        `The console executes at most ${RUNNING_MAX} runs at the same time. Wait until one has ended, or pause one.`,
      )
    }
    Object.assign(run, { state: 'running', message: undefined, finishedAtMs: undefined, output: '' })
    run.results = new Map()
    run.working = new Map()
    run.controller = new AbortController()
    const { signal } = run.controller
    const deps: BulkDeps = {
      ...depsOf(signal, (text) => {
        run.output += text
      }),
      observe: (claims) => {
        run.total = claims
        return {
          update: (key, message) => void run.working.set(key, message),
          complete(result) {
            run.working.delete(result.key)
            run.results.set(result.key, result)
          },
          finish() {},
        }
      },
    }
    execute(run.command, deps).then(
      () => finish(run, 'done'),
      (error: unknown) => {
        const isIncomplete = error instanceof ExitError // some claims failed, or the run was paused
        const message = error instanceof Error && !isIncomplete ? error.message : undefined
        finish(run, isIncomplete || signal.aborted ? 'paused' : 'failed', message)
      },
    )
    return describe(run)
  }

  function finish(run: Run, state: BulkState, message?: string): void {
    run.state = state
    run.finishedAtMs = clock.nowMs()
    if (message !== undefined) run.message = message
    run.working.clear()
  }

  function add(command: BulkCommand, request: BulkRequest, isUndo: boolean): BulkRun {
    const id = randomUuid(random).slice(0, 8)
    const run: Run = {
      ...{ id, command, request, isUndo, startedAtMs: clock.nowMs(), state: 'running', output: '' },
      ...{ results: new Map(), working: new Map(), controller: new AbortController() },
    }
    const started = begin(run)
    runs.set(id, run)
    const ended = [...runs.values()].find(({ state }) => state !== 'running')
    if (runs.size > RUNS_MAX && ended) runs.delete(ended.id)
    return started
  }

  function find(id: string): Run {
    const run = runs.get(id)
    if (run) return run
    throw new ApiError(
      404,
      'NotFound',
      `The console has no run ${JSON.stringify(id)}: the console may have been restarted.`,
    )
  }

  return {
    async list(signal) {
      const claims = await listAll(client, persistentVolumeClaimKind, { namespace: undefined, signal }).catch(
        (error: unknown) => {
          if (error instanceof ApiError && error.code === 403) return []
          throw error
        },
      )
      return { runs: [...runs.values()].reverse().map(describe), recorded: findRecordedRuns(claims) }
    },
    async preview(request, signal) {
      let output = ''
      const command = readBulkCommand(request, { isDryRun: true })
      try {
        await execute(
          command,
          depsOf(signal, (text) => {
            output += text
          }),
        )
      } catch (error) {
        if (!(error instanceof ExitError)) throw error // an ExitError means that some claims would be rejected; the report names them
      }
      return JSON.parse(output)
    },
    start: (request) =>
      add(
        asBadRequest(() => readBulkCommand(request, { isDryRun: false })),
        request,
        false,
      ),
    pause(id) {
      const run = find(id)
      if (run.state !== 'running') throw badRequest(`The run is ${run.state}.`)
      run.controller.abort()
      return describe(run)
    },
    resume(id) {
      const run = find(id)
      if (run.state === 'running' || run.state === 'done') throw badRequest(`The run is ${run.state}.`)
      return begin(run)
    },
    undo(id) {
      const { command, request, isUndo, state, output } = find(id)
      if (state === 'running') throw badRequest('Pause the run first.')
      if (isUndo) throw badRequest('The run is already an undo.')
      return add(
        asBadRequest(() => undoCommandOf(command, output)),
        request,
        true,
      )
    },
    close() {
      for (const { controller } of runs.values()) controller.abort()
    },
  }
}

function describe(run: Run): BulkRun {
  const { id, request, isUndo, state, message, startedAtMs, finishedAtMs, total, results, working, command } = run
  const finished = [...results.values()]
  const listed: BulkClaim[] = [
    ...[...working].map(([key, text]) => ({ ...placeOf(key), state: 'working' as const, message: text })),
    ...finished.flatMap(({ key, is, message: text }) =>
      is === 'failed' || is === 'unfinished' ? [{ ...placeOf(key), state: is, message: text }] : [],
    ),
  ]
  return {
    ...{ id, request, isUndo, state, startedAt: new Date(startedAtMs).toISOString(), command: command.text },
    ...(message === undefined ? {} : { message }),
    ...(finishedAtMs === undefined ? {} : { finishedAt: new Date(finishedAtMs).toISOString() }),
    ...(total === undefined ? {} : { total }),
    counts: {
      done: countResults(finished, 'done'),
      unchanged: countResults(finished, 'nothing'),
      failed: countResults(finished, 'failed'),
      unfinished: countResults(finished, 'unfinished'),
    },
    claims: listed.slice(0, CLAIMS_LISTED_MAX),
  }
}

function placeOf(key: string): { namespace: string; name: string } {
  const { namespace = '', name } = refOfKey(key)
  return { namespace, name }
}

function asBadRequest<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof UsageError ? badRequest(error.message) : error
  }
}
