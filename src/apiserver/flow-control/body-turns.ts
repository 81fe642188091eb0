// Runs long computations on bodies one at a time, each in a new turn of the event loop, so that many large bodies together
// delay other requests no more than one does. Users alternate.
import type { Clock } from '../../base/clock.ts'
import { Fifo } from '../../base/fifo.ts'

export interface BodyTurns {
  /** Calls `compute` when the user is next, and returns its result. */
  run<T>(user: string, compute: () => T | Promise<T>): Promise<T>
  /** Ends the turn of the event loop. */
  pause(): Promise<void>
  /** The number of computations that wait. */
  readonly waitingCount: number
}

/** A waiting computation. It never rejects. */
type Computation = () => Promise<void>

export function createBodyTurns(clock: Clock): BodyTurns {
  /** Waiting computations by user. The first user in the map is the next one. */
  const queues = new Map<string, Fifo<Computation>>()
  let waitingCount = 0
  let isRunning = false

  function takeNext(): Computation {
    const [user, queue] = queues.entries().next().value!
    const computation = queue.take()!
    queues.delete(user)
    if (queue.size > 0) queues.set(user, queue) // at the end, so that the other users come first
    waitingCount--
    return computation
  }

  async function runAll(): Promise<void> {
    isRunning = true
    while (waitingCount > 0) {
      await clock.nextTurn()
      await takeNext()()
    }
    isRunning = false
  }

  return {
    run: (user, compute) =>
      new Promise((resolve, reject) => {
        const queue = queues.get(user) ?? new Fifo()
        queue.add(async () => {
          try {
            resolve(await compute())
          } catch (error) {
            reject(error)
          }
        })
        queues.set(user, queue)
        waitingCount++
        if (!isRunning) void runAll()
      }),
    pause: () => clock.nextTurn(),
    get waitingCount() {
      return waitingCount
    },
  }
}
