// Runs `stowage grow`: plans and validates every claim, then expands the claims and prints the results. Nothing is written if
// more than --max-failures claims cannot grow.
import { ApiError, isForbidden } from '../../../api/status-error.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import { randomUuid } from '../../../base/identifiers.ts'
import { type Client, refOfKey } from '../../../client/index.ts'
import {
  type BulkDeps,
  type BulkRequest,
  type ClaimResult,
  CONCURRENT_REQUESTS_MAX,
  exitUnlessSuccessful,
  findKnownResults,
  isComplete,
  mapConcurrently,
  runBulk,
  selectClaims,
  withClaims,
  withClient,
} from '../../bulk/index.ts'
import { closeRecord, createGrownStatus, createGrowTask, type GrowTask } from './grow-claim.ts'
import type { GrowTarget } from './plan.ts'
import { openRunsOf } from './record.ts'
import { formatReport } from './report.ts'

export interface GrowRequest extends BulkRequest {
  readonly names: readonly string[]
  readonly size: { readonly to: string } | { readonly by: string }
}

export const runGrow = (request: GrowRequest, deps: BulkDeps): Promise<void> =>
  withClient(request, 'stowage-grow', deps, (client, namespace) =>
    growClaims(client, { ...request, namespace: request.namespace ?? namespace }, deps),
  )

type Request = GrowRequest & { readonly namespace: string }

/** Throws ExitError unless all claims have grown. */
export async function growClaims(client: Client, request: Request, deps: BulkDeps): Promise<void> {
  const claims = await selectClaims(client, request)
  const interruptedRuns = openRunsOf(claims)
  const target = createTarget(request, interruptedRuns, deps.random)
  const tasks = claims.map((claim) => createGrowTask(claim, target, client))
  if (request.output === 'text' && 'by' in target && interruptedRuns.length > 0) {
    deps.write('Resuming an interrupted run.\n')
  }
  const knownResults = await findKnownResults(tasks, (task) => task.findRejection())
  const results = await runBulk(
    {
      tasks,
      knownResults,
      statusIfNotStarted: (task) => statusIfNotStarted(task, request),
      watchClaims: (run) => withClaims(client, request.namespace, deps, run),
      progressStyle: 'lines',
    },
    request,
    deps,
  )
  deps.write(await formatReport(tasks, results, request))
  // Close the records after the output: if the output is lost, the command can run again without growing a claim twice.
  const hasRecords = 'by' in target || interruptedRuns.length > 0
  if (hasRecords && isComplete(results) && !request.isDryRun) await closeRecords(client, results, deps.clock)
  exitUnlessSuccessful(results, request, deps.signal)
}

function createTarget({ size }: Request, interruptedRuns: readonly string[], random: Random): GrowTarget {
  if ('to' in size) return size
  const run = interruptedRuns[0] ?? randomUuid(random)
  return { ...size, run, resumedRuns: [...interruptedRuns, run] }
}

function statusIfNotStarted({ plan }: GrowTask, { isDryRun }: Request): Omit<ClaimResult, 'key'> {
  if (plan.do === 'nothing') return createGrownStatus(plan)
  if (!isDryRun) return { is: 'untouched', message: 'nothing was changed, because other claims cannot grow' }
  const message = plan.do === 'follow' ? 'is already growing; the command would wait for it' : 'would grow'
  return { is: 'untouched', message }
}

const CLOSE_ATTEMPTS_MAX = 5
const CLOSE_RETRY_MS = 1_000

async function closeRecords(client: Client, results: readonly ClaimResult[], clock: Clock): Promise<void> {
  const close = async ({ key }: ClaimResult) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await closeRecord(client, refOfKey(key))
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (isForbidden(error) || attempt >= CLOSE_ATTEMPTS_MAX) {
          throw new Error(
            `${key} has grown, but its record cannot be closed (${error.message}): the next --by resumes this run and changes nothing.`,
          )
        }
      }
      await clock.sleep(CLOSE_RETRY_MS)
    }
  }
  await mapConcurrently(results, CONCURRENT_REQUESTS_MAX, close)
}
