// What may go wrong at any moment of a plan. Every seed is another kind of day: some have a clear sky, so that what was
// planned to break stands alone, some have one kind of trouble, and some have all of it.

import type { DriverFaults } from '../driver.ts'
import type { NetworkFaults } from '../network.ts'
import type { Dice } from './dice.ts'
import type { Setup, Weather } from './plan.ts'
import { processesOf } from './processes.ts'
import { DRIVERS } from './universe.ts'

export const CLEAR_SKY: Weather = { network: {}, diskRefuses: 0, drivers: {}, crashes: {} }

export function makeWeather(dice: Dice, setup: Setup): Weather {
  const kind = dice.roll(6)
  if (kind === 0) return CLEAR_SKY
  const isStorm = kind === 5
  const has = () => isStorm || dice.chance(0.5)
  return {
    network: has() ? badNetwork(dice) : {},
    diskRefuses: has() ? rounded(dice.fraction() * 0.01) : 0,
    drivers: Object.fromEntries(DRIVERS.filter(has).map((name) => [name, badDriver(dice)])),
    crashes: Object.fromEntries(
      processesOf(setup)
        .filter(() => dice.chance(isStorm ? 0.8 : 0.25))
        .map((name) => [name, rounded(1e-4 * 10 ** dice.fraction())]),
    ),
  }
}

const badNetwork = (dice: Dice): Partial<NetworkFaults> => ({
  latencyMs: dice.between(1, 150),
  loseRequest: rounded(dice.fraction() * 0.015),
  loseReply: rounded(dice.fraction() * 0.02),
  duplicate: rounded(dice.fraction() * 0.02),
  refuse: rounded(dice.fraction() * 0.02),
  breakWatch: rounded(dice.fraction() * 0.01),
  silenceWatch: rounded(dice.fraction() * 0.002),
})

const badDriver = (dice: Dice): Partial<DriverFaults> => ({
  latencyMs: dice.between(1, 400),
  loseRequest: rounded(dice.fraction() * 0.03),
  loseReply: rounded(dice.fraction() * 0.06),
  refuse: rounded(dice.fraction() * 0.08),
  slow: rounded(dice.fraction() * 0.05),
  slowMs: 20_000,
})

/** Short enough to be read, and to be kept as a regression. */
const rounded = (share: number): number => Number(share.toPrecision(2))
