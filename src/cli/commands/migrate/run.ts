// Runs `stowage migrate`: moves the claims of one VolumeAttributesClass to another at a set rate, pauses after too many
// failures, and moves them back with --undo. The state is on the claims (record.ts), so any machine can resume.
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
  CONCURRENT_REQUESTS,
  countOf,
  exitWith,
  interrupted,
  isComplete,
  knownResults,
  mapConcurrently,
  runBulk,
  startsNothing,
  withClaims,
  withServer,
} from '../../bulk/index.ts'
import { closeRecord, movingClaim, removeRecord } from './migrate-claim.ts'
import { finalClassOf, type Operation } from './plan.ts'
import { recordOf } from './record.ts'
import { openingOf, reportOf, reportOfNothing } from './report.ts'
import { type Choice, selectBackward, selectForward, withLabels } from './select.ts'
import { readClass, readTargetClass } from './target-class.ts'

export interface MigrateRequest extends BulkRequest {
  readonly direction:
    | { readonly is: 'forward'; readonly from: string; readonly to: string }
    | { readonly is: 'undo'; readonly id?: string; readonly from?: string; readonly to?: string }
  readonly inAllNamespaces: boolean
  /** The flag, such as 5/s. */
  readonly rate: string
}

export const runMigrate = (request: MigrateRequest, deps: BulkDeps): Promise<void> =>
  withServer(request, 'stowage-migrate', deps, (client, namespace) =>
    migrateClaims(client, request, request.inAllNamespaces ? undefined : (request.namespace ?? namespace), deps),
  )

/** Throws ExitError unless all claims have moved. */
export async function migrateClaims(
  client: Client,
  request: MigrateRequest,
  namespace: string | undefined,
  deps: BulkDeps,
): Promise<void> {
  // The cache would retry these errors forever: a missing class or permission ends the command.
  if (request.direction.is === 'forward') await readClass(client, request.direction.to)
  else await client.list(persistentVolumeClaimKind, { namespace, limit: 1 })
  await withClaims(client, namespace, deps, async (claims) => {
    if (!(await claims.whenSynced(deps.signal))) throw interrupted()
    const choice = choose(withLabels(claims.list(), request.selector), request, deps.random)
    if (choice) await migrate(client, choice, claims, request, deps)
    else deps.write(reportOfNothing(request))
  })
}

function choose(claims: readonly Claim[], { direction }: MigrateRequest, random: Random): Choice | undefined {
  if (direction.is === 'forward') {
    const choice = selectForward(claims, { ...direction, newId: `m-${randomUuid(random).slice(0, 8)}` })
    return choice.claims.length > 0 ? choice : undefined
  }
  const choice = selectBackward(claims, direction)
  if (choice) return choice
  throw new Error('No claim has a record of such an operation: there is nothing to undo.')
}

async function migrate(
  client: Client,
  choice: Choice,
  claims: Cache<PersistentVolumeClaim>,
  request: MigrateRequest,
  deps: BulkDeps,
): Promise<void> {
  const { operation } = choice
  const works = choice.claims.map((claim) => movingClaim(claim, operation, client))
  const finalClass = finalClassOf(operation)
  const target = finalClass === '' ? undefined : await readTargetClass(client, finalClass)
  const known = await knownResults(works, (work) => work.known(target, request))
  if (request.output === 'text' && !startsNothing(known, request)) {
    deps.write(openingOf(choice, works.length - known.size, request))
  }
  const results = await runBulk(
    {
      works,
      known,
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
  const recordError = request.isDryRun ? undefined : await settleRecords(client, results, operation)
  const hasRecord = ({ key }: ClaimResult) => {
    const claim = claims.get(key)
    return claim !== undefined && recordOf(claim)?.id === operation.id
  }
  const canUndo = !operation.isUndo && (countOf(results, 'done', 'unfinished') > 0 || results.some(hasRecord))
  deps.write(reportOf({ operation, results, request, canUndo }))
  if (recordError) {
    throw new Error(`Cannot update the record on all claims (${recordError}): run the same command again.`)
  }
  exitWith(results, request, deps.signal)
}

/** Undo removes the record of each claim. Forward closes all records once all claims have moved. Returns the error, if any. */
async function settleRecords(
  client: Client,
  results: readonly ClaimResult[],
  operation: Operation,
): Promise<string | undefined> {
  if (!operation.isUndo && !isComplete(results)) return undefined
  const settle = operation.isUndo ? removeRecord : closeRecord
  const moved = results.filter(({ is }) => is === 'done' || is === 'nothing')
  try {
    await mapConcurrently(moved, CONCURRENT_REQUESTS, ({ key }) => settle(client, refOfKey(key), operation))
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
}
