// How bad a day is: every seed rolls another one, each fault up to its worst. Scenarios say where theirs differ.
// What lets it end is cluster.heal and driver.heal.
import type { Random } from '../../base/clock.ts'
import type { Cluster } from '../cluster.ts'
import type { SimDriver } from '../driver.ts'
import type { SimProcess } from '../process.ts'

export interface Day {
  readonly dice: Random
  readonly cluster: Cluster
  readonly driver: SimDriver
  /** Those that can die at any await. */
  readonly mortals: readonly SimProcess[]
}

const MINUTE_MS = 60_000

export const WORST_NETWORK = {
  latencyMs: 200,
  loseRequest: 0.05,
  loseReply: 0.05,
  duplicate: 0.05,
  refuse: 0.1,
  breakWatch: 0.05,
  silenceWatch: 0.01,
}
const WORST_DISK = 0.05
export const WORST_DRIVER = { latencyMs: 500, loseRequest: 0.1, loseReply: 0.2, refuse: 0.3, slow: 0.2 }
const SLOW_MS = 20_000
const WORST_DRIVER_CRASH_RATE = 0.01
const WORST_CRASH_RATE = 0.01

/** By fault, how bad it can get. One that is undefined stays as it is, and no dice are rolled for it. */
type WorstFaults = Readonly<Record<string, number | undefined>>

interface Worst {
  readonly network?: WorstFaults
  readonly disk?: number
  readonly driver?: WorstFaults
  readonly slowMs?: number
}

/** The network, the server's disk, and the driver's answers. */
export function beginBadDay({ dice, cluster, driver }: Day, worst: Worst = {}): void {
  Object.assign(cluster.network.faults, rolled(dice, worst.network ?? WORST_NETWORK))
  cluster.disk.faults.refuse = dice() * (worst.disk ?? WORST_DISK)
  Object.assign(driver.faults, rolled(dice, worst.driver ?? WORST_DRIVER), { slowMs: worst.slowMs ?? SLOW_MS })
}

/** From now on the driver and the processes die now and then; with `hangs`, a call of the driver may never end. */
export function beginDying({ dice, driver, mortals }: Day, { hangs = true } = {}): void {
  driver.process.crashRate = dice() * WORST_DRIVER_CRASH_RATE
  if (hangs && dice() < 0.3) driver.script.setRules([{ nth: 1 + Math.floor(dice() * 20), effect: { do: 'hang' } }])
  for (const process of mortals) process.crashRate = dice() * dice() * WORST_CRASH_RATE
}

/** Some time, in which the server and the driver may die, and who is dead may be started. */
export async function passSomeTime({ dice, cluster, driver }: Day, processes: readonly SimProcess[]): Promise<void> {
  await cluster.world.runFor(dice() * dice() * MINUTE_MS) // bursts and pauses
  if (dice() < 0.03) cluster.server.crash()
  if (dice() < 0.05) driver.process.crash()
  for (const process of [cluster.server, driver.process, ...processes]) if (dice() < 0.3) process.start()
}

/** How bad each fault is today. */
export function rolled(dice: Random, worst: WorstFaults): Record<string, number> {
  const today: Record<string, number> = {}
  for (const [fault, max] of Object.entries(worst)) {
    if (max !== undefined) today[fault] = (fault === 'latencyMs' ? 1 : 0) + dice() * max
  }
  return today
}

/** How often any of them died. */
export const crashesOf = (processes: readonly SimProcess[]): number =>
  processes.reduce((sum, { starts }) => sum + starts - 1, 0)

export function restart(process: SimProcess): void {
  process.crash()
  process.start()
}
