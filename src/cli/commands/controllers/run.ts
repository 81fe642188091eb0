// Runs `stowage controllers`: the controllers of `stowage up` in a separate process, against any API server.
import { parseFeatureGates } from '../../../api/feature-gates.ts'
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import { asUsageError, UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import {
  CONTROLLERS,
  CONTROLLERS_LEASE,
  type ControllerName,
  prepareControllers,
} from '../../../processes/controllers.ts'
import { type RemoteFlags, runRemote } from '../../../processes/run-remote.ts'
import type { ProcessDeps } from '../../../runtime/index.ts'
import { type ChangeThrottleFlags, parseChangeThrottle } from '../../flags/change-throttle.ts'
import { parseDurationFlag, parseLostVolumePolicyFlag } from '../../flags/common.ts'
import { type LeaseFlags, parseLeaseTimes } from '../../flags/lease-times.ts'

export interface RemoteControllersFlags extends RemoteFlags, LeaseFlags, ChangeThrottleFlags {
  /** Comma-separated controller names. */
  readonly controllers?: string
  /** Name of the lease. Processes with different controllers or drivers need different ones. */
  readonly leaderElectionName?: string
  readonly driverSocket?: readonly string[]
  readonly featureGates?: string
  readonly capacityGoneFor?: string
  readonly lostVolumePolicy?: string
}

export async function runRemoteControllers(flags: RemoteControllersFlags, deps: ProcessDeps): Promise<void> {
  const names = parseControllers(flags.controllers)
  const gates = asUsageError(() => parseFeatureGates(flags.featureGates), '--feature-gates')
  const drivers = [...new Set(flags.driverSocket)].map((address) => ({ address }))
  const options = {
    names,
    gates,
    throttle: parseChangeThrottle(flags),
    rootCa: names.includes('root-ca') ? (await loadClientConfig(flags.kubeconfig, deps)).connection.ca : undefined,
    inProcessProvisioners: [],
    drivers,
    lostVolumePolicy: parseLostVolumePolicyFlag(flags.lostVolumePolicy),
    capacityMissingForMs:
      flags.capacityGoneFor === undefined ? undefined : parseDurationFlag('--capacity-gone-for', flags.capacityGoneFor),
  }
  await runRemote(
    {
      userAgent: CONTROLLERS_LEASE,
      components: drivers.length > 0 ? [...names, 'provisioner', 'resizer', 'attacher'] : names,
      leases: [parseLeaseName(flags.leaderElectionName)],
      leaseTimes: parseLeaseTimes(flags),
      logFields: { controllers: names },
      prepare: (registry) => prepareControllers(options, registry),
    },
    flags,
    deps,
  )
}

function parseLeaseName(name = CONTROLLERS_LEASE): string {
  const [problem] = dns1123SubdomainProblems(name)
  if (problem === undefined) return name
  throw new UsageError(`--leader-election-name ${JSON.stringify(name)}: ${problem}`)
}

/** auto-growing runs only in an API server process, because it needs the usage of volumes, which only the server has. */
type RemoteController = Exclude<ControllerName, 'auto-growing'>
const REMOTE_CONTROLLERS = CONTROLLERS.filter((name): name is RemoteController => name !== 'auto-growing')
/** The scheduler is off by default, because most clusters already have one. */
const DEFAULT_CONTROLLERS = REMOTE_CONTROLLERS.filter((name) => name !== 'scheduler')

export function parseControllers(text = DEFAULT_CONTROLLERS.join(',')): RemoteController[] {
  const names = text.split(',').map((name) => name.trim())
  const unknownName = names.find((name) => !REMOTE_CONTROLLERS.some((controller) => controller === name))
  if (unknownName === undefined) return [...new Set(names as RemoteController[])]
  throw new UsageError(
    `--controllers ${JSON.stringify(unknownName)}: expected one or more of ${REMOTE_CONTROLLERS.join(', ')}, separated by commas`,
  )
}
