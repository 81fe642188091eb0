// Decides how much the heap may grow before V8 marks all of it again. Marking costs as much as there are live objects, and a small
// limit repeats it often: under a burst of claims a limit of 50 percent takes a third of the processor time of the process.
// A large limit costs memory. So the limit is small while full collections are rare, and larger while they follow each other closely.
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'

/** A flag of V8 that every supported release of Node.js has. V8 reads it at the end of each full collection. */
export const HEAP_GROWTH_FLAG = '--heap-growing-percent'
const PERCENT_MIN = 50
/** The limit that V8 has by default for a heap that grows quickly. */
const PERCENT_MAX = 300
/**
 * The limit rises while the active time between full collections is below this interval. The heap then grows by at most these
 * bytes between two of them, or by PERCENT_MIN if that is more.
 */
const STEADY = { intervalMs: 1_500, growthBytesMax: 40 * 1024 * 1024 }
/**
 * The same for a process whose last two full collections both followed so closely. A steady load of 100 claims per second fills
 * the smaller limit in more time; only when it is delayed and caught up is one interval as short.
 */
const BURST = { intervalMs: 750, growthBytesMax: 192 * 1024 * 1024 }
/**
 * A longer time between two collections of any kind counts as this much active time. So the pauses between bursts do not lower the
 * limit, but a process that allocates slowly has its small limit.
 */
const PAUSE_MS_MAX = 500

export interface GrowthState {
  readonly percent: number
  /** Active time before the last full collection. */
  readonly activeMs: number
  /** Active time between the two full collections before it. */
  readonly previousActiveMs: number
  /** Size of the objects that the last full collection left. */
  readonly liveBytes: number
}

/** Returns the next limit after a full collection. */
export function nextGrowthPercent({ percent, activeMs, previousActiveMs, liveBytes }: GrowthState): number {
  const percentFor = ({ intervalMs, growthBytesMax }: typeof STEADY, ms: number) => {
    const intendedPercent = (percent * intervalMs) / Math.max(ms, 1)
    const affordablePercent = (100 * growthBytesMax) / Math.max(liveBytes, 1)
    return Math.min(intendedPercent, affordablePercent, PERCENT_MAX)
  }
  const burstMs = Math.max(activeMs, previousActiveMs)
  return Math.round(Math.max(PERCENT_MIN, percentFor(STEADY, activeMs), percentFor(BURST, burstMs)))
}

let currentPercent = PERCENT_MIN

/** Limits the growth of the heap of this process from now on. */
export function limitHeapGrowth(): void {
  resetHeapGrowth()
  let lastMs = 0
  /** Active time since the last full collection. Undefined before the first one. */
  let activeMs: number | undefined
  let previousActiveMs = Number.POSITIVE_INFINITY
  const observer = new PerformanceObserver((list) => {
    // The types of Node.js do not declare the details of an entry.
    for (const { detail, startTime } of list.getEntries() as unknown as readonly CollectionEntry[]) {
      if (activeMs !== undefined) activeMs += Math.min(startTime - lastMs, PAUSE_MS_MAX)
      lastMs = startTime
      if (detail.kind !== constants.NODE_PERFORMANCE_GC_MAJOR) continue
      const isRequested = (detail.flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0
      if (activeMs !== undefined && !isRequested) {
        const liveBytes = getHeapStatistics().used_heap_size
        setGrowth(nextGrowthPercent({ percent: currentPercent, activeMs, previousActiveMs, liveBytes }))
        previousActiveMs = activeMs
      }
      activeMs = 0
    }
  })
  observer.observe({ entryTypes: ['gc'] })
}

/** Sets the limit for a process that has become idle. */
export function resetHeapGrowth(): void {
  setGrowth(PERCENT_MIN)
}

function setGrowth(percent: number): void {
  currentPercent = percent
  setFlagsFromString(`${HEAP_GROWTH_FLAG}=${percent}`)
}

interface CollectionEntry {
  readonly startTime: number
  readonly detail: { readonly kind: number; readonly flags: number }
}
