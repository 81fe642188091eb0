// A process that can crash. Everything it awaits passes through its incarnation; after a crash none of these promises
// settles and nothing it scheduled runs, so its code stops at the await it was in. The next start is a new incarnation
// with new state.
import type { Clock, Random } from '../../base/clock.ts'
import { clockOf, type Simulation } from './simulation.ts'

export interface Incarnation {
  readonly alive: boolean
  /** Settles as `work` does while this incarnation lasts. The process may crash at every call. */
  pass<T>(work: Promise<T>): Promise<T>
}

/** What a process is started with. */
export interface Env extends Incarnation {
  readonly name: string
  readonly clock: Clock
  readonly random: Random
  /** Fires on an orderly stop; a crash does not fire it. */
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
  /** Shifts the clock of this and all later incarnations. */
  jumpClock(byMs: number): void
  /**
   * Ends the process with its simulation. The runtime keeps signals derived from this one's until it fires, with all their
   * listeners: without this, a process that runs many worlds would keep them all.
   */
  dispose(): void
  /** Probability of a crash at each await. */
  crashRate: number
}

export function createProcess(simulation: Simulation, name: string, main: (env: Env) => void): SimProcess {
  const random = simulation.random(`process ${name}`)
  let incarnation: { alive: boolean } = { alive: false }
  let starts = 0
  const wrong = { offsetMs: 0 }
  const stops: AbortController[] = []
  /** Continuations that wait for the end of a freeze. */
  let held: (() => void)[] | undefined
  const onceThawed = (run: () => void): void => {
    if (held) held.push(run)
    else run()
  }

  const process: SimProcess = {
    name,
    crashRate: 0,
    get alive() {
      return incarnation.alive
    },
    get starts() {
      return starts
    },
    get isFrozen() {
      return held !== undefined
    },
    start() {
      if (incarnation.alive) return
      const own = { alive: true }
      incarnation = own
      const stop = new AbortController()
      stops.push(stop)
      held = undefined
      starts++
      simulation.note(`${name} starts (${starts})`)
      const mayDie = () => {
        if (own.alive && random() < process.crashRate) process.crash()
      }
      const schedule: Simulation['schedule'] = (ms, run) =>
        simulation.schedule(ms, () => own.alive && onceThawed(() => own.alive && run()))
      main({
        name,
        random: random,
        clock: clockOf({ schedule, nowMs: () => simulation.nowMs }, wrong),
        signal: stop.signal,
        get alive() {
          return own.alive
        },
        pass: (work) => {
          mayDie()
          return new Promise((resolve, reject) => {
            work.then(
              (value) => {
                mayDie()
                if (own.alive) onceThawed(() => own.alive && resolve(value))
              },
              (error) => {
                mayDie()
                if (own.alive) onceThawed(() => own.alive && reject(error))
              },
            )
          })
        },
      })
    },
    crash() {
      if (!incarnation.alive) return
      incarnation.alive = false
      held = undefined
      simulation.tally('crash')
      simulation.note(`${name} crashes`)
    },
    freeze(ms) {
      if (!incarnation.alive || held) return
      const own: (() => void)[] = []
      held = own
      simulation.tally('freeze')
      simulation.note(`${name} freezes`)
      simulation.schedule(ms, () => {
        if (held !== own) return // the process crashed meanwhile
        held = undefined
        simulation.note(`${name} goes on`)
        for (const run of own) run()
      })
    },
    dispose() {
      incarnation.alive = false
      held = undefined
      for (const stop of stops.splice(0)) stop.abort()
    },
    jumpClock(byMs) {
      wrong.offsetMs += byMs
      simulation.tally('clock jump')
      simulation.note(`the clock of ${name} jumps by ${byMs} ms`)
    },
  }
  return process
}
