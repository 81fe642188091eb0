// Finds the leaks of one driver that has a socket on this machine, for the web console.
import { setMaxListeners } from 'node:events'
import type { Client } from '../../../client/index.ts'
import { type FindDeps, findLeaks, type LeakReport } from './find-leaks.ts'
import { openDrivers } from './open-drivers.ts'

/** The default of `stowage leaks --grace-period`. */
const GRACE_PERIOD_MS = 120_000

export async function findDriverLeaks(
  client: Pick<Client, 'list'>,
  { driver, dataDir }: { readonly driver: string; readonly dataDir: string },
  { clock, signal }: Pick<FindDeps, 'clock' | 'signal'>,
): Promise<LeakReport> {
  setMaxListeners(0, signal) // every list and call adds a listener
  const drivers = await openDrivers({ driver, addresses: [], dataDir }, { clock, signal })
  try {
    const options = { gracePeriodMs: GRACE_PERIOD_MS, namedHandles: new Set<string>() }
    const { report } = await findLeaks({ client, processes: drivers.processes, clock, signal }, options)
    return { ...report, unknown: [...report.unknown, ...drivers.problems] }
  } finally {
    drivers.close()
  }
}
