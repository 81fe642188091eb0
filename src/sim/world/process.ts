// A process that can die: everything it awaits passes through its incarnation, and once that is over nothing it waits for
// ever settles and nothing it scheduled ever runs. Its code simply stops at whatever await it was in.
// The next start is a new incarnation with new state; only what it wrote elsewhere remains.
import type { Clock, Random } from '../../base/clock.ts'
import { clockOf, type World } from './world.ts'

export interface Incarnation {
  readonly alive: boolean
  /** Settles as `work` does, but only while this incarnation lasts. Every pass is a point at which the process may die. */
  pass<T>(work: Promise<T>): Promise<T>
}

/** What a process is started with. */
export interface Env extends Incarnation {
  readonly name: string
  readonly clock: Clock
  readonly random: Random
  /** Fires on an orderly stop; a crash gives no warning. */
  readonly signal: AbortSignal
}

export interface SimProcess {
  readonly name: string
  readonly alive: boolean
  readonly starts: number
  /** It stands still: whatever it waits for, it does not know yet. */
  readonly isFrozen: boolean
  start(): void
  crash(): void
  /** Stops in the middle of whatever it does, and goes on after `ms` as if no time had passed. Its clock says otherwise. */
  freeze(ms: number): void
  /** Its clock is wrong by this much more from now on, over all its lives. */
  jumpClock(byMs: number): void
  /**
   * Its world is over. Signals that were made of this one's are held by the runtime until it fires, and all that listens
   * to them with it: a process that runs many worlds would keep them all.
   */
  dispose(): void
  /** Crashes by chance at the points where it waits, with this probability each. */
  crashRate: number
}

export function createProcess(world: World, name: string, main: (env: Env) => void): SimProcess {
  const random = world.random(`process ${name}`)
  let incarnation: { alive: boolean } = { alive: false }
  let starts = 0
  const wrong = { offsetMs: 0 }
  const stops: AbortController[] = []
  /** What would have gone on meanwhile, while it is frozen. */
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
      world.note(`${name} starts (${starts})`)
      const mayDie = () => {
        if (own.alive && random() < process.crashRate) process.crash()
      }
      const schedule: World['schedule'] = (ms, run) =>
        world.schedule(ms, () => own.alive && onceThawed(() => own.alive && run()))
      main({
        name,
        random: random,
        clock: clockOf({ schedule, nowMs: () => world.nowMs }, wrong),
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
      world.tally('crash')
      world.note(`${name} crashes`)
    },
    freeze(ms) {
      if (!incarnation.alive || held) return
      const own: (() => void)[] = []
      held = own
      world.tally('freeze')
      world.note(`${name} freezes`)
      world.schedule(ms, () => {
        if (held !== own) return // it died meanwhile
        held = undefined
        world.note(`${name} goes on`)
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
      world.tally('clock jump')
      world.note(`the clock of ${name} jumps by ${byMs} ms`)
    },
  }
  return process
}
