// Runs `stowage grow`: plans every claim and validates it on the server, then expands the claims and prints the results. Nothing
// is written if too many would be rejected.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { ApiError } from '../../../api/status-error.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import { randomUuid } from '../../../base/identifiers.ts'
import { findServer } from '../../../client/connection/find-server.ts'
import { type Client, httpClient, refOfKey } from '../../../client/index.ts'
import { createCache } from '../../../runtime/index.ts'
import {
  type BulkDeps,
  type ClaimResult,
  CONCURRENT_REQUESTS,
  countOf,
  INTERRUPTED,
  mapConcurrently,
  plainProgress,
  runClaims,
  selectClaims,
  silentProgress,
  tableOf,
  terminalProgress,
} from '../../bulk/index.ts'
import { ExitError } from '../../flags/common.ts'
import { closeRecord, type GrowingClaim, growingClaim, hasAlready, tryGrowth } from './grow-claim.ts'
import type { GrowTarget } from './plan.ts'
import { openRuns } from './record.ts'

export interface GrowRequest {
  readonly names: readonly string[]
  readonly selector?: string
  /** Default: that of the kubeconfig. */
  readonly namespace?: string
  readonly kubeconfig?: string
  readonly size: { readonly to: string } | { readonly by: string }
  readonly parallel: number
  readonly intervalMs: number
  readonly timeoutMs: number
  readonly failuresMax: number
  readonly isDryRun: boolean
  readonly output: 'text' | 'json'
}

export async function runGrow(request: GrowRequest, deps: BulkDeps): Promise<void> {
  const { connection, namespace } = await findServer(request.kubeconfig, deps)
  const client = httpClient({ connection, clock: deps.clock, userAgent: 'stowage-grow' })
  try {
    await growClaims(client, { ...request, namespace: request.namespace ?? namespace }, deps)
  } finally {
    client.close()
  }
}

type Request = GrowRequest & { readonly namespace: string }

/** Throws ExitError unless all claims have grown. */
export async function growClaims(client: Client, request: Request, deps: BulkDeps): Promise<void> {
  const claims = await selectClaims(client, request)
  const goesOn = openRuns(claims)
  const wish = wishOf(request, goesOn, deps.random)
  const works = claims.map((claim) => growingClaim(claim, wish, client))
  if (request.output === 'text' && 'by' in wish && goesOn.length > 0) {
    deps.write('A run was interrupted before: going on with it.\n')
  }
  const refusals = await refusalsOf(client, works, claims)
  const isHopeless = refusals.length > request.failuresMax
  const results =
    request.isDryRun || isHopeless
      ? works.map((work) => refusals.find(({ key }) => key === work.key) ?? notBegun(work, request))
      : await growAll(client, works, refusals, request, deps)
  const isWhole = countOf(results, 'done', 'nothing') === results.length
  deps.write(request.output === 'json' ? jsonOf(works, results, request) : textOf(works, results, request))
  // After the output: if it was lost, the same command can run again without growing a claim twice.
  if (isWhole && ('by' in wish || goesOn.length > 0) && !request.isDryRun)
    await closeRecords(client, results, deps.clock)
  if (deps.signal.aborted && !isWhole) throw new ExitError(INTERRUPTED)
  if (request.isDryRun ? refusals.length > 0 : !isWhole) throw new ExitError(1)
}

function wishOf({ size }: Request, interrupted: readonly string[], random: Random): GrowTarget {
  if ('to' in size) return size
  const run = interrupted[0] ?? randomUuid(random)
  return { ...size, run, goesOn: [...interrupted, run] }
}

/** Claims that cannot grow, found before anything is changed. */
async function refusalsOf(
  client: Client,
  works: readonly GrowingClaim[],
  claims: readonly Readonly<PersistentVolumeClaim>[],
): Promise<ClaimResult[]> {
  const found = await mapConcurrently(
    works,
    CONCURRENT_REQUESTS,
    async ({ key, plan }, index): Promise<ClaimResult | undefined> => {
      if (plan.do === 'refuse') return { key, is: 'failed', message: plan.because }
      if (plan.do !== 'grow') return undefined
      try {
        await tryGrowth(client, claims[index]!, plan)
        return undefined
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (error.code === 409) return undefined // changed since; read again when it is started
        if (error.code === 429 || error.code >= 500) throw error
        return { key, is: 'failed', message: error.message }
      }
    },
  )
  return found.filter((one) => one !== undefined)
}

function notBegun({ key, plan }: GrowingClaim, { isDryRun }: Request): ClaimResult {
  if (plan.do === 'nothing') return { key, ...hasAlready(plan) }
  if (!isDryRun) return { key, is: 'untouched', message: 'nothing was changed, because others cannot grow' }
  const message = plan.do === 'follow' ? 'is growing already, and would be followed' : 'would grow'
  return { key, is: 'untouched', message }
}

async function growAll(
  client: Client,
  works: readonly GrowingClaim[],
  refusals: readonly ClaimResult[],
  request: Request,
  deps: BulkDeps,
): Promise<ClaimResult[]> {
  const { namespace, failuresMax } = request
  const { clock, random, signal } = deps
  const refused = new Map(refusals.map((one) => [one.key, one]))
  const progress = progressOf(request, deps, works.length)
  for (const refusal of refusals) progress.ended(refusal)
  // Without the selector: a claim that loses its labels must not appear deleted.
  const claims = createCache({ client, kind: persistentVolumeClaimKind, namespace, clock, random })
  const over = new AbortController()
  const watching = claims.run(over.signal)
  try {
    const able = works.filter(({ key }) => !refused.has(key))
    const left = failuresMax - refusals.length
    const results = await runClaims(able, { ...request, claims, failuresMax: left, clock, signal, progress })
    const byKey = new Map(results.map((one) => [one.key, one]))
    return works.map(({ key }) => refused.get(key) ?? byKey.get(key)!)
  } finally {
    over.abort()
    await watching
  }
}

function progressOf({ output }: Request, { terminal, write }: BulkDeps, total: number) {
  if (output === 'json') return silentProgress
  return terminal ? terminalProgress({ ...terminal, write }, total) : plainProgress(write)
}

const CLOSE_TRIES_MAX = 5
const CLOSE_RETRY_MS = 1_000

/** All claims have grown: a later run starts a new operation. */
async function closeRecords(client: Client, results: readonly ClaimResult[], clock: Clock): Promise<void> {
  const close = async ({ key }: ClaimResult) => {
    for (let tries = 1; ; tries++) {
      try {
        return await closeRecord(client, refOfKey(key))
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        if (error.code === 404) return
        if (error.code === 403 || tries >= CLOSE_TRIES_MAX) {
          const text = `That ${key} has grown could not be noted on it (${error.message}): the next --by finds it grown and does nothing.`
          throw new Error(text)
        }
      }
      await clock.sleep(CLOSE_RETRY_MS)
    }
  }
  await mapConcurrently(results, CONCURRENT_REQUESTS, close)
}

const RESULT_NAMES: Record<ClaimResult['is'], string> = {
  done: 'grown',
  nothing: 'unchanged',
  failed: 'failed',
  unfinished: 'unfinished',
  untouched: 'not begun',
}

function rowOf({ plan }: GrowingClaim, { key, is, message }: ClaimResult, { isDryRun }: Request) {
  const { namespace = '', name } = refOfKey(key)
  const to = 'to' in plan ? plan.to : null
  const result = isDryRun && is === 'untouched' ? message : isDryRun && is === 'failed' ? 'refused' : RESULT_NAMES[is]
  return { namespace, name, from: plan.from, to, result, message: message }
}

function jsonOf(works: readonly GrowingClaim[], results: readonly ClaimResult[], request: Request): string {
  const claims = works.map((work, index) => rowOf(work, results[index]!, request))
  return `${JSON.stringify({ dryRun: request.isDryRun, claims }, null, 2)}\n`
}

function textOf(works: readonly GrowingClaim[], results: readonly ClaimResult[], request: Request): string {
  const rows = works.map((work, index) => rowOf(work, results[index]!, request))
  const isExplained = request.isDryRun || countOf(results, 'done', 'nothing') < results.length
  const table = tableOf([
    ['CLAIM', 'FROM', 'TO', 'RESULT', ...(isExplained ? ['WHY'] : [])],
    ...rows.map(({ name, from, to, result, message }) => [
      name,
      from,
      to ?? '-',
      result,
      ...(isExplained ? [result === message ? '' : message] : []),
    ]),
  ])
  return `\n${table}${request.isDryRun ? '' : `\n${sentenceOf(results)}\n`}`
}

function sentenceOf(results: readonly ClaimResult[]): string {
  const good = countOf(results, 'done', 'nothing')
  const all = results.length === 1 ? 'The claim has' : `All ${results.length} claims have`
  if (good === results.length) return `${all} the size that was asked for.`
  const again = 'Run the same command again to go on.'
  return `${good} of ${results.length} claims have the size that was asked for, ${countOf(results, 'failed')} failed. ${again}`
}
