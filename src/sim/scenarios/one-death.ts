// One death at one moment of a world in which nothing else goes wrong: right before or right after one effect
// (../effects.ts) one process dies, to be started again a while later. In the end everything is as it would have been.
import type { Client } from '../../client/index.ts'
import { type Court, createCourt } from '../checkers/conviction.ts'
import type { Cluster } from '../cluster.ts'
import type { SimDriver } from '../driver.ts'
import { createEffects, type Effect, type Effects } from '../effects.ts'
import { oneByOne } from '../one-by-one.ts'
import type { SimProcess } from '../process.ts'
import type { World } from '../world.ts'

export const VICTIMS = ['process', 'server', 'driver'] as const
export const MODES = ['transactions', 'one by one'] as const
export type Mode = (typeof MODES)[number]

export interface CrashPoint {
  readonly effect: number
  readonly when: 'before' | 'after'
  /** `process`: the one whose effect it is. */
  readonly victim: (typeof VICTIMS)[number]
}

export interface Crash {
  readonly at: CrashPoint
  /** How it ends without a death. */
  readonly expected: string
}

export interface CrashRun {
  /** In readable words, in order. */
  readonly effects: readonly string[]
  /** Everything that is left, without what differs from run to run. */
  readonly end: string
  readonly steps: number
}

const DOWN_MS = 3_000
/** What is as it should be must stay so. */
const STAYS_MS = 10_000
/** How soon a user looks again whether it is time for the next step. */
export const LOOK_MS = 50

export const crashPointText = (mode: Mode, { effect, when, victim }: CrashPoint): string =>
  `${mode}, ${effect} ${when} ${victim}`

export const courtOf = (world: World, mode: Mode, at: CrashPoint | undefined): Court =>
  createCourt(world, at ? `CRASH_POINT='${crashPointText(mode, at)}'` : mode)

export const inModeOf = (mode: Mode): ((client: Client) => Client) =>
  mode === 'transactions' ? (client) => client : oneByOne

export interface Stage {
  readonly world: World
  readonly cluster: Cluster
  readonly driver: SimDriver
  /** By name. */
  readonly processes: Readonly<Record<string, SimProcess>>
}

/** Effects that are counted, and at one of which somebody dies. */
export function deadlyEffects({ world, cluster, driver, processes }: Stage, at: CrashPoint | undefined): Effects {
  return createEffects(
    {
      before: (effect) => isStruck(effect, 'before') && void kill(effect),
      after: (effect) => (isStruck(effect, 'after') ? kill(effect) : 'answered'),
    },
    ({ number, by, what }) => world.note(`${number} ${by}: ${what}`),
  )

  function isStruck({ number }: Effect, when: CrashPoint['when']): boolean {
    return at?.effect === number && at.when === when
  }

  /** An answer that the victim had yet to send is lost. */
  function kill({ by, on }: Effect): 'answered' | 'answer lost' {
    const { victim } = at!
    const process = { process: processes[by]!, server: cluster.server, driver: driver.process }[victim]
    process.crash()
    world.schedule(DOWN_MS, () => process.start())
    return victim === on ? 'answer lost' : 'answered'
  }
}

export interface Ending {
  readonly court: Court
  /** How it ends without a death; undefined: this is that run. */
  readonly expected: string | undefined
  /** All that there is now. */
  end(): string
  /** Whether all users have done all they wanted. */
  isTold(): boolean
  /** A number that is another one after every change. */
  changed(): number
  /** Whether anything else is still to come. */
  isDone?(): boolean
  /** What nobody could do, if it never came to the end. */
  untold?(): string[]
  readonly endMsMax: number
  /** Without anything to compare with: long enough for everything to end. */
  readonly undisturbedMs: number
}

/** Waits for the end, and convicts one that is not as expected, or does not stay. */
export async function untilTheEnd(world: World, ending: Ending): Promise<void> {
  const { court, expected, end, isTold, isDone = () => true, endMsMax: withinMs } = ending
  if (expected === undefined) {
    await world.runUntil(isTold, { withinMs, waitingFor: 'the end of the stories' })
    return world.runFor(ending.undisturbedMs)
  }
  let looked = -1
  const isAsExpected = () => {
    const seen = ending.changed()
    if (seen === looked || !isTold()) return false
    looked = seen
    return end() === expected && isDone()
  }
  try {
    await world.runUntil(isAsExpected, { withinMs, waitingFor: 'the end that was expected' })
  } catch (error) {
    const untold = ending.untold?.() ?? []
    if (untold.length > 0) court.convict(`nobody could ask for ${untold.join(', ')}`)
    court.convict(`it ends with\n${end()}\ninstead of\n${expected}\n(${(error as Error).message.split('\n')[0]})`)
  }
  await world.runFor(STAYS_MS)
  if (end() !== expected) court.convict(`it does not stay as it should be:\n${end()}`)
}
