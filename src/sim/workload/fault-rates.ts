// Generates the fault rates of a plan. For about a sixth of the seeds all rates are zero, and only planned faults occur.

import type { DriverFaults } from '../environment/driver.ts'
import type { NetworkFaults } from '../environment/network.ts'
import { DRIVERS } from '../plan/catalog.ts'
import type { FaultRates, Setup } from '../plan/plan.ts'
import { processesOf } from '../plan/process-names.ts'
import type { Rng } from './rng.ts'

const NO_FAULT_RATES: FaultRates = { network: {}, diskErrors: 0, drivers: {}, crashes: {} }

/** `severity` multiplies every probability. */
export function generateFaultRates(rng: Rng, setup: Setup, severity = 1): FaultRates {
  const kind = rng.below(6)
  if (kind === 0) return NO_FAULT_RATES
  const hasAll = kind === 5
  const isIncluded = () => hasAll || rng.chance(0.5)
  return {
    network: isIncluded() ? generateNetworkFaults(rng, severity) : {},
    diskErrors: isIncluded() ? round(rng.fraction() * 0.01 * severity) : 0,
    drivers: Object.fromEntries(DRIVERS.filter(isIncluded).map((name) => [name, generateDriverFaults(rng, severity)])),
    crashes: Object.fromEntries(
      processesOf(setup)
        .filter(() => rng.chance(hasAll ? 0.8 : 0.25))
        .map((name) => [name, round(1e-4 * 10 ** rng.fraction() * severity)]),
    ),
  }
}

const generateNetworkFaults = (rng: Rng, severity: number): Partial<NetworkFaults> => ({
  latencyMs: rng.between(1, 150),
  loseRequest: round(rng.fraction() * 0.015 * severity),
  loseReply: round(rng.fraction() * 0.02 * severity),
  duplicate: round(rng.fraction() * 0.02 * severity),
  refuse: round(rng.fraction() * 0.02 * severity),
  breakWatch: round(rng.fraction() * 0.01 * severity),
  silenceWatch: round(rng.fraction() * 0.002 * severity),
})

const generateDriverFaults = (rng: Rng, severity: number): Partial<DriverFaults> => ({
  latencyMs: rng.between(1, 400),
  loseRequest: round(rng.fraction() * 0.03 * severity),
  loseReply: round(rng.fraction() * 0.06 * severity),
  refuse: round(rng.fraction() * 0.08 * severity),
  slow: round(rng.fraction() * 0.05 * severity),
  slowMs: 20_000,
})

/** Rounds a rate to two significant digits, which keeps timelines and saved regressions readable. */
const round = (rate: number): number => Number(rate.toPrecision(2))
