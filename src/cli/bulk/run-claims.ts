// Works through a set of claims: starts so many at a time, follows each by watch to its end, and stops starting more
// when too many have failed or we are told to stop. What has begun is never undone: it goes on without us.

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
   * Gets it going, or sees that it is. Told again it goes on, never twice. Answers the version of the claim from which on
   * it can be followed, or that there is nothing to follow. An ApiError is a failure, unless the server is only out of
   * reach.
   */
  start(signal: AbortSignal): Promise<{ readonly version: string } | FinalStatus>
  /** How far it is; undefined: the claim is gone. */
  check(claim: Claim | undefined): ClaimStatus | Promise<ClaimStatus>
  /** Whatever else is known of why it takes so long. */
  explain?(): Promise<string | undefined>
}

export interface RunOptions {
  readonly claims: Cache<PersistentVolumeClaim>
  /** So many are at work at a time. */
  readonly parallel: number
  /** Between two starts, at least. */
  readonly intervalMs: number
  /** A claim that takes longer has failed. */
  readonly timeoutMs: number
  /** With more failures than these nothing new is started. */
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
        continue // another may have taken the turn
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
    const told = because ? `${latest}; ${because}` : latest
    return { key, is: 'failed', message: `not done within ${timeoutMs / 1_000} s (${told}); it goes on without us` }
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

/** Nothing when it was over before. */
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
      if (!(error instanceof ApiError) || !isPassing(error)) throw error
      report(`the server cannot be asked just now (${error.message})`)
      await clock.sleep(UNREACHABLE_RETRY_MS, over).catch(() => {})
    }
  }
  return undefined
}

const isPassing = ({ code }: ApiError): boolean => code === 429 || code >= 500

interface Changes {
  /** The next change of a claim, or the end of the signal. Asked for before one looks, so that nothing is missed. */
  next(key: ObjectKey, over: AbortSignal): Promise<void>
  stop(): void
}

/** One subscription for all: a cache tells each new one everything it has. */
function changesOf(claims: Cache<PersistentVolumeClaim>): Changes {
  const waiting = new Map<ObjectKey, () => void>()
  const told = (claim: Claim) => waiting.get(keyOfObject(claim))?.()
  const stop = claims.subscribe({ added: told, updated: told, deleted: told })
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
