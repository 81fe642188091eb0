// Runs controllers together. If one fails, runAll stops the others before it throws the error, so that no controller is
// still running when its caller restarts them.
import { setMaxListeners } from 'node:events'
import type { EventRecorder } from './events.ts'
import type { WorkQueue } from './work-queue.ts'

/** A controller, or several that run together. `run` settles when all their work has settled. */
export interface Runnable {
  readonly queues?: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

export async function runAll(runnables: readonly Runnable[], signal: AbortSignal): Promise<void> {
  const stop = new AbortController()
  setMaxListeners(0, stop.signal) // every watch and every reconcile adds a listener
  const stopAll = () => stop.abort(signal.reason)
  if (signal.aborted) stopAll()
  else signal.addEventListener('abort', stopAll, { once: true })
  const runs = runnables.map(async (runnable) => runnable.run(stop.signal)) // async: a throw becomes a rejection
  try {
    await Promise.all(runs)
  } catch (error) {
    stop.abort(error)
    await Promise.allSettled(runs)
    throw error
  } finally {
    signal.removeEventListener('abort', stopAll)
  }
}

export const queuesOf = (runnables: readonly Runnable[]): readonly WorkQueue[] =>
  runnables.flatMap(({ queues = [] }) => queues)

/** Runs controllers with their event recorders. Recorders stop last, because the last reconciles may record events. */
export function withRecorders(
  controllers: readonly Runnable[],
  recorders: readonly EventRecorder[],
): Runnable & { readonly queues: readonly WorkQueue[] } {
  return {
    queues: queuesOf(controllers),
    async run(signal) {
      const recorderAbort = new AbortController()
      const recorderRuns = recorders.map((recorder) => recorder.run(recorderAbort.signal))
      try {
        await runAll(controllers, signal)
      } finally {
        recorderAbort.abort()
        await Promise.all(recorderRuns)
      }
    },
  }
}
