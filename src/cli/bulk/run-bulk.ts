// The frame of a bulk command: connects, watches claims, runs those whose result is not known yet, and sets the exit code. The loop
// over the claims is run-claims.ts; plan, claim step and report are the command's.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { findServer } from '../../client/connection/find-server.ts'
import { type Client, httpClient, type ObjectKey } from '../../client/index.ts'
import { type Cache, createCache } from '../../runtime/index.ts'
import { ExitError } from '../flags/common.ts'
import { type BulkDeps, CONCURRENT_REQUESTS } from './deps.ts'
import type { BulkRequest } from './flags.ts'
import { mapConcurrently } from './map-concurrently.ts'
import { createProgress, type ProgressStyle } from './progress.ts'
import { type ClaimResult, countOf, isComplete } from './results.ts'
import { type ClaimWork, type FinalStatus, runClaims } from './run-claims.ts'

/** Exit code of an interrupted command. */
const INTERRUPTED = 130

/** Connects to the server of the kubeconfig; `namespace` is the one of its context. */
export async function withServer(
  { kubeconfig }: BulkRequest,
  userAgent: string,
  deps: BulkDeps,
  run: (client: Client, namespace: string) => Promise<void>,
): Promise<void> {
  const { connection, namespace } = await findServer(kubeconfig, deps)
  const client = httpClient({ connection, clock: deps.clock, userAgent })
  try {
    await run(client, namespace)
  } finally {
    client.close()
  }
}

type ClaimCache = Cache<PersistentVolumeClaim>

/** Watches all claims of the namespace, not only the selected ones: a claim that loses its labels must not appear deleted. */
export async function withClaims<R>(
  client: Client,
  namespace: string | undefined,
  { clock, random }: BulkDeps,
  run: (claims: ClaimCache) => Promise<R>,
): Promise<R> {
  const claims = createCache({ client, kind: persistentVolumeClaimKind, namespace, clock, random })
  const over = new AbortController()
  const watching = claims.run(over.signal)
  try {
    return await run(claims)
  } finally {
    over.abort()
    await watching
  }
}

export type KnownResults = ReadonlyMap<ObjectKey, ClaimResult>

/** Finds the results that are known before any claim is started; nothing is changed. */
export async function knownResults<W extends ClaimWork>(
  works: readonly W[],
  find: (work: W) => Promise<FinalStatus | undefined>,
): Promise<KnownResults> {
  const statuses = await mapConcurrently(works, CONCURRENT_REQUESTS, find)
  return new Map(
    works.flatMap(({ key }, index) => {
      const status = statuses[index]
      return status ? [[key, { key, ...status }]] : []
    }),
  )
}

/** A dry run starts nothing, and neither does a command of which too many claims would fail. */
export const startsNothing = (known: KnownResults, { isDryRun, failuresMax }: BulkRequest): boolean =>
  isDryRun || countOf([...known.values()], 'failed') > failuresMax

export interface BulkRun<W extends ClaimWork> {
  readonly works: readonly W[]
  readonly known: KnownResults
  /** The status of a claim if nothing is started. */
  statusIfNotStarted(work: W): Omit<ClaimResult, 'key'>
  /** Runs with a cache of the claims; not called if nothing is started. */
  watchClaims(run: (claims: ClaimCache) => Promise<ClaimResult[]>): Promise<ClaimResult[]>
  readonly progressStyle: ProgressStyle
}

/** Results in the order of the works. */
export async function runBulk<W extends ClaimWork>(
  { works, known, statusIfNotStarted, watchClaims, progressStyle }: BulkRun<W>,
  request: BulkRequest,
  deps: BulkDeps,
): Promise<readonly ClaimResult[]> {
  if (startsNothing(known, request)) {
    return works.map((work) => known.get(work.key) ?? { key: work.key, ...statusIfNotStarted(work) })
  }
  const { clock, signal } = deps
  const progress = createProgress(progressStyle, request.output, deps, works.length)
  for (const result of known.values()) progress.ended(result)
  const left = works.filter(({ key }) => !known.has(key))
  const failuresMax = request.failuresMax - countOf([...known.values()], 'failed')
  try {
    const results = await watchClaims((claims) =>
      runClaims(left, { ...request, claims, failuresMax, clock, signal, progress }),
    )
    const byKey = new Map(results.map((result) => [result.key, result]))
    return works.map(({ key }) => known.get(key) ?? byKey.get(key)!)
  } finally {
    progress.finish()
  }
}

/** Throws ExitError unless the exit code is 0. */
export function exitWith(results: readonly ClaimResult[], { isDryRun }: BulkRequest, signal: AbortSignal): void {
  if (signal.aborted && !isComplete(results)) throw interrupted()
  if (isDryRun ? countOf(results, 'failed') > 0 : !isComplete(results)) throw new ExitError(1)
}

export const interrupted = (): ExitError => new ExitError(INTERRUPTED)
