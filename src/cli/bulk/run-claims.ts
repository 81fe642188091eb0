// Runs the tasks of a bulk command: starts claims with bounded concurrency and rate, watches each until it is done, and starts
// no more after too many failures or an interrupt. Started claims are not rolled back; the controllers finish them.
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
  readonly isWithdrawn?: boolean
}

export type ClaimStatus = { readonly is: 'working'; readonly message: string } | FinalStatus

/** The resourceVersion of the write that started the change, or a final status. */
export type StartResult = { readonly version: string } | FinalStatus

export interface ClaimTask {
  readonly key: ObjectKey
  /** Starts the change if it is not started yet. Safe to repeat. An ApiError is a failure unless it is transient. */
  start(signal: AbortSignal): Promise<StartResult>
  /** Returns the claim's status. `claim` is undefined if it was deleted. */
  check(claim: Claim | undefined): ClaimStatus | Promise<ClaimStatus>
  /** Returns a reason for a timeout, if one is known. */
  explain?(): Promise<string | undefined>
}

interface RunOptions extends Pick<BulkRequest, 'claimsInProgressMax' | 'intervalMs' | 'timeoutMs' | 'failuresMax'> {
  readonly claims: Cache<PersistentVolumeClaim>
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly progress: Progress
}

const TRANSIENT_RETRY_MS = 1_000

export async function runClaims(tasks: readonly ClaimTask[], options: RunOptions): Promise<ClaimResult[]> {
  const { claimsInProgressMax, intervalMs, failuresMax, clock, signal, progress } = options
  const results = new Map<ObjectKey, ClaimResult>()
  let nextIndex = 0
  const changes = subscribeToChanges(options.claims)
  let failures = 0
  const shouldStop = () => signal.aborted || failures > failuresMax
  let nextStartMs = clock.monotonicMs()

  async function runWorker(): Promise<void> {
    while (nextIndex < tasks.length && !shouldStop()) {
      const waitMs = nextStartMs - clock.monotonicMs()
      if (waitMs > 0) {
        await clock.sleep(waitMs, signal).catch(() => {})
        continue // another worker may have started a claim during the sleep
      }
      nextStartMs = clock.monotonicMs() + intervalMs
      const result = await runTask(tasks[nextIndex++]!, { ...options, changes })
      if (result.is === 'failed') failures++
      results.set(result.key, result)
      progress.complete(result)
    }
  }

  try {
    await Promise.all(Array.from({ length: Math.min(claimsInProgressMax, tasks.length) }, runWorker))
  } finally {
    changes.stop()
  }
  const message = signal.aborted ? 'the command was interrupted first' : 'stopped after earlier failures'
  return tasks.map(({ key }) => results.get(key) ?? { key, is: 'untouched', message })
}

interface FollowOptions extends RunOptions {
  readonly changes: Changes
}

async function runTask(task: ClaimTask, options: FollowOptions): Promise<ClaimResult> {
  const { key } = task
  const { clock, signal, timeoutMs, progress } = options
  const stop = new AbortController()
  const cancelTimeout = clock.after(timeoutMs, () => stop.abort())
  const interrupt = () => stop.abort()
  signal.addEventListener('abort', interrupt, { once: true })
  if (signal.aborted) interrupt()
  let latestMessage = 'starting'
  const report = (text: string) => {
    if (text !== latestMessage) progress.update(key, text)
    latestMessage = text
  }
  let isStarted = false
  try {
    const startResult = await startWithRetries(task, clock, stop.signal, report)
    if (startResult && 'is' in startResult) return { key, ...startResult }
    isStarted = startResult !== undefined
    if (isStarted) latestMessage = 'started'
    const status = startResult && (await followChange(task, startResult.version, options, stop.signal, report))
    if (status) return { key, ...status, isStarted }
    const continuation = isStarted ? CONTINUES_MESSAGE : UNCONFIRMED_MESSAGE
    if (signal.aborted) return { key, is: 'unfinished', message: `${latestMessage}; ${continuation}`, isStarted }
    const warning = await task.explain?.().catch(() => undefined)
    const reason = warning ? `${latestMessage}; ${warning}` : latestMessage
    const message = `not done within ${timeoutMs / 1_000} s (${reason}); ${continuation}`
    return { key, is: 'failed', message, isStarted }
  } catch (error) {
    if (error instanceof ApiError) return { key, is: 'failed', message: error.message, isStarted }
    throw error
  } finally {
    cancelTimeout()
    signal.removeEventListener('abort', interrupt)
  }
}

const CONTINUES_MESSAGE = 'the change continues in the cluster'
/** A request that was aborted may still have been executed. */
const UNCONFIRMED_MESSAGE = 'the server has not confirmed the change'

const isFinal = (status: ClaimStatus): status is FinalStatus => status.is !== 'working'

/** Returns undefined if `stop` is aborted first. */
async function startWithRetries(
  task: ClaimTask,
  clock: Clock,
  stop: AbortSignal,
  report: (text: string) => void,
): Promise<StartResult | undefined> {
  while (!stop.aborted) {
    try {
      return await task.start(stop)
    } catch (error) {
      if (stop.aborted) break
      if (!(error instanceof ApiError) || !isTransient(error)) throw error
      report(`waiting for the server (${error.message})`)
      await clock.sleep(TRANSIENT_RETRY_MS, stop).catch(() => {})
    }
  }
  return undefined
}

/** Waits until the change is done or failed. Returns undefined if `stop` is aborted first. */
async function followChange(
  task: ClaimTask,
  startVersion: string,
  { claims, changes }: FollowOptions,
  stop: AbortSignal,
  report: (text: string) => void,
): Promise<FinalStatus | undefined> {
  if (!(await claims.whenReached(startVersion, stop))) return undefined
  while (!stop.aborted) {
    const nextChange = changes.waitForNext(task.key, stop)
    const status = await task.check(claims.get(task.key))
    if (isFinal(status)) return status
    report(status.message)
    await nextChange
  }
  return undefined
}

/** Returns whether the server is unreachable or overloaded, so that the same request may succeed later. */
export const isTransient = ({ code }: ApiError): boolean => code === 429 || code >= 500

interface Changes {
  /** Resolves on the next change to the claim or on abort. Call it before reading the claim, so that no change is missed. */
  waitForNext(key: ObjectKey, signal: AbortSignal): Promise<void>
  stop(): void
}

/** Subscribes once for all claims, because a cache replays its content to every new subscriber. */
function subscribeToChanges(claims: Cache<PersistentVolumeClaim>): Changes {
  const waiters = new Map<ObjectKey, () => void>()
  const notify = (claim: Claim) => waiters.get(keyOfObject(claim))?.()
  const stop = claims.subscribe({ added: notify, updated: notify, deleted: notify })
  return {
    stop,
    waitForNext: (key, signal) =>
      new Promise((resolve) => {
        const endWait = () => {
          waiters.delete(key)
          signal.removeEventListener('abort', endWait)
          resolve()
        }
        waiters.set(key, endWait)
        signal.addEventListener('abort', endWait, { once: true })
        if (signal.aborted) endWait()
      }),
  }
}
