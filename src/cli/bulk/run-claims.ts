// The engine of bulk commands: starts claims with bounded concurrency and rate, follows each by watch until it is done, and
// starts no more after too many failures or on a stop. Started claims are not rolled back: the controllers finish them.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { Cache } from '../../runtime/index.ts'
import type { Progress } from './progress.ts'
import type { ClaimResult } from './results.ts'

type Claim = Readonly<PersistentVolumeClaim>

export type ClaimStatus =
  | { readonly is: 'working'; readonly message: string }
  | { readonly is: 'done' | 'nothing' | 'failed'; readonly message: string }

export interface ClaimWork {
  readonly key: ObjectKey
  /**
   * Starts the change, or finds that it is started; safe to repeat. Returns the resourceVersion from which the claim can be
   * followed, or a final status. An ApiError is a failure, unless the server is unreachable.
   */
  start(signal: AbortSignal): Promise<{ readonly version: string } | FinalStatus>
  /** The status of the claim; `claim` is undefined if it was deleted. */
  check(claim: Claim | undefined): ClaimStatus | Promise<ClaimStatus>
  /** A reason why it takes so long, if one is known. */
  explain?(): Promise<string | undefined>
}

export interface RunOptions {
  readonly claims: Cache<PersistentVolumeClaim>
  /** Claims in progress at once. */
  readonly parallel: number
  /** Minimum time between two starts. */
  readonly intervalMs: number
  /** A claim that takes longer counts as failed. */
  readonly timeoutMs: number
  /** After more failures no claim is started. */
  readonly failuresMax: number
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly progress: Progress
}

const UNREACHABLE_RETRY_MS = 1_000

export async function runClaims(works: readonly ClaimWork[], options: RunOptions): Promise<ClaimResult[]> {
  const { parallel, intervalMs, failuresMax, clock, signal, progress } = options
  const results = new Map<ObjectKey, ClaimResult>()
  let begun = 0
  const changes = changesOf(options.claims)
  let failures = 0
  const isOver = () => signal.aborted || failures > failuresMax
  let nextStartMs = clock.monotonicMs()

  async function lane(): Promise<void> {
    while (begun < works.length && !isOver()) {
      const waitMs = nextStartMs - clock.monotonicMs()
      if (waitMs > 0) {
        await clock.sleep(waitMs, signal).catch(() => {})
        continue // another lane may have started meanwhile
      }
      nextStartMs = clock.monotonicMs() + intervalMs
      const result = await runOne(works[begun++]!, { ...options, changes })
      if (result.is === 'failed') failures++
      results.set(result.key, result)
      progress.ended(result)
    }
  }

  try {
    await Promise.all(Array.from({ length: Math.min(parallel, works.length) }, lane))
  } finally {
    changes.stop()
  }
  const why = signal.aborted ? 'stopped before it was its turn' : 'stopped after failures before it'
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
  let latest = 'begun'
  const report = (text: string) => {
    if (text !== latest) progress.working(key, text)
    latest = text
  }
  try {
    const standing = await startAndFollow(work, options, over.signal, report)
    if (standing) return { key, ...standing }
    if (signal.aborted) return { key, is: 'unfinished', message: `${latest}; it goes on without us` }
    const because = await work.explain?.().catch(() => undefined)
    const reason = because ? `${latest}; ${because}` : latest
    return { key, is: 'failed', message: `not done within ${timeoutMs / 1_000} s (${reason}); it goes on without us` }
  } catch (error) {
    if (error instanceof ApiError) return { key, is: 'failed', message: error.message }
    throw error
  } finally {
    cancelTimeout()
    signal.removeEventListener('abort', interrupt)
  }
}

export type FinalStatus = Exclude<ClaimStatus, { is: 'working' }>

const isEnd = (standing: ClaimStatus): standing is FinalStatus => standing.is !== 'working'

/** Undefined if the signal fired first. */
async function startAndFollow(
  work: ClaimWork,
  { claims, changes, clock }: Following,
  over: AbortSignal,
  report: (text: string) => void,
): Promise<FinalStatus | undefined> {
  const started = await startReachably(work, clock, over, report)
  if (!started || 'is' in started) return started
  if (!(await claims.whenSeen(started.version, over))) return undefined
  while (!over.aborted) {
    const changed = changes.next(work.key, over)
    const standing = await work.check(claims.get(work.key))
    if (isEnd(standing)) return standing
    report(standing.message)
    await changed
  }
  return undefined
}

async function startReachably(
  work: ClaimWork,
  clock: Clock,
  over: AbortSignal,
  report: (text: string) => void,
): Promise<{ readonly version: string } | FinalStatus | undefined> {
  while (!over.aborted) {
    try {
      return await work.start(over)
    } catch (error) {
      if (over.aborted) break
      if (!(error instanceof ApiError) || !isTransient(error)) throw error
      report(`the server cannot be asked just now (${error.message})`)
      await clock.sleep(UNREACHABLE_RETRY_MS, over).catch(() => {})
    }
  }
  return undefined
}

const isTransient = ({ code }: ApiError): boolean => code === 429 || code >= 500

interface Changes {
  /** Resolves on the next change of the claim, or when the signal fires. Call it before reading, so that no change is missed. */
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
