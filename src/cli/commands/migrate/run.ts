// Runs `stowage migrate`: moves the claims of one VolumeAttributesClass to another at a limited rate, pauses after too many
// failures, and moves them back with --undo. The state is on the claims (record.ts), so any machine can resume.
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import type { VolumeAttributesClass } from '../../../api/kinds/attributes-class/attributes-class-schema.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { ApiError, isForbidden, isNotFound, isNotServed } from '../../../api/status-error.ts'
import type { Random } from '../../../base/clock.ts'
import { randomUuid } from '../../../base/identifiers.ts'
import { findServer } from '../../../client/connection/find-server.ts'
import { type Client, httpClient, type ObjectKey, refOfKey } from '../../../client/index.ts'
import { type Cache, createCache } from '../../../runtime/index.ts'
import {
  type BulkDeps,
  type ClaimResult,
  CONCURRENT_REQUESTS,
  countOf,
  type FinalStatus,
  INTERRUPTED,
  mapConcurrently,
  type Progress,
  plainProgress,
  runClaims,
  silentProgress,
} from '../../bulk/index.ts'
import { ExitError } from '../../flags/common.ts'
import { closeRecord, dropRecord, endOf, type MovingClaim, movingClaim, tryMove } from './migrate-claim.ts'
import { checkMove, type Operation, planMove, shown } from './plan.ts'
import { barProgress } from './progress-bar.ts'
import { recordOf } from './record.ts'
import { jsonOf, type Migration, nothingToMove, openingOf, textOf } from './report.ts'
import { type Choice, selectBackward, selectForward, withLabels } from './select.ts'

export interface MigrateRequest {
  readonly direction:
    | { readonly is: 'forward'; readonly from: string; readonly to: string }
    | { readonly is: 'undo'; readonly id?: string; readonly from?: string; readonly to?: string }
  /** Default: that of the kubeconfig. */
  readonly namespace?: string
  readonly inAllNamespaces: boolean
  readonly selector?: string
  readonly kubeconfig?: string
  readonly parallel: number
  /** The flag, such as 5/s. */
  readonly rate: string
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly failuresMax: number
  readonly isDryRun: boolean
  readonly output: 'text' | 'json'
}

const VOLUMES_PAGE = 500

export async function runMigrate(request: MigrateRequest, deps: BulkDeps): Promise<void> {
  const { connection, namespace } = await findServer(request.kubeconfig, deps)
  const client = httpClient({ connection, clock: deps.clock, userAgent: 'stowage-migrate' })
  const scope = request.inAllNamespaces ? undefined : (request.namespace ?? namespace)
  try {
    await migrateClaims(client, request, scope, deps)
  } finally {
    client.close()
  }
}

/** Throws ExitError unless all claims have moved. */
export async function migrateClaims(
  client: Client,
  request: MigrateRequest,
  namespace: string | undefined,
  deps: BulkDeps,
): Promise<void> {
  const { clock, random, signal } = deps
  if (request.direction.is === 'forward')
    await readClass(client, request.direction.to) // a missing class fails first
  else await client.list(persistentVolumeClaimKind, { ...(namespace ? { namespace } : {}), limit: 1 })
  const claims = createCache({
    client,
    kind: persistentVolumeClaimKind,
    ...(namespace ? { namespace } : {}),
    clock,
    random,
  })
  const over = new AbortController()
  const watching = claims.run(over.signal)
  try {
    if (!(await claims.whenSynced(signal))) throw new ExitError(INTERRUPTED)
    const chosen = choose(withLabels(claims.list(), request.selector), request, random)
    if (chosen) await migrate(client, chosen, claims, request, deps)
    else deps.write(nothingToMove(request))
  } finally {
    over.abort()
    await watching
  }
}

function choose(
  claims: readonly Readonly<PersistentVolumeClaim>[],
  { direction }: MigrateRequest,
  random: Random,
): Choice | undefined {
  if (direction.is === 'forward') {
    const choice = selectForward(claims, { ...direction, newId: `m-${randomUuid(random).slice(0, 8)}` })
    return choice.claims.length > 0 ? choice : undefined
  }
  const choice = selectBackward(claims, direction)
  if (choice) return choice
  throw new Error('No claim here message that such an operation has moved it: there is nothing to undo.')
}

async function migrate(
  client: Client,
  { operation, claims: chosen, goesOn }: Choice,
  claims: Cache<PersistentVolumeClaim>,
  request: MigrateRequest,
  deps: BulkDeps,
): Promise<void> {
  const { isDryRun, output, failuresMax } = request
  const works = chosen.map((claim) => movingClaim(claim, operation, client))
  const known = await knownEnds(client, works, operation, request)
  const isHopeless = countOf([...known.values()], 'failed') > failuresMax
  const migration = (results: readonly ClaimResult[]): Migration => ({
    operation,
    works,
    results,
    request,
    goesOn,
    hasMoved:
      countOf(results, 'done', 'unfinished') > 0 || works.some(({ key }) => isMoved(claims.get(key), operation)),
  })
  if (output === 'text' && !isDryRun && !isHopeless) deps.write(openingOf(migration([...known.values()])))
  const results =
    isDryRun || isHopeless
      ? works.map(({ key }) => known.get(key) ?? notBegun(key, request))
      : await moveAll(works, known, claims, request, deps)
  const hasArrived = countOf(results, 'done', 'nothing') === results.length
  const unsettled = isDryRun ? undefined : await settleRecords(client, results, operation, hasArrived)
  deps.write(output === 'json' ? jsonOf(migration(results)) : textOf(migration(results)))
  if (unsettled) {
    throw new Error(`What has arrived could not be noted on all claims (${unsettled}): run the same command again.`)
  }
  if (deps.signal.aborted && !hasArrived) throw new ExitError(INTERRUPTED)
  if (isDryRun ? countOf(results, 'failed') > 0 : !hasArrived) throw new ExitError(1)
}

const isMoved = (claim: Readonly<PersistentVolumeClaim> | undefined, { id }: Operation): boolean =>
  claim !== undefined && recordOf(claim)?.id === id

const notBegun = (key: ObjectKey, { isDryRun }: MigrateRequest): ClaimResult => ({
  key,
  is: 'untouched',
  message: isDryRun ? '' : 'nothing was changed, because others cannot be moved',
})

/** Claims whose result is known before the start: moved already, changed by others, or not movable. */
async function knownEnds(
  client: Client,
  works: readonly MovingClaim[],
  operation: Operation,
  { isDryRun }: MigrateRequest,
): Promise<Map<ObjectKey, ClaimResult>> {
  const wanted = operation.isUndo ? operation.from : operation.to
  const target = wanted === '' ? undefined : await readClass(client, wanted)
  const driverOf = target ? await driversOfVolumes(client) : () => undefined
  const ends = await mapConcurrently(
    works,
    CONCURRENT_REQUESTS,
    async ({ key, claim }): Promise<ClaimResult | undefined> => {
      const plan = planMove(claim, operation)
      const end = endOf(plan) ?? (plan.do === 'follow' ? arrived(claim, wanted) : undefined)
      if (end) return { key, ...end }
      if (plan.do !== 'move') return undefined
      const driver = driverOf(claim.spec?.volumeName ?? '')
      if (target && driver !== undefined && driver !== target.driverName) {
        const message = `its volume is of the driver ${driver}, and ${shown(wanted)} is a class of ${target.driverName}`
        return { key, is: 'failed', message }
      }
      const refusal = isDryRun ? await tryMove(client, claim, plan) : undefined
      return refusal && { key, ...refusal }
    },
  )
  return new Map(ends.flatMap((end) => (end ? [[end.key, end]] : [])))
}

/** Moved by an earlier run. */
function arrived(claim: Readonly<PersistentVolumeClaim>, wanted: string): FinalStatus | undefined {
  const standing = checkMove(claim, wanted)
  return standing.is === 'done' ? { is: 'nothing', message: `${standing.message} already` } : undefined
}

async function readClass(client: Client, name: string): Promise<Readonly<VolumeAttributesClass>> {
  try {
    return await client.get(volumeAttributesClassKind, { name })
  } catch (error) {
    if (isNotServed(error)) {
      throw new Error('The server does not serve VolumeAttributesClasses; switch them on there (--runtime-config).')
    }
    if (isNotFound(error)) {
      throw new Error(`There is no VolumeAttributesClass ${name}; create it first (kubectl get vac lists them).`)
    }
    throw error
  }
}

/** The driver by volume name. Without permission to list volumes it is unknown, and the controllers decide. */
async function driversOfVolumes(client: Client): Promise<(volumeName: string) => string | undefined> {
  const drivers = new Map<string, string>()
  try {
    for (let continueToken: string | undefined; ; ) {
      const page = await client.list(persistentVolumeKind, { limit: VOLUMES_PAGE, continueToken })
      for (const { metadata, spec } of page.items) if (spec?.csi) drivers.set(metadata.name, spec.csi.driver)
      continueToken = page.continueToken
      if (!continueToken) break
    }
  } catch (error) {
    if (!isForbidden(error)) throw error
  }
  return (volumeName) => drivers.get(volumeName)
}

async function moveAll(
  works: readonly MovingClaim[],
  known: ReadonlyMap<ObjectKey, ClaimResult>,
  claims: Cache<PersistentVolumeClaim>,
  request: MigrateRequest,
  { clock, signal, terminal, write }: BulkDeps,
): Promise<ClaimResult[]> {
  const bar =
    terminal && request.output === 'text' ? barProgress({ ...terminal, write }, works.length, clock) : undefined
  const progress: Progress = bar ?? (request.output === 'json' ? silentProgress : plainProgress(write))
  for (const end of known.values()) progress.ended(end)
  const left = works.filter(({ key }) => !known.has(key))
  const failuresMax = request.failuresMax - countOf([...known.values()], 'failed')
  try {
    const results = await runClaims(left, { ...request, claims, failuresMax, clock, signal, progress })
    const byKey = new Map(results.map((one) => [one.key, one]))
    return works.map(({ key }) => known.get(key) ?? byKey.get(key)!)
  } finally {
    bar?.finish()
  }
}

/**
 * Undo removes the record of each claim. Forward closes all records when all claims have moved. Returns the error, if any.
 */
async function settleRecords(
  client: Client,
  results: readonly ClaimResult[],
  operation: Operation,
  hasArrived: boolean,
): Promise<string | undefined> {
  if (!operation.isUndo && !hasArrived) return undefined
  const settle = operation.isUndo ? dropRecord : closeRecord
  const settled = results.filter(({ is }) => is === 'done' || is === 'nothing')
  try {
    await mapConcurrently(settled, CONCURRENT_REQUESTS, ({ key }) => settle(client, refOfKey(key), operation))
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
}
