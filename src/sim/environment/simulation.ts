// A simulation provides virtual time and random streams, and decides the order of all events. Production code runs in it
// unmodified and waits only for steps that the simulation schedules, so a seed always produces the same run.
//
// A step is one scheduled callback and every microtask that it releases. Steps due at the same moment run in a random
// order: across many seeds, concurrent operations run in many different orders.
import type { Clock, Random } from '../../base/clock.ts'
import { type Logger, silentLog } from '../../base/log.ts'
import { hashText, mixSeed, seededRandom } from '../../base/seeded-random.ts'

export interface Simulation {
  readonly seed: number
  readonly log: Logger
  /** Returns the random stream for a purpose. Streams are separate: a further draw from one does not change the others. */
  random(purpose: string): Random
  /** The true time. Each process has its own clock (process.ts). */
  readonly clock: Clock
  readonly nowMs: number
  /** Runs `step` after `ms`; the returned function cancels it. */
  schedule(ms: number, step: () => void): () => void
  /** Runs steps until the condition holds; throws if the time is up, no step is left, or the step limit is reached. */
  runUntil(condition: () => boolean, options: { readonly withinMs: number; readonly waitingFor: string }): Promise<void>
  runFor(ms: number): Promise<void>
  /** Appends a line to the trace. Only the last `linesMax` lines are retained. */
  note(line: string): void
  trace(): readonly string[]
  /** A hash of the whole trace: two runs of a seed must agree on it. */
  readonly fingerprint: number
  readonly steps: number
  /** Counts an event, mostly a fault: `reply lost`, `crash`. */
  tally(event: string): void
  readonly tallies: Readonly<Record<string, number>>
}

export interface SimulationOptions {
  /** How many lines of the trace are retained. Default TRACE_LINES_MAX. */
  readonly linesMax?: number
  /** The log of all processes. Default: none. */
  readonly log?: Logger
}

const TRACE_LINES_MAX = 2_000
/** The shortest wait: with sums of smaller fractions, time could stop advancing. */
const TICK_MS = 0.001
const START_MS = Date.UTC(2026, 0, 1)
/** Ends a simulation that would run forever. */
const STEPS_MAX = 5_000_000

interface Step {
  readonly atMs: number
  readonly order: number
  /** Undefined if the step is cancelled. */
  run: (() => void) | undefined
}

export function createSimulation(seed: number, options: SimulationOptions = {}): Simulation {
  const { linesMax = TRACE_LINES_MAX, log = silentLog } = options
  const order = seededRandom(mixSeed(seed, 'order'))
  const queue = new StepHeap()
  const lines: string[] = []
  let nowMs = 0
  let steps = 0
  let fingerprint = 0
  const tallies: Record<string, number> = {}

  const schedule = (ms: number, run: () => void) => {
    const step: Step = { atMs: nowMs + (ms > 0 ? Math.max(TICK_MS, ms) : 0), order: order(), run }
    queue.push(step)
    return () => {
      step.run = undefined
    }
  }

  function runStep(step: Step): void {
    nowMs = Math.max(nowMs, step.atMs)
    if (!step.run) return
    steps++
    step.run()
  }

  const simulation: Simulation = {
    seed,
    log,
    random: (purpose) => seededRandom(mixSeed(seed, purpose)),
    clock: clockOf({ schedule, nowMs: () => nowMs }),
    get nowMs() {
      return nowMs
    },
    get steps() {
      return steps
    },
    get fingerprint() {
      return fingerprint
    },
    schedule,
    note(line) {
      const text = `${(nowMs / 1000).toFixed(3).padStart(10)}s ${line}`
      fingerprint = hashText(text, fingerprint)
      lines.push(text)
      if (lines.length > 2 * linesMax) lines.splice(0, lines.length - linesMax)
    },
    tallies,
    tally(event) {
      tallies[event] = (tallies[event] ?? 0) + 1
    },
    trace: () => (lines.length > linesMax ? lines.slice(-linesMax) : lines),
    runUntil: (condition, { withinMs, waitingFor }) => {
      const deadlineMs = nowMs + withinMs
      return runTurnByTurn(() => {
        if (condition()) return false
        const step = queue.pop()
        const problem = !step
          ? 'no step is left'
          : step.atMs > deadlineMs
            ? 'time is up'
            : steps > STEPS_MAX
              ? 'the step limit is reached'
              : ''
        if (!step || problem)
          throw new Error(
            `seed ${seed}: still waiting for ${waitingFor}, but ${problem}\n${simulation.trace().slice(-60).join('\n')}`,
          )
        runStep(step)
        return true
      })
    },
    runFor: (ms) => {
      const untilMs = nowMs + ms
      return runTurnByTurn(() => {
        if (steps > STEPS_MAX)
          throw new Error(`seed ${seed}: the step limit is reached\n${lines.slice(-60).join('\n')}`)
        let step = queue.peek()
        while (step && !step.run && step.atMs <= untilMs) {
          queue.pop() // cancelled: needs no turn
          step = queue.peek()
        }
        if (step && step.atMs <= untilMs) {
          runStep(queue.pop()!)
          return true
        }
        nowMs = untilMs
        return false
      })
    },
  }
  return simulation
}

/** Creates a clock on virtual time; `shift` is added to its wall-clock time. */
export function clockOf(
  source: { schedule: Simulation['schedule']; nowMs: () => number },
  shift = { offsetMs: 0 },
): Clock {
  return {
    nowMs: () => START_MS + Math.floor(source.nowMs()) + shift.offsetMs,
    monotonicMs: () => source.nowMs(),
    after: (ms, run) => source.schedule(ms, run),
    nextTurn: () => new Promise((resolve) => void source.schedule(0, resolve)),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const abort = () => {
          cancel()
          reject(signal?.reason)
        }
        const cancel = source.schedule(ms, () => {
          signal?.removeEventListener('abort', abort)
          resolve()
        })
        signal?.addEventListener('abort', abort, { once: true })
      }),
  }
}

/** Steps per turn of Node's event loop. */
const STEPS_PER_LOOP = 128

/**
 * Calls `step` until it returns false. Node runs all microtasks between two immediates and all queued immediates in one
 * turn; nothing in a simulation waits for anything real.
 */
function runTurnByTurn(step: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    let isOver = false
    const turn = (): void => {
      if (isOver) return
      try {
        if (step()) return
        resolve()
      } catch (error) {
        reject(error)
      }
      isOver = true
    }
    const loop = (): void => {
      turn()
      if (isOver) return
      for (let nth = 1; nth < STEPS_PER_LOOP; nth++) setImmediate(turn)
      setImmediate(loop)
    }
    setImmediate(loop)
  })
}

/** A priority queue: the earliest step first, and steps due at the same moment by their random order. */
class StepHeap {
  readonly #steps: Step[] = []

  peek(): Step | undefined {
    return this.#steps[0]
  }

  push(step: Step): void {
    const steps = this.#steps
    let index = steps.push(step) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(step, steps[parent]!)) break
      steps[index] = steps[parent]!
      index = parent
    }
    steps[index] = step
  }

  pop(): Step | undefined {
    const steps = this.#steps
    const first = steps[0]
    const last = steps.pop()
    if (!last || steps.length === 0) return first
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= steps.length) break
      if (child + 1 < steps.length && isBefore(steps[child + 1]!, steps[child]!)) child++
      if (!isBefore(steps[child]!, last)) break
      steps[index] = steps[child]!
      index = child
    }
    steps[index] = last
    return first
  }
}

const isBefore = (a: Step, b: Step): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
