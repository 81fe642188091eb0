// A process that can die: everything it awaits passes through its life, and once that is over nothing it waits for
// ever settles and nothing it scheduled ever runs. Its code simply stops at whatever await it was in.
// The next start is a new life with new state; only what it wrote elsewhere remains.
import type { Clock, Random } from '../base/clock.ts'
import { clockOf, type World } from './world.ts'

export interface Life {
  readonly alive: boolean
  /** Settles as `work` does, but only while this life lasts. Every pass is a point at which the process may die. */
  pass<T>(work: Promise<T>): Promise<T>
}

/** What a process is started with. */
export interface Env extends Life {
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
  start(): void
  crash(): void
  /** Crashes by chance at the points where it waits, with this probability each. */
  crashRate: number
}

export function createProcess(world: World, name: string, main: (env: Env) => void): SimProcess {
  const dice = world.dice(`process ${name}`)
  let life: { alive: boolean } = { alive: false }
  let starts = 0

  const process: SimProcess = {
    name,
    crashRate: 0,
    get alive() {
      return life.alive
    },
    get starts() {
      return starts
    },
    start() {
      if (life.alive) return
      const own = { alive: true }
      life = own
      starts++
      world.note(`${name} starts (${starts})`)
      const mayDie = () => {
        if (own.alive && dice() < process.crashRate) process.crash()
      }
      const schedule: World['schedule'] = (ms, run) => world.schedule(ms, () => own.alive && run())
      main({
        name,
        random: dice,
        clock: clockOf({ schedule, nowMs: () => world.nowMs }),
        signal: new AbortController().signal,
        get alive() {
          return own.alive
        },
        pass: (work) => {
          mayDie()
          return new Promise((resolve, reject) => {
            work.then(
              (value) => {
                mayDie()
                if (own.alive) resolve(value)
              },
              (error) => {
                mayDie()
                if (own.alive) reject(error)
              },
            )
          })
        },
      })
    },
    crash() {
      if (!life.alive) return
      life.alive = false
      world.note(`${name} crashes`)
    },
  }
  return process
}
