// Runs `stowage controllers`: the controllers of `stowage up` in a separate process, against any API server.
import { parseFeatureGates } from '../../../api/feature-gates.ts'
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import { asUsageError, UsageError } from '../../../base/usage-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { createTransport } from '../../../client/http/transport.ts'
import {
  CONTROLLERS,
  CONTROLLERS_LEASE,
  type ControllerName,
  prepareControllers,
} from '../../../processes/controllers.ts'
import { createRemoteUsageReader } from '../../../processes/remote-usage.ts'
import { type RemoteFlags, runRemote } from '../../../processes/run-remote.ts'
import type { ProcessDeps } from '../../../runtime/index.ts'
import { type ChangeThrottleFlags, parseChangeThrottle } from '../../flags/change-throttle.ts'
import { parseDurationFlag, parseLostVolumePolicyFlag, parseNodeMonitorGrace } from '../../flags/common.ts'
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
  readonly nodeMonitorGracePeriod?: string
}

export async function runRemoteControllers(flags: RemoteControllersFlags, deps: ProcessDeps): Promise<void> {
  const names = parseControllers(flags.controllers)
  const gates = asUsageError(() => parseFeatureGates(flags.featureGates), '--feature-gates')
  const drivers = [...new Set(flags.driverSocket)].map((address) => ({ address }))
  const config = await loadClientConfig(flags.kubeconfig, deps)
  const connection = { ...config.connection, ...(flags.server ? { server: flags.server } : {}) }
  const transport = names.includes('auto-growing')
    ? createTransport({ connection, clock: deps.clock, timeoutMs: USAGE_TIMEOUT_MS, userAgent: CONTROLLERS_LEASE })
    : undefined
  const options = {
    names,
    gates,
    readUsage: transport && createRemoteUsageReader({ ...deps, transport }),
    throttle: parseChangeThrottle(flags),
    rootCa: names.includes('root-ca') ? config.connection.ca : undefined,
    inProcessProvisioners: [],
    drivers,
    lostVolumePolicy: parseLostVolumePolicyFlag(flags.lostVolumePolicy),
    nodeMonitorGraceMs: parseNodeMonitorGrace(flags.nodeMonitorGracePeriod),
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
  ).finally(() => transport?.close())
}

/** Limits the time for which a node that does not respond delays the usage of others. */
const USAGE_TIMEOUT_MS = 10_000

function parseLeaseName(name = CONTROLLERS_LEASE): string {
  const [problem] = dns1123SubdomainProblems(name)
  if (problem === undefined) return name
  throw new UsageError(`--leader-election-name ${JSON.stringify(name)}: ${problem}`)
}

/**
 * The scheduler is off by default, because most clusters already have one, and auto-growing, because an API server of Stowage
 * runs it and it needs more permissions on others.
 */
const DEFAULT_CONTROLLERS = CONTROLLERS.filter((name) => name !== 'scheduler' && name !== 'auto-growing')

export function parseControllers(text = DEFAULT_CONTROLLERS.join(',')): ControllerName[] {
  const names = text.split(',').map((name) => name.trim())
  const unknownName = names.find((name) => !CONTROLLERS.some((controller) => controller === name))
  if (unknownName === undefined) return [...new Set(names as ControllerName[])]
  throw new UsageError(
    `--controllers ${JSON.stringify(unknownName)}: expected one or more of ${CONTROLLERS.join(', ')}, separated by commas`,
  )
}
