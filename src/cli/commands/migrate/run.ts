// Runs `stowage migrate`: moves the claims of one VolumeAttributesClass to another at a limited rate, pauses after too many
// failures, and moves them back with --undo. The state is on the claims (record.ts), so the command can resume anywhere.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { ApiError } from '../../../api/status-error.ts'
import type { Random } from '../../../base/clock.ts'
import { randomUuid } from '../../../base/identifiers.ts'
import { type Client, refOfKey } from '../../../client/index.ts'
import type { Cache } from '../../../runtime/index.ts'
import {
  type BulkDeps,
  type BulkRequest,
  type Claim,
  type ClaimResult,
  CONCURRENT_REQUESTS_MAX,
  createInterruptedError,
  exitUnlessSuccessful,
  findKnownResults,
  isComplete,
  mapConcurrently,
  runBulk,
  shouldStartNothing,
  withClaims,
  withClient,
} from '../../bulk/index.ts'
import { closeRecord, createMoveTask, removeRecord } from './migrate-claim.ts'
import { finalClassOf, type Operation } from './plan.ts'
import { recordOf } from './record.ts'
import { formatEmptyReport, formatOpening, formatReport } from './report.ts'
import { filterByLabels, type Selection, selectMove, selectUndo } from './select.ts'
import { readClass, readTargetClass } from './target-class.ts'

export interface MigrateRequest extends BulkRequest {
  readonly direction:
    | { readonly is: 'forward'; readonly from: string; readonly to: string }
    | { readonly is: 'undo'; readonly id?: string; readonly from?: string; readonly to?: string }
  readonly selectsAllNamespaces: boolean
  /** Value of the flag --rate, such as 5/s. */
  readonly rate: string
}

export const runMigrate = (request: MigrateRequest, deps: BulkDeps): Promise<void> =>
  withClient(request, 'stowage-migrate', deps, (client, namespace) =>
    migrateClaims(client, request, request.selectsAllNamespaces ? undefined : (request.namespace ?? namespace), deps),
  )

/** Throws ExitError unless all claims have moved. */
export async function migrateClaims(
  client: Client,
  request: MigrateRequest,
  namespace: string | undefined,
  deps: BulkDeps,
): Promise<void> {
  // A missing class or permission must fail the command, but the cache would retry these errors forever.
  if (request.direction.is === 'forward') await readClass(client, request.direction.to)
  else await client.list(persistentVolumeClaimKind, { namespace, limit: 1 })
  await withClaims(client, namespace, deps, async (claims) => {
    if (!(await claims.whenSynced(deps.signal))) throw createInterruptedError()
    const selection = selectOperation(filterByLabels(claims.list(), request.selector), request, deps.random)
    if (selection) await migrate(client, selection, claims, { ...request, namespace }, deps)
    else deps.write(await formatEmptyReport(request))
  })
}

function selectOperation(
  claims: readonly Claim[],
  { direction }: MigrateRequest,
  random: Random,
): Selection | undefined {
  if (direction.is === 'forward') {
    const selection = selectMove(claims, { ...direction, newId: `m-${randomUuid(random).slice(0, 8)}` })
    return selection.claims.length > 0 ? selection : undefined
  }
  const selection = selectUndo(claims, direction)
  if (selection) return selection
  throw new Error('No claim has a record of a matching operation: there is nothing to undo.')
}

async function migrate(
  client: Client,
  selection: Selection,
  claims: Cache<PersistentVolumeClaim>,
  request: MigrateRequest,
  deps: BulkDeps,
): Promise<void> {
  const { operation } = selection
  const tasks = selection.claims.map((claim) => createMoveTask(claim, operation, client))
  const finalClass = finalClassOf(operation)
  const target = finalClass === '' ? undefined : await readTargetClass(client, finalClass)
  const knownResults = await findKnownResults(tasks, (task) => task.findKnownStatus(target, request))
  if (request.output === 'text' && !shouldStartNothing(knownResults, request)) {
    deps.write(formatOpening(selection, tasks.length - knownResults.size, request))
  }
  const results = await runBulk(
    {
      tasks,
      knownResults,
      statusIfNotStarted: () => ({
        is: 'untouched',
        message: request.isDryRun ? '' : 'nothing was changed, because other claims cannot be moved',
      }),
      watchClaims: (run) => run(claims),
      progressStyle: 'bar',
    },
    request,
    deps,
  )
  const recordError = request.isDryRun ? undefined : await finishRecords(client, results, operation)
  const hasRecord = ({ key }: ClaimResult) => {
    const claim = claims.get(key)
    return claim !== undefined && recordOf(claim)?.id === operation.id
  }
  // The cache may not have the latest writes yet.
  const canUndo =
    !operation.isUndo && results.some((result) => (result.isStarted && !result.isWithdrawn) || hasRecord(result))
  deps.write(await formatReport({ operation, results, request, namespace: request.namespace, canUndo }))
  if (recordError) {
    throw new Error(`Cannot update the record on all claims (${recordError}): run the same command again.`)
  }
  exitUnlessSuccessful(results, request, deps.signal)
}

/**
 * Removes the records of moved claims after an undo, and closes all records when all claims have moved forward. Returns the
 * error message, if any.
 */
async function finishRecords(
  client: Client,
  results: readonly ClaimResult[],
  operation: Operation,
): Promise<string | undefined> {
  if (!operation.isUndo && !isComplete(results)) return undefined
  const finish = operation.isUndo ? removeRecord : closeRecord
  const movedResults = results.filter(({ is }) => is === 'done' || is === 'nothing')
  try {
    await mapConcurrently(movedResults, CONCURRENT_REQUESTS_MAX, ({ key }) => finish(client, refOfKey(key), operation))
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
}
