// The queue of keys to reconcile. A key that is added several times is queued once, is processed by one worker at a time,
// and is retried with backoff. The queue stores the reason why a key is not done.
//
//   add → ready → running → done
//           ↑        │ retry, throw → waiting (timer) → ready
//           └────────┘ added while running                      stuck: until the next add
//
// Keys that fail may be slow to fail: the calls for the volumes of a lost node end with their timeout. Therefore the keys whose
// last reconcile failed have at most half of the workers together, and so do the keys of each lane, such as those of a node.
// Retries that fail quickly cost a driver call, an event and a status write each. Once several attempts for a silent node have
// failed, one key of its lane is therefore reconciled per second, whichever is next. All keys of the lane are reconciled when one
// of them succeeds or the node returns.
//
// A key whose reconcile lacks a permission is retried every half minute, even if it is added again, because a change to its
// object does not grant the permission.

import { ApiError, isMissingRight } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import { Fifo } from '../base/fifo.ts'
import { type Logger, silentLog } from '../base/log.ts'
import { type OperationDetails, operationDetailsOf } from '../base/operation-details.ts'
import type { ObjectKey } from '../client/object-key.ts'
import { type Backoff, backoffMs } from './backoff.ts'
import type { Outcome } from './outcome.ts'
import type { SilentLanes } from './workers/silent-nodes.ts'
import type { WorkerBudget } from './workers/worker-budget.ts'

export interface WorkQueueOptions {
  /** The value of the label `name` of the metrics. */
  readonly name: string
  readonly clock: Clock
  readonly random: Random
  readonly log?: Logger
  /** The maximum number of keys that are processed concurrently. Default 10. */
  readonly workers?: number
  /**
   * Returns the lane of a key, such as a node whose loss makes all its keys slow. Each lane has at most half of the workers.
   * Default: no lane.
   */
  laneOf?(key: ObjectKey): string | undefined
  /**
   * Whether a reconcile of the key, if it were made now, would return `done` without any effect. Such a key is not reconciled,
   * unless its last reconcile has returned something else. Every change that could end this state must add the key. Default: false.
   */
  isSettled?(key: ObjectKey): boolean
  /** The lanes whose calls to a driver are expected to fail. Default: none. */
  readonly silentLanes?: SilentLanes
  /** The workers that this queue shares with others. Default: the queue starts `workers` that it does not share. */
  readonly workerBudget?: WorkerBudget
  /** A key's backoff after failures and retries without a time. Default: 50 ms, doubled up to 5 minutes. */
  readonly backoff?: Backoff
  /** The rate limit for the retries without a time of all keys together. Default: 50 per second with a burst of 500. */
  readonly retriesPerSecond?: number
  readonly retryBurst?: number
  readonly observer?: WorkQueueObserver
  /** Called after each start and end of a reconcile of the key. */
  onChange?(key: ObjectKey): void
  /**
   * Called after each attempt whose result is worth recording: a failure, a new message, or a success after one of these.
   */
  onAttempt?(attempt: QueueAttempt): void
}

/** A reconcile that has ended. */
export interface QueueAttempt {
  readonly key: ObjectKey
  readonly durationMs: number
  /** The number of the reconcile since the key was added. */
  readonly attempt: number
  readonly outcome: Outcome
}

/** Implemented by the metrics in metrics.ts. */
export interface WorkQueueObserver {
  added(): void
  started(waitedSeconds: number): void
  finished(workedSeconds: number): void
  retried(): void
}

export type Reconcile = (key: ObjectKey, signal: AbortSignal) => Promise<Outcome>

/** A key's state. `message` and `details` are those of the last outcome or error. */
export interface KeyState {
  readonly key: ObjectKey
  readonly is: 'ready' | 'running' | 'waiting' | 'stuck'
  readonly message?: string
  readonly details?: OperationDetails
  /** Wall-clock time at which a waiting key is retried. */
  readonly nextAtMs?: number
  /** Consecutive failures. */
  readonly failures: number
  /** Reconciles since the key entered the queue. A key leaves the queue when it is done. */
  readonly attempts: number
  /** Wall-clock time at which the key entered the queue. */
  readonly addedAtMs: number
  /** Wall-clock time at which the last reconcile started. */
  readonly lastAttemptAtMs?: number
  /** Whether the key waits because the last reconcile failed. */
  readonly isRetry: boolean
  /** Whether the key has no work and waits only to be checked again. */
  readonly isRoutine: boolean
}

export interface WorkQueue {
  readonly name: string
  /** Immediately queues the key, even if it waits for a retry, unless it waits for a missing permission. */
  add(key: ObjectKey): void
  /** Queues the key after this time, unless it is due earlier. */
  addAfter(key: ObjectKey, ms: number, message?: string): void
  /**
   * Immediately queues a key that is not done, even if it waits for a missing permission or its lane is silent, and resets its
   * backoff.
   */
  retryNow(key: ObjectKey): void
  /** Whether the key is not done: ready, running, waiting or stuck. */
  has(key: ObjectKey): boolean
  isEmpty(): boolean
  /** Returns undefined if the key is done or was never added. */
  stateOf(key: ObjectKey): KeyState | undefined
  /** Returns the state of all keys that are not done. */
  states(): KeyState[]
  stats(): WorkQueueStats
  /** Processes keys until the signal is aborted and the running keys have finished. Drops all other keys. */
  run(reconcile: Reconcile, signal: AbortSignal): Promise<void>
}

interface WorkQueueStats {
  readonly depth: number
  readonly running: number
  readonly waiting: number
  /** The sum of the processing times of all running keys. */
  readonly unfinishedSeconds: number
  /** The longest processing time of a running key. */
  readonly longestSeconds: number
}

const WORKERS = 10
/**
 * After this many reconciles have started, the event loop gets a turn. After a restart most of them wait for nothing: 100,000 in a row
 * delayed requests by seconds.
 */
const RECONCILES_PER_TURN = 200
const BACKOFF: Backoff = { baseMs: 50, maxMs: 300_000 }
const RETRIES_PER_SECOND = 50
const RETRY_BURST = 500
/** The number of stuck keys whose reason is stored. Beyond this, the oldest reason is dropped. */
const STUCK_REASONS_MAX = 100_000
const MISSING_RIGHT_RETRY_MS = 30_000
/** After more consecutive failures than this, a key that was added during its reconcile waits for its backoff. */
const IMMEDIATE_RETRIES_MAX = 3
const REASON_LENGTH_MAX = 2_000
/** The share of the workers that a lane has. Further keys of the lane wait. */
const LANE_PERCENT = 50
/** After this number of failed attempts in a row, a silent lane has one start per `SILENT_LANE_START_MS`. */
export const SILENT_LANE_FAILURES = 16
const SILENT_LANE_START_MS = 1_000

interface Item {
  readonly key: ObjectKey
  state: 'ready' | 'running' | 'waiting' | 'stuck'
  /** Whether the key was added while it was running and must be processed again. */
  isAddedAgain: boolean
  /** Monotonic due time from an `addAfter` while the key was running. */
  requestedDueMs: number
  failures: number
  /** Whether the last reconcile failed because this process lacks a permission. */
  lacksRight: boolean
  message: string | undefined
  details: OperationDetails | undefined
  /** Whether the last outcome was a routine check. */
  isRoutine: boolean
  attempts: number
  /** Wall-clock time at which the item was created. */
  readonly addedAtMs: number
  /** Monotonic time at which the last reconcile started. */
  startedMs: number
  /** The lanes that count the key as running. */
  lanes: readonly Lane[]
  /** The lane in which the ready key waits. */
  parkedIn: Lane | undefined
  /** The lane in which the last attempt failed. */
  failedIn: Lane | undefined
  /** Whether the next reconcile does not wait for the turn of its silent lane. */
  isUrgent: boolean
  /** Monotonic time since which the key has been ready or running. */
  sinceMs: number
  dueMs: number
  cancelTimer: (() => void) | undefined
}

/** Keys that share a limit of workers. */
interface Lane {
  readonly id: string
  /** The name that `laneOf` returned. Undefined for the lane of the keys whose last reconcile failed. */
  readonly name: string | undefined
  /** Includes the item that starts next. */
  running: number
  /** Ready keys that wait until the lane has a worker. An item with another `parkedIn` has left. */
  readonly parked: Fifo<Item>
  /** Items whose last attempt failed. */
  readonly failedItems: Set<Item>
  /** Failed attempts since the last key was done. */
  failuresInRow: number
  /** Monotonic time of the next start, if the lane is silent. */
  nextStartMs: number
  cancelTimer: (() => void) | undefined
}

export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { name, clock, random, log = silentLog, workers = WORKERS, backoff = BACKOFF, observer, onChange } = options
  const { onAttempt, silentLanes, isSettled = () => false } = options
  const nextRetryDelayMs = createRetryLimiter(options)
  const items = new Map<ObjectKey, Item>()
  const readyItems = new Fifo<Item>()
  /** The item that starts next, when a worker is free. */
  let nextItem: Item | undefined
  /** The lanes with running, parked or failed keys. */
  const lanes = new Map<string, Lane>()
  const laneWorkers = Math.max(1, Math.floor((workers * LANE_PERCENT) / 100))
  let parkedCount = 0
  const runningItems = new Set<Item>()
  let waitingCount = 0
  let stuckCount = 0
  let isStopped = false
  let wake: (() => void) | undefined

  function getOrCreateItem(key: ObjectKey): Item {
    let item = items.get(key)
    if (!item) {
      item = {
        key,
        state: 'stuck',
        isAddedAgain: false,
        requestedDueMs: Number.POSITIVE_INFINITY,
        failures: 0,
        lacksRight: false,
        message: undefined,
        details: undefined,
        isRoutine: false,
        attempts: 0,
        addedAtMs: clock.nowMs(),
        startedMs: 0,
        lanes: [],
        parkedIn: undefined,
        failedIn: undefined,
        isUrgent: false,
        sinceMs: 0,
        dueMs: 0,
        cancelTimer: undefined,
      }
      items.set(key, item)
      stuckCount++
    }
    return item
  }

  function leaveState(item: Item): void {
    if (item.state === 'waiting') {
      waitingCount--
      item.cancelTimer?.()
      item.cancelTimer = undefined
    } else if (item.state === 'stuck') stuckCount--
    else if (item.state === 'running') runningItems.delete(item)
    // A ready key is removed from the queue by the worker that processes it.
  }

  function setReady(item: Item): void {
    leaveState(item)
    item.state = 'ready'
    item.sinceMs = clock.monotonicMs()
    readyItems.add(item)
    wake?.()
  }

  function setWaiting(item: Item, ms: number): void {
    leaveState(item)
    item.state = 'waiting'
    item.dueMs = clock.monotonicMs() + ms
    item.cancelTimer = clock.after(ms, () => add(item.key))
    waitingCount++
  }

  function setStuck(item: Item): void {
    leaveState(item)
    item.state = 'stuck'
    stuckCount++
    items.delete(item.key) // reinsert it as the newest item
    items.set(item.key, item)
    if (stuckCount > STUCK_REASONS_MAX) dropOldestStuck()
  }

  function dropOldestStuck(): void {
    for (const item of items.values()) {
      if (item.state !== 'stuck') continue
      stuckCount--
      items.delete(item.key)
      return
    }
  }

  function getOrCreateLane(name: string | undefined): Lane {
    const id = name === undefined ? 'failing' : `lane ${name}`
    let lane = lanes.get(id)
    if (!lane) {
      lane = {
        id,
        name,
        running: 0,
        parked: new Fifo(),
        failedItems: new Set(),
        failuresInRow: 0,
        nextStartMs: 0,
        cancelTimer: undefined,
      }
      lanes.set(id, lane)
    }
    return lane
  }

  function deleteUnusedLane({ id, running, parked, failedItems, cancelTimer }: Lane): void {
    if (running > 0 || parked.size > 0 || failedItems.size > 0) return
    cancelTimer?.()
    lanes.delete(id)
  }

  function lanesOf({ key, failures }: Item): Lane[] {
    const name = options.laneOf?.(key)
    return [...(failures > 0 ? [undefined] : []), ...(name === undefined ? [] : [name])].map(getOrCreateLane)
  }

  const isFull = ({ running }: Lane): boolean => running >= laneWorkers
  const isSilent = ({ name, failuresInRow }: Lane): boolean =>
    failuresInRow >= SILENT_LANE_FAILURES && name !== undefined && (silentLanes?.has(name) ?? false)
  const isBeforeTurn = (lane: Lane): boolean => clock.monotonicMs() < lane.nextStartMs && isSilent(lane)

  function park(item: Item, lane: Lane): void {
    lane.parked.add(item)
    item.parkedIn = lane
    parkedCount++
    if (!isBeforeTurn(lane)) return
    startTimer(lane)
    onChange?.(item.key)
  }

  function delayNextStart(lane: Lane): void {
    lane.nextStartMs = clock.monotonicMs() + SILENT_LANE_START_MS
    if (lane.parked.size > 0) startTimer(lane)
  }

  function startTimer(lane: Lane): void {
    lane.cancelTimer ??= clock.after(lane.nextStartMs - clock.monotonicMs(), () => {
      lane.cancelTimer = undefined
      unparkOne(lane)
      wake?.()
    })
  }

  function unpark(item: Item): void {
    item.parkedIn = undefined
    parkedCount--
    readyItems.add(item)
  }

  function unparkOne(lane: Lane): void {
    if (isBeforeTurn(lane)) {
      if (lane.parked.size > 0) startTimer(lane)
    } else {
      let item = lane.parked.take()
      while (item && item.parkedIn !== lane) item = lane.parked.take()
      if (item) unpark(item)
    }
    deleteUnusedLane(lane)
  }

  /** Queues all keys of a silent lane, because an attempt has succeeded or the node has returned. */
  function resumeLane(lane: Lane): void {
    lane.failuresInRow = 0
    lane.nextStartMs = 0
    for (let item = lane.parked.take(); item; item = lane.parked.take()) if (item.parkedIn === lane) unpark(item)
    for (const item of lane.failedItems) {
      item.failedIn = undefined
      if (item.state === 'waiting' && !item.lacksRight) setReady(item)
    }
    lane.failedItems.clear()
    deleteUnusedLane(lane)
    wake?.()
  }

  /** Counts the failed attempts of a lane. A key that is done resumes a silent lane. */
  function recordInLane(item: Item, lane: Lane | undefined, outcome: Outcome): void {
    const { failedIn } = item
    failedIn?.failedItems.delete(item)
    item.failedIn = undefined
    if (lane && isFailedAttempt(outcome)) {
      lane.failuresInRow++
      lane.failedItems.add(item)
      item.failedIn = lane
      if (lane.failuresInRow === SILENT_LANE_FAILURES && isSilent(lane)) delayNextStart(lane)
    } else if (lane && outcome.is === 'done') {
      if (isSilent(lane)) resumeLane(lane)
      lane.failuresInRow = 0
    }
    if (failedIn) deleteUnusedLane(failedIn)
  }

  /** Takes the next item whose lanes have a worker. Parks those before it. */
  function takeReadyItem(): Item | undefined {
    for (let item = readyItems.take(); item; item = readyItems.take()) {
      const { isUrgent } = item
      // Several caches change with one commit, and the key was added with the first of these changes.
      if (item.message === undefined && item.failures === 0 && isSettled(item.key)) {
        drop(item)
        continue
      }
      const itemLanes = lanesOf(item)
      const blockingLane = itemLanes.find((lane) => isFull(lane) || (!isUrgent && isBeforeTurn(lane)))
      if (!blockingLane) {
        for (const lane of itemLanes) {
          lane.running++
          if (isSilent(lane)) delayNextStart(lane)
        }
        item.isUrgent = false
        item.lanes = itemLanes
        return item
      }
      park(item, blockingLane)
      // The item may have left another lane, whose worker is still free.
      for (const lane of itemLanes) if (!isFull(lane)) unparkOne(lane)
    }
    return undefined
  }

  /** Removes a ready key that needs no reconcile. */
  function drop(item: Item): void {
    items.delete(item.key)
    if (item.attempts > 0) onChange?.(item.key)
  }

  function add(key: ObjectKey): void {
    if (isStopped || (!items.has(key) && isSettled(key))) return
    const item = getOrCreateItem(key)
    if (item.state === 'ready' || item.isAddedAgain) return
    observer?.added()
    if (item.state === 'running') item.isAddedAgain = true
    else if (!item.lacksRight || item.dueMs <= clock.monotonicMs()) setReady(item)
  }

  function addAfter(key: ObjectKey, ms: number, message?: string): void {
    if (isStopped) return
    if (ms <= 0) {
      add(key)
      return
    }
    const item = getOrCreateItem(key)
    if (item.state === 'ready') return
    if (item.state === 'running') {
      item.requestedDueMs = Math.min(item.requestedDueMs, clock.monotonicMs() + ms)
      return
    }
    if (item.state === 'waiting' && item.dueMs <= clock.monotonicMs() + ms) return
    if (message !== undefined) item.message = message.slice(0, REASON_LENGTH_MAX)
    setWaiting(item, ms)
  }

  function retryNow(key: ObjectKey): void {
    const item = items.get(key)
    if (!item || isStopped) return
    item.failures = 0
    item.lacksRight = false
    item.isUrgent = true
    if (item.parkedIn) unpark(item)
    if (item.state === 'ready') wake?.()
    else add(key)
  }

  async function processItem(item: Item, reconcile: Reconcile, signal: AbortSignal): Promise<void> {
    const startedMs = clock.monotonicMs()
    observer?.started((startedMs - item.sinceMs) / 1_000)
    leaveState(item)
    item.state = 'running'
    item.isAddedAgain = false
    item.sinceMs = startedMs
    item.startedMs = startedMs
    item.attempts++
    runningItems.add(item)
    const { lanes: runningLanes } = item
    onChange?.(item.key)
    let outcome: Outcome
    item.lacksRight = false
    try {
      outcome = await reconcile(item.key, signal)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      item.lacksRight = isMissingRight(error)
      if (!signal.aborted && (!item.lacksRight || item.message !== message))
        log.warn({ err: error, queue: name, key: item.key }, 'reconcile failed; retrying with backoff')
      const details = operationDetailsOf(error) ?? (error instanceof ApiError ? { reason: error.reason } : undefined)
      outcome = { is: 'retry', message, details, ...(item.lacksRight ? { afterMs: MISSING_RIGHT_RETRY_MS } : {}) }
    }
    for (const lane of runningLanes) lane.running--
    recordInLane(
      item,
      runningLanes.find((lane) => lane.name !== undefined),
      outcome,
    )
    for (const lane of runningLanes) unparkOne(lane)
    const durationMs = clock.monotonicMs() - startedMs
    observer?.finished(durationMs / 1_000)
    if (onAttempt && isWorthRecording(item, outcome))
      onAttempt({ key: item.key, durationMs, attempt: item.attempts, outcome })
    const { requestedDueMs } = item
    item.requestedDueMs = Number.POSITIVE_INFINITY
    settleItem(item, outcome)
    if (requestedDueMs < Number.POSITIVE_INFINITY) addAfter(item.key, requestedDueMs - clock.monotonicMs())
    onChange?.(item.key)
  }

  function settleItem(item: Item, outcome: Outcome): void {
    const { isAddedAgain } = item
    item.isAddedAgain = false
    switch (outcome.is) {
      case 'done':
        item.failures = 0
        item.message = undefined
        item.details = undefined
        item.isRoutine = false
        if (isAddedAgain) setReady(item)
        else {
          leaveState(item)
          items.delete(item.key)
        }
        return
      case 'stuck':
        item.failures = 0
        item.message = outcome.message.slice(0, REASON_LENGTH_MAX)
        item.details = outcome.details
        item.isRoutine = false
        if (isAddedAgain) setReady(item)
        else setStuck(item)
        return
      case 'retry': {
        item.message = outcome.message.slice(0, REASON_LENGTH_MAX)
        item.details = outcome.details
        item.isRoutine = outcome.isRoutine ?? false
        observer?.retried()
        const isTimed = outcome.afterMs !== undefined
        const afterMs = outcome.afterMs ?? Math.max(backoffMs(backoff, item.failures, random), nextRetryDelayMs())
        item.failures = isTimed ? 0 : item.failures + 1
        // The key was added during its reconcile: retry immediately, unless it keeps failing, because the reconcile itself may add it.
        if (isAddedAgain && !item.lacksRight && item.failures <= IMMEDIATE_RETRIES_MAX) setReady(item)
        else setWaiting(item, afterMs)
        return
      }
    }
  }

  async function run(reconcile: Reconcile, signal: AbortSignal): Promise<void> {
    const wakeUp = () => wake?.()
    signal.addEventListener('abort', wakeUp)
    const runningReconciles = new Set<Promise<void>>()
    const unsubscribe = silentLanes?.onReturn((name) => {
      const lane = lanes.get(`lane ${name}`)
      if (lane) resumeLane(lane)
    })
    const share = options.workerBudget?.join(wakeUp)
    const tryTakeWorker = () => runningReconciles.size < workers && (share?.tryTake() ?? true)
    let startedCount = 0
    try {
      while (!signal.aborted) {
        nextItem ??= takeReadyItem()
        if (nextItem && tryTakeWorker()) {
          const item = nextItem
          nextItem = undefined
          const itemRun: Promise<void> = processItem(item, reconcile, signal).finally(() => {
            runningReconciles.delete(itemRun)
            share?.release()
            wake?.()
          })
          runningReconciles.add(itemRun)
          if (++startedCount % RECONCILES_PER_TURN === 0) await clock.nextTurn()
          continue
        }
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        wake = undefined
      }
    } finally {
      isStopped = true
      signal.removeEventListener('abort', wakeUp)
      unsubscribe?.()
      await Promise.all(runningReconciles)
      share?.leave()
      for (const lane of lanes.values()) lane.cancelTimer?.()
      for (const item of items.values()) item.cancelTimer?.()
      items.clear()
      readyItems.clear()
      nextItem = undefined
      lanes.clear()
      parkedCount = 0
      waitingCount = 0
      stuckCount = 0
    }
  }

  function keyStateOf(item: Item): KeyState {
    const { key, state, details, failures, attempts, addedAtMs, lacksRight, parkedIn } = item
    const message = item.message ?? (parkedIn && isSilent(parkedIn) ? silentLaneMessage(parkedIn) : undefined)
    const bootMs = clock.nowMs() - clock.monotonicMs()
    return {
      key,
      is: state,
      failures,
      attempts,
      addedAtMs,
      isRetry: state === 'waiting' && (failures > 0 || lacksRight || isFailure(details)),
      isRoutine: state === 'waiting' && item.isRoutine,
      ...(message === undefined ? {} : { message }),
      ...(details === undefined ? {} : { details }),
      ...(attempts > 0 ? { lastAttemptAtMs: bootMs + item.startedMs } : {}),
      ...(state === 'waiting' ? { nextAtMs: bootMs + item.dueMs } : {}),
    }
  }

  return {
    name,
    add,
    addAfter,
    retryNow,
    run,
    has: (key) => items.has(key),
    isEmpty: () => items.size === 0,
    stateOf: (key) => {
      const item = items.get(key)
      return item && keyStateOf(item)
    },
    states: () => [...items.values()].map(keyStateOf),
    stats() {
      const nowMs = clock.monotonicMs()
      const seconds = [...runningItems].map(({ sinceMs }) => (nowMs - sinceMs) / 1_000)
      return {
        depth: readyItems.size + parkedCount + (nextItem ? 1 : 0),
        running: runningItems.size,
        waiting: waitingCount,
        unfinishedSeconds: seconds.reduce((sum, value) => sum + value, 0),
        longestSeconds: Math.max(0, ...seconds),
      }
    },
  }
}

/**
 * Whether an attempt failed, has a new message, or succeeded after an attempt with a message. Routine checks and waits for own
 * work are not worth recording.
 */
function isWorthRecording({ message, details }: Item, outcome: Outcome): boolean {
  if (outcome.is === 'done') return message !== undefined && !details?.isBlockedByOwnWork
  if (outcome.details?.isBlockedByOwnWork) return false
  if (outcome.is === 'retry' && outcome.isRoutine) return false
  if (isFailedAttempt(outcome)) return true
  return message !== outcome.message.slice(0, REASON_LENGTH_MAX)
}

const isFailedAttempt = (outcome: Outcome): boolean =>
  outcome.is === 'retry' && (outcome.afterMs === undefined || isFailure(outcome.details))

const isFailure = (details: OperationDetails | undefined): boolean =>
  details !== undefined && (details.isFailure === true || details.driverAnswer !== undefined)

const silentLaneMessage = ({ name, failuresInRow }: Lane): string =>
  `${name} does not respond and ${failuresInRow} attempts for it have failed in a row: one attempt per second is made until one succeeds`

/** Creates a token bucket. The returned function takes a token and returns the shortest delay of the next retry. */
function createRetryLimiter(options: WorkQueueOptions): () => number {
  const { clock, retriesPerSecond = RETRIES_PER_SECOND, retryBurst = RETRY_BURST } = options
  const spacingMs = 1_000 / retriesPerSecond
  let nextFreeMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = clock.monotonicMs()
    nextFreeMs = Math.max(nextFreeMs, nowMs - spacingMs * retryBurst) + spacingMs
    return Math.max(0, nextFreeMs - nowMs)
  }
}
