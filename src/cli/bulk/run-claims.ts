// The engine of bulk commands: starts claims with bounded concurrency and rate, follows each by watch until it is done, and
// starts no more after too many failures or on a stop. Started claims are not rolled back: the controllers finish them.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { Cache } from '../../runtime/index.ts'
import type { Claim } from './claim-writes.ts'
import type { BulkRequest } from './flags.ts'
import type { Progress } from './progress-line.ts'
import type { ClaimResult } from './results.ts'

export interface FinalStatus {
  readonly is: 'done' | 'nothing' | 'failed'
  readonly message: string
}

export type ClaimStatus = { readonly is: 'working'; readonly message: string } | FinalStatus

/** The resourceVersion from which the claim can be followed, or a final status. */
export type StartResult = { readonly version: string } | FinalStatus

export interface ClaimWork {
  readonly key: ObjectKey
  /** Starts the change, unless it is started already; safe to repeat. An ApiError is a failure, unless it is transient. */
  start(signal: AbortSignal): Promise<StartResult>
  /** The status of the claim; `claim` is undefined if it was deleted. */
  check(claim: Claim | undefined): ClaimStatus | Promise<ClaimStatus>
  /** A reason why it takes so long, if one is known. */
  explain?(): Promise<string | undefined>
}

interface RunOptions extends Pick<BulkRequest, 'parallel' | 'intervalMs' | 'timeoutMs' | 'failuresMax'> {
  readonly claims: Cache<PersistentVolumeClaim>
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly progress: Progress
}

const TRANSIENT_RETRY_MS = 1_000

export async function runClaims(works: readonly ClaimWork[], options: RunOptions): Promise<ClaimResult[]> {
  const { parallel, intervalMs, failuresMax, clock, signal, progress } = options
  const results = new Map<ObjectKey, ClaimResult>()
  let started = 0
  const changes = changesOf(options.claims)
  let failures = 0
  const isOver = () => signal.aborted || failures > failuresMax
  let nextStartMs = clock.monotonicMs()

  async function worker(): Promise<void> {
    while (started < works.length && !isOver()) {
      const waitMs = nextStartMs - clock.monotonicMs()
      if (waitMs > 0) {
        await clock.sleep(waitMs, signal).catch(() => {})
        continue // another worker may have started a claim meanwhile
      }
      nextStartMs = clock.monotonicMs() + intervalMs
      const result = await runOne(works[started++]!, { ...options, changes })
      if (result.is === 'failed') failures++
      results.set(result.key, result)
      progress.ended(result)
    }
  }

  try {
    await Promise.all(Array.from({ length: Math.min(parallel, works.length) }, worker))
  } finally {
    changes.stop()
  }
  const why = signal.aborted ? 'the command was interrupted first' : 'stopped after earlier failures'
  return works.map(({ key }) => results.get(key) ?? { key, is: 'untouched', message: why })
}

interface Following extends RunOptions {
  readonly changes: Changes
}

async function runOne(work: ClaimWork, options: Following): Promise<ClaimResult> {
  const { key } = work
  const { clock, signal, timeoutMs, progress } = options
  const over = new AbortController()
  const cancelTimeout = clock.after(timeoutMs, () => over.abort())
  const interrupt = () => over.abort()
  signal.addEventListener('abort', interrupt, { once: true })
  if (signal.aborted) interrupt()
  let latest = 'started'
  const report = (text: string) => {
    if (text !== latest) progress.working(key, text)
    latest = text
  }
  try {
    const status = await startAndFollow(work, options, over.signal, report)
    if (status) return { key, ...status }
    if (signal.aborted) return { key, is: 'unfinished', message: `${latest}; ${CONTINUES}` }
    const because = await work.explain?.().catch(() => undefined)
    const reason = because ? `${latest}; ${because}` : latest
    return { key, is: 'failed', message: `not done within ${timeoutMs / 1_000} s (${reason}); ${CONTINUES}` }
  } catch (error) {
    if (error instanceof ApiError) return { key, is: 'failed', message: error.message }
    throw error
  } finally {
    cancelTimeout()
    signal.removeEventListener('abort', interrupt)
  }
}

const CONTINUES = 'it continues in the cluster'

const isFinal = (status: ClaimStatus): status is FinalStatus => status.is !== 'working'

/** Undefined if the signal fired first. */
async function startAndFollow(
  work: ClaimWork,
  { claims, changes, clock }: Following,
  over: AbortSignal,
  report: (text: string) => void,
): Promise<FinalStatus | undefined> {
  const started = await startWithRetries(work, clock, over, report)
  if (!started || 'is' in started) return started
  if (!(await claims.whenSeen(started.version, over))) return undefined
  while (!over.aborted) {
    const changed = changes.next(work.key, over)
    const status = await work.check(claims.get(work.key))
    if (isFinal(status)) return status
    report(status.message)
    await changed
  }
  return undefined
}

async function startWithRetries(
  work: ClaimWork,
  clock: Clock,
  over: AbortSignal,
  report: (text: string) => void,
): Promise<StartResult | undefined> {
  while (!over.aborted) {
    try {
      return await work.start(over)
    } catch (error) {
      if (over.aborted) break
      if (!(error instanceof ApiError) || !isTransient(error)) throw error
      report(`waiting for the server (${error.message})`)
      await clock.sleep(TRANSIENT_RETRY_MS, over).catch(() => {})
    }
  }
  return undefined
}

/** The server is unreachable or overloaded: the same request may succeed later. */
export const isTransient = ({ code }: ApiError): boolean => code === 429 || code >= 500

interface Changes {
  /** Resolves on the next change of the claim or when the signal fires. Call it before reading the claim to miss no change. */
  next(key: ObjectKey, over: AbortSignal): Promise<void>
  stop(): void
}

/** One subscription for all claims: a cache replays its content to every new subscriber. */
function changesOf(claims: Cache<PersistentVolumeClaim>): Changes {
  const waiting = new Map<ObjectKey, () => void>()
  const notify = (claim: Claim) => waiting.get(keyOfObject(claim))?.()
  const stop = claims.subscribe({ added: notify, updated: notify, deleted: notify })
  return {
    stop,
    next: (key, over) =>
      new Promise((resolve) => {
        const end = () => {
          waiting.delete(key)
          over.removeEventListener('abort', end)
          resolve()
        }
        waiting.set(key, end)
        over.addEventListener('abort', end, { once: true })
        if (over.aborted) end()
      }),
  }
}
