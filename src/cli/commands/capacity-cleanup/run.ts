// `stowage capacity-cleanup`: removes capacity objects that nobody keeps any more, of nodes whose driver is gone. Beside
// drivers that run a producer on every node, for none of those touches what another has left behind.

import { parseDuration } from '../../../base/duration.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { createCapacityCleaner } from '../../../controllers/capacity/index.ts'
import { type RemoteFlags, runRemote } from '../../../processes/run-remote.ts'
import type { ProcessDeps, TermDeps } from '../../../runtime/index.ts'
import { type LeaseFlags, parseLeaseDuration } from '../../flags/lease-duration.ts'

export interface CapacityCleanupFlags extends RemoteFlags, LeaseFlags {
  readonly driverName?: readonly string[]
  readonly namespace?: string
  readonly goneFor?: string
}

/** Held by the one that works. */
const CLEANUP_LEASE = 'stowage-capacity-cleanup'
const GONE_FOR = '10m'

export async function runCapacityCleanup(flags: CapacityCleanupFlags, deps: ProcessDeps): Promise<void> {
  const settings = parseCapacityCleanupFlags(flags)
  const about = { drivers: settings.drivers ?? 'all', goneForMs: settings.goneForMs }
  const prepare = () => (given: TermDeps) => [createCapacityCleaner({ ...given, ...settings })]
  await runRemote(
    { lease: CLEANUP_LEASE, leaseTimes: parseLeaseDuration(flags.leaderElectionLeaseDuration), about, prepare },
    flags,
    deps,
  )
}

/** As CSI has names of drivers; also what a label may hold. */
const DRIVER_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/

export function parseCapacityCleanupFlags(flags: Partial<CapacityCleanupFlags>) {
  const { driverName: drivers, namespace, goneFor = GONE_FOR } = flags
  for (const name of drivers ?? []) {
    if (!DRIVER_NAME.test(name)) {
      throw new UsageError(`--driver-name ${JSON.stringify(name)}: expected a name such as hostpath.csi.k8s.io`)
    }
  }
  const goneForMs = parseDuration(goneFor)
  if (goneForMs === undefined) {
    throw new UsageError(`--gone-for ${JSON.stringify(goneFor)}: expected a duration such as 90s, 10m or 1h`)
  }
  return { ...(drivers ? { drivers } : {}), ...(namespace ? { namespace } : {}), goneForMs }
}
