// Warms up a server after its start: the user of a synthetic cluster in this process creates claims (synthetic-cluster.ts), so that V8
// collects type feedback and compiles the hot functions before the first claims of real users. Real requests have
// priority: the workload consists of slices, and a slice starts only when no request has arrived for some time.
import { performance } from 'node:perf_hooks'
import { releaseSmallHeap } from '../../base/heap/idle-collection.ts'
import type { Logger } from '../../base/log.ts'
import { whenAborted } from '../../runtime/stop-signal.ts'
import { type SyntheticClusterOptions, withSyntheticCluster } from './synthetic-cluster.ts'

export interface WarmUpOptions extends Omit<SyntheticClusterOptions, 'connections'> {
  readonly log: Logger
  /** Resolves when the nodes of the process are ready. The warm-up must not delay them. */
  readonly started: Promise<void>
  /** Returns when the last request of a client arrived, on the monotonic clock. */
  lastRequestMs(): number
  /** Returns the share of the time since the last call during which the event loop was busy. */
  utilization?(): number
  /** Default: a synthetic cluster in this process. */
  readonly runCluster?: typeof withSyntheticCluster
  /** Returns the memory of the workload to the kernel. */
  releaseMemory?(): Promise<void>
}

/** The claims that a slice creates at once. A request that arrives meanwhile waits for the event loop as if so many clients were active. */
const SLICE_CLAIMS = 8
/** More slices gain little: V8 compiles further functions for as long as a server runs. */
const SLICES = 32
/** Between slices, for the other work of the process. */
const PAUSE_MS = 5
/** A slice starts when no request has arrived for this long. */
const QUIET_MS = 250
/** The memory is released when no request has arrived for this long, because it stops the process for about a tenth of a second. */
const RELEASE_QUIET_MS = 3_000
/** The workload starts when the controllers have read all objects: when the event loop was less busy than this for one interval. */
const IDLE = { intervalMs: 100, utilizationMax: 0.5 }
/** A warm-up that is not complete after this time ends: the requests that delayed it have had the same effect. */
const WARM_UP_MS_MAX = 60_000

/** Resolves when the workload is complete, or has ended early. Failures are only logged. */
export async function warmUp(options: WarmUpOptions): Promise<void> {
  const { clock, log, releaseMemory = releaseSmallHeap, runCluster = withSyntheticCluster } = options
  const end = new AbortController()
  const stop = () => end.abort(options.signal.reason)
  options.signal.addEventListener('abort', stop, { once: true })
  const cancelDeadline = clock.after(WARM_UP_MS_MAX, () => end.abort(new Error('the server was busy')))
  const { signal } = end
  try {
    await Promise.race([options.started, whenAborted(signal)])
    await waitUntilIdle(options, signal)
    await waitUntilQuiet(options, signal)
    log.debug({}, 'the warm-up has started')
    await runCluster({ ...options, signal, connections: SLICE_CLAIMS }, async (user) => {
      for (let slice = 0; slice < SLICES; slice++) {
        await clock.sleep(PAUSE_MS, signal)
        await waitUntilQuiet(options, signal)
        await user.createClaims()
      }
    })
    await clock.sleep(RELEASE_QUIET_MS, signal)
    await waitUntilQuiet(options, signal, RELEASE_QUIET_MS)
    await releaseMemory()
    log.debug({}, 'the warm-up is complete')
  } catch (error) {
    if (!options.signal.aborted)
      log.debug({ reason: error instanceof Error ? error.message : String(error) }, 'the warm-up has ended early')
  } finally {
    cancelDeadline()
    options.signal.removeEventListener('abort', stop)
  }
}

type Waiting = Pick<WarmUpOptions, 'clock' | 'lastRequestMs' | 'utilization'>

async function waitUntilIdle(
  { clock, utilization = measureUtilization() }: Waiting,
  signal: AbortSignal,
): Promise<void> {
  do await clock.sleep(IDLE.intervalMs, signal)
  while (utilization() > IDLE.utilizationMax)
}

async function waitUntilQuiet(
  { clock, lastRequestMs }: Waiting,
  signal: AbortSignal,
  quietMs = QUIET_MS,
): Promise<void> {
  for (;;) {
    const waitMs = lastRequestMs() + quietMs - clock.monotonicMs()
    if (waitMs <= 0) return
    await clock.sleep(waitMs, signal)
  }
}

function measureUtilization(): () => number {
  let start = performance.eventLoopUtilization()
  return () => {
    const last = start
    start = performance.eventLoopUtilization()
    return performance.eventLoopUtilization(start, last).utilization
  }
}
