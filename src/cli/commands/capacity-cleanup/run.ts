// Runs `stowage capacity-cleanup`: deletes the CSIStorageCapacity objects of nodes that no longer run the driver. The command is
// needed if a provisioner runs on every node, because none of them deletes the objects of another node.
import { UsageError } from '../../../base/usage-error.ts'
import { type CapacityCleanerDeps, createCapacityCleaner } from '../../../controllers/capacity/index.ts'
import { type RemoteFlags, runRemote } from '../../../processes/run-remote.ts'
import type { ProcessDeps, TermDeps } from '../../../runtime/index.ts'
import { parseDurationFlag } from '../../flags/common.ts'
import { type LeaseFlags, parseLeaseTimes } from '../../flags/lease-times.ts'

export interface CapacityCleanupFlags extends RemoteFlags, LeaseFlags {
  readonly driverName?: readonly string[]
  readonly namespace?: string
  readonly goneFor?: string
}

const CLEANUP_LEASE = 'stowage-capacity-cleanup'
const DEFAULT_GONE_FOR = '10m'

export async function runCapacityCleanup(flags: CapacityCleanupFlags, deps: ProcessDeps): Promise<void> {
  const settings = parseCapacityCleanupFlags(flags)
  const logFields = { drivers: settings.drivers ?? 'all', goneForMs: settings.missingForMs }
  const prepare = () => (termDeps: TermDeps) => [createCapacityCleaner({ ...termDeps, ...settings })]
  await runRemote(
    {
      userAgent: CLEANUP_LEASE,
      components: ['capacity-cleanup'],
      leases: [CLEANUP_LEASE],
      leaseTimes: parseLeaseTimes(flags),
      logFields,
      prepare,
    },
    flags,
    deps,
  )
}

/** The syntax of label values, which includes all names of CSI drivers. */
const DRIVER_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/

export function parseCapacityCleanupFlags(
  flags: Partial<CapacityCleanupFlags>,
): Pick<CapacityCleanerDeps, 'drivers' | 'namespace' | 'missingForMs'> {
  const { driverName: drivers, namespace, goneFor = DEFAULT_GONE_FOR } = flags
  for (const name of drivers ?? []) {
    if (!DRIVER_NAME.test(name)) {
      throw new UsageError(`--driver-name ${JSON.stringify(name)}: expected a name such as hostpath.csi.k8s.io`)
    }
  }
  return { drivers, namespace: namespace || undefined, missingForMs: parseDurationFlag('--gone-for', goneFor) }
}
