// Settings of the JavaScript heap.
import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from './clock.ts'

/** A flag of V8 that every supported release of Node.js has. */
export const HEAP_GROWTH_FLAG = '--heap-growing-percent'
/** A flag of V8 that every supported release of Node.js has. Without it, V8 keeps most pages of a heap that has shrunk, half empty. */
export const COMPACTION_FLAG = '--compact-on-every-full-gc'
const HEAP_GROWTH_PERCENT = 50

/**
 * Lets the heap grow by half before the next full garbage collection. By default V8 lets it grow to four times the size of its
 * live objects. Under a load of 100 claims per second, a server with the default needs about 135 MB more memory, and the same
 * processor time per claim.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString(`${HEAP_GROWTH_FLAG}=${HEAP_GROWTH_PERCENT}`)
}

const CHECK_MS = 30_000
/** Idle checks before the second collection after a busy period. By then, caches and the store's history have released unused objects. */
const SECOND_COLLECTION_CHECKS = 12
/** Shares of the time during which the event loop was busy. */
const BUSY_UTILIZATION = 0.1
const IDLE_UTILIZATION = 0.05

export interface IdleCollection {
  readonly clock: Pick<Clock, 'after'>
  /** Returns the share of the time since the last call during which the event loop was busy. */
  utilization?(): number
  /** Collects garbage, and moves the remaining objects together if `isCompacting`. */
  collect?(isCompacting: boolean): void
}

/**
 * Collects garbage after each busy period, because V8 collects none in a process that allocates nothing: at the first idle check,
 * and again six minutes later. The second collection also compacts the heap: the pages that a busy period has filled are then
 * mostly empty, and V8 returns only empty pages.
 */
export function collectGarbageWhenIdle(options: IdleCollection): void {
  const { clock, utilization = measureUtilization(), collect = collectGarbage } = options
  /** Idle checks since the last busy period. Undefined before the first one. */
  let idleChecks: number | undefined
  const check = () => {
    const share = utilization()
    if (share >= BUSY_UTILIZATION) idleChecks = 0
    else if (idleChecks !== undefined && share <= IDLE_UTILIZATION) {
      if (idleChecks === 0) collect(false)
      else if (idleChecks === SECOND_COLLECTION_CHECKS) collect(true)
      idleChecks++
    }
    clock.after(CHECK_MS, check)
  }
  clock.after(CHECK_MS, check)
}

function measureUtilization(): () => number {
  let start = performance.eventLoopUtilization()
  return () => {
    const end = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(end, start)
    start = end
    return utilization
  }
}

/** Marks concurrently, so that requests do not wait for a complete collection, only for compaction. */
async function collectGarbage(isCompacting: boolean): Promise<void> {
  setFlagsFromString('--expose-gc')
  const gc: (options: object) => Promise<void> = runInNewContext('gc')
  if (isCompacting) setFlagsFromString(COMPACTION_FLAG)
  await gc({ type: 'major', execution: 'async' })
  if (isCompacting) setFlagsFromString(COMPACTION_FLAG.replace('--', '--no-'))
}
