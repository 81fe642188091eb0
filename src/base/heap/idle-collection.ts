// Collects garbage in an idle process. How much the heap of a busy one may grow is in growth.ts.
import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from '../clock.ts'
import { filePages } from './file-pages.ts'
import { resetHeapGrowth } from './growth.ts'
import { loadMallocTrim } from './malloc-trim.ts'

/**
 * A flag of V8 that every supported release of Node.js has. Without it, V8 keeps most pages of a heap that has shrunk,
 * half empty.
 */
export const COMPACTION_FLAG = '--compact-on-every-full-gc'
/**
 * Flags of V8 that every supported release of Node.js has. A collection with them removes the compiled code of functions that are not
 * running; V8 compiles it again when it is called. Without them V8 keeps machine code forever.
 */
export const CODE_REMOVAL_FLAGS: readonly string[] = ['--stress-flush-code', '--flush-baseline-code']

const CHECK_MS = 30_000
/** Idle checks after a busy period until memory is released. By then, caches and the store's history have released unused objects. */
const RELEASE_CHECKS = 12
/** A released heap that has grown by this factor is released again. */
const REGROWTH_FACTOR = 1.15
/** Shares of the time during which the event loop was busy. */
const BUSY_UTILIZATION = 0.1
const IDLE_UTILIZATION = 0.05
/** A release stops the process for several collections. A larger heap is only compacted. */
const RELEASED_BYTES_MAX = 256 * 1024 * 1024
/** A compaction stops the process while it moves objects: for 8 s with 3.7 GB. V8 collects a larger heap only when it grows. */
const COMPACTED_BYTES_MAX = 1024 * 1024 * 1024
/** The collections of a heap of this size stop the process for about a tenth of a second. V8 collects a larger one when it grows. */
const SMALL_HEAP_BYTES_MAX = 64 * 1024 * 1024

/** The ways to collect garbage: `compact` moves the remaining objects together; `release` also gives up compiled code and spare pages. */
export type Collection = 'compact' | 'release'

export interface IdleCollectionOptions {
  readonly clock: Pick<Clock, 'after'>
  /** Returns the share of the time since the last call during which the event loop was busy. */
  utilization?(): number
  /** Returns the size of the objects in the heap. */
  usedBytes?(): number
  collect?(collection: Collection): void | Promise<void>
  /** Returns memory outside the heap to the kernel. */
  trim?(): void
}

/**
 * Collects garbage after each busy period, because V8 collects little in a process that allocates little: at the first idle check, and
 * six minutes later, when it also releases what V8 keeps for the next load. From then on it releases memory whenever the heap has
 * grown, until the process is busy again. Each check of these six minutes and the one after a release also trim the memory outside
 * the heap: V8 frees buffers in the background after a collection, and caches release theirs until then.
 */
export function collectGarbageWhenIdle(options: IdleCollectionOptions): void {
  const { clock, utilization = measureUtilization(), collect = collectGarbage } = options
  const { usedBytes = () => getHeapStatistics().used_heap_size, trim = trimOutsideHeap } = options
  /** Idle checks since the last busy period. Undefined before the first one. */
  let idleChecks: number | undefined
  let releasedBytes = 0
  let isTrimDue = false
  const check = async () => {
    const share = utilization()
    if (share >= BUSY_UTILIZATION) idleChecks = 0
    else if (idleChecks !== undefined && share <= IDLE_UTILIZATION) {
      const heapBytes = usedBytes()
      const isRegrown = idleChecks > RELEASE_CHECKS && heapBytes > releasedBytes * REGROWTH_FACTOR
      const isReleaseDue = idleChecks === RELEASE_CHECKS || isRegrown
      if (heapBytes > COMPACTED_BYTES_MAX) releasedBytes = heapBytes
      else if (idleChecks === 0) await collect('compact')
      else if (isReleaseDue) {
        await collect('release')
        releasedBytes = usedBytes()
      }
      if (idleChecks <= RELEASE_CHECKS || isReleaseDue || isTrimDue) trim()
      isTrimDue = isReleaseDue
      idleChecks++
    }
    clock.after(CHECK_MS, check)
  }
  clock.after(CHECK_MS, check)
}

/**
 * Returns the memory of completed work to the kernel, if the heap is small. Unlike a release after a busy period, it keeps compiled
 * code.
 */
export async function releaseSmallHeap(usedBytes = getHeapStatistics().used_heap_size): Promise<void> {
  if (usedBytes > SMALL_HEAP_BYTES_MAX) return
  resetHeapGrowth()
  await withFlags([COMPACTION_FLAG], collectAll)
  trimOutsideHeap()
}

const PROCESSOR_TIME_FACTOR = 2

/**
 * Returns the share of the time during which a process was busy. On a machine with too few processors, the event loop of an idle
 * process seems busy while it waits for one, so the share of the event loop counts at most as twice the processor time. A server
 * uses up to 2.5 % of a processor while it deletes the history of a load.
 */
export const busyShareOf = (share: { readonly eventLoop: number; readonly processor: number }): number =>
  Math.min(share.eventLoop, PROCESSOR_TIME_FACTOR * share.processor)

function measureUtilization(): () => number {
  let start = { loop: performance.eventLoopUtilization(), processorUs: process.cpuUsage(), ms: performance.now() }
  return () => {
    const { loop, processorUs, ms } = start
    start = { loop: performance.eventLoopUtilization(), processorUs: process.cpuUsage(), ms: performance.now() }
    const { user, system } = process.cpuUsage(processorUs)
    return busyShareOf({
      eventLoop: performance.eventLoopUtilization(start.loop, loop).utilization,
      processor: (user + system) / 1_000 / (start.ms - ms),
    })
  }
}

async function collectGarbage(collection: Collection): Promise<void> {
  resetHeapGrowth()
  if (collection === 'compact' || getHeapStatistics().total_heap_size > RELEASED_BYTES_MAX)
    return withFlags([COMPACTION_FLAG], collectConcurrently)
  return withFlags([COMPACTION_FLAG, ...CODE_REMOVAL_FLAGS], collectAll)
}

async function withFlags(flags: readonly string[], collect: () => Promise<void>): Promise<void> {
  for (const flag of flags) setFlagsFromString(flag)
  try {
    await collect()
  } finally {
    for (const flag of flags) setFlagsFromString(flag.replace('--', '--no-'))
  }
}

let gc: ((options: object) => Promise<void>) | undefined

/** Marks concurrently, so that requests do not wait for a complete collection, only for compaction. */
async function collectConcurrently(): Promise<void> {
  setFlagsFromString('--expose-gc')
  gc ??= runInNewContext('gc') as NonNullable<typeof gc> // once: each context takes memory
  await gc({ type: 'major', execution: 'async' })
}

let mallocTrim: (() => void) | undefined

function trimOutsideHeap(): void {
  mallocTrim ??= loadMallocTrim() ?? (() => {})
  mallocTrim()
  filePages.releaseProgram() // code that only the load has used; file-pages.ts releases shared files in any case
}

/** Collects several times, as V8 does when the system has little memory: the young generation shrinks and spare pages are unmapped. */
async function collectAll(): Promise<void> {
  const { Session } = process.getBuiltinModule('node:inspector') // loaded only when it is needed
  const session = new Session()
  session.connect()
  await new Promise<void>((resolve) => session.post('HeapProfiler.collectGarbage', () => resolve()))
  session.disconnect()
}
