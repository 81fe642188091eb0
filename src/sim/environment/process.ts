// A process that can crash. Everything it awaits passes through its incarnation; after a crash none of these promises
// settles and nothing it scheduled runs, so its code stops at the await it was in. The next start is a new incarnation
// with new state.
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { clockOf, type Simulation } from './simulation.ts'

export interface Incarnation {
  readonly alive: boolean
  /** Settles as `work` does while this incarnation lasts. The process may crash at every call. */
  pass<T>(work: Promise<T>): Promise<T>
}

/** The environment of one incarnation of a process. */
export interface Env extends Incarnation {
  readonly name: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Aborted when the simulation ends. A crash does not abort it. */
  readonly signal: AbortSignal
}

export interface SimProcess {
  readonly name: string
  readonly alive: boolean
  readonly starts: number
  /** Whether the process is frozen: nothing it awaits settles. */
  readonly isFrozen: boolean
  start(): void
  crash(): void
  /** Stops the process at its next await for `ms`; its clock keeps running. */
  freeze(ms: number): void
  /** Ends a freeze early. */
  thaw(): void
  /** Shifts the clock of this and all later incarnations. */
  jumpClock(byMs: number): void
  /**
   * Ends the process when its simulation ends. Node.js retains signals derived from the process's signal, with all their
   * listeners, until it is aborted: without this, many simulations in one Node.js process would exhaust its memory.
   */
  dispose(): void
  /** Probability of a crash at each await. */
  crashRate: number
}

export function createProcess(simulation: Simulation, name: string, main: (env: Env) => void): SimProcess {
  const random = simulation.random(`process ${name}`)
  let incarnation: { alive: boolean } = { alive: false }
  let starts = 0
  const clockOffset = { offsetMs: 0 }
  const stopControllers: AbortController[] = []
  /** Continuations that wait for the end of a freeze. */
  let pausedContinuations: (() => void)[] | undefined
  const runWhenThawed = (run: () => void): void => {
    if (pausedContinuations) pausedContinuations.push(run)
    else run()
  }

  const instance: SimProcess = {
    name,
    crashRate: 0,
    get alive() {
      return incarnation.alive
    },
    get starts() {
      return starts
    },
    get isFrozen() {
      return pausedContinuations !== undefined
    },
    start() {
      if (incarnation.alive) return
      const newIncarnation = { alive: true }
      incarnation = newIncarnation
      const stop = new AbortController()
      stopControllers.push(stop)
      pausedContinuations = undefined
      starts++
      simulation.note(`${name} starts (${starts})`)
      const crashRandomly = () => {
        if (newIncarnation.alive && random() < instance.crashRate) instance.crash()
      }
      const schedule: Simulation['schedule'] = (ms, run) =>
        simulation.schedule(ms, () => newIncarnation.alive && runWhenThawed(() => newIncarnation.alive && run()))
      main({
        name,
        random,
        log: simulation.log,
        clock: clockOf({ schedule, nowMs: () => simulation.nowMs }, clockOffset),
        signal: stop.signal,
        get alive() {
          return newIncarnation.alive
        },
        pass: (work) => {
          crashRandomly()
          return new Promise((resolve, reject) => {
            work.then(
              (value) => {
                crashRandomly()
                if (newIncarnation.alive) runWhenThawed(() => newIncarnation.alive && resolve(value))
              },
              (error) => {
                crashRandomly()
                if (newIncarnation.alive) runWhenThawed(() => newIncarnation.alive && reject(error))
              },
            )
          })
        },
      })
    },
    crash() {
      if (!incarnation.alive) return
      incarnation.alive = false
      pausedContinuations = undefined
      simulation.tally('crash')
      simulation.note(`${name} crashes`)
    },
    freeze(ms) {
      if (!incarnation.alive || pausedContinuations) return
      const continuations: (() => void)[] = []
      pausedContinuations = continuations
      simulation.tally('freeze')
      simulation.note(`${name} freezes`)
      simulation.schedule(ms, () => {
        if (pausedContinuations === continuations) instance.thaw() // otherwise it crashed or was thawed before
      })
    },
    thaw() {
      const continuations = pausedContinuations
      if (!continuations) return
      pausedContinuations = undefined
      simulation.note(`${name} continues`)
      for (const run of continuations) run()
    },
    dispose() {
      incarnation.alive = false
      pausedContinuations = undefined
      for (const stop of stopControllers.splice(0)) stop.abort()
    },
    jumpClock(byMs) {
      clockOffset.offsetMs += byMs
      simulation.tally('clock jump')
      simulation.note(`the clock of ${name} jumps by ${byMs} ms`)
    },
  }
  return instance
}
