// Runs controllers together. If one fails, the others are stopped before its error is passed on: no part of a failed group
// is still running when the group is created again.
import { setMaxListeners } from 'node:events'
import type { EventRecorder } from './events.ts'
import type { WorkQueue } from './work-queue.ts'

/** A controller, or several that run together. `run` settles when its last piece of work has. */
export interface Runnable {
  readonly queues?: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

export async function runAll(runnables: readonly Runnable[], signal: AbortSignal): Promise<void> {
  const stop = new AbortController()
  setMaxListeners(0, stop.signal) // every watch and every object in work adds a listener
  const stopAll = () => stop.abort(signal.reason)
  if (signal.aborted) stopAll()
  else signal.addEventListener('abort', stopAll, { once: true })
  const running = runnables.map((runnable) => runnable.run(stop.signal))
  try {
    await Promise.all(running)
  } catch (error) {
    stop.abort(error)
    await Promise.allSettled(running)
    throw error
  } finally {
    signal.removeEventListener('abort', stopAll)
  }
}

export const queuesOf = (runnables: readonly Runnable[]): readonly WorkQueue[] =>
  runnables.flatMap(({ queues = [] }) => queues)

/** Controllers and the recorders of their events. These stop last, so that the events of the final reconciles are sent. */
export function withRecorders(
  controllers: readonly Runnable[],
  recorders: readonly EventRecorder[],
): Runnable & { readonly queues: readonly WorkQueue[] } {
  return {
    queues: queuesOf(controllers),
    async run(signal) {
      const recording = new AbortController()
      const sending = recorders.map((recorder) => recorder.run(recording.signal))
      try {
        await Promise.all(controllers.map((controller) => controller.run(signal)))
      } finally {
        recording.abort()
        await Promise.all(sending)
      }
    },
  }
}
