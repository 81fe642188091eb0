// Runs `stowage scheduler`: the scheduler of `stowage up` in a separate process, against any API server. It does not
// include the ephemeral volume controller.
import { parseFeatureGates } from '../../../api/feature-gates.ts'
import { asUsageError, UsageError } from '../../../base/usage-error.ts'
import { schedulerLeases } from '../../../processes/lease-names.ts'
import { type RemoteFlags, runRemote } from '../../../processes/run-remote.ts'
import type { ProcessDeps } from '../../../runtime/index.ts'
import { createScheduler, createSchedulerMetrics, SCHEDULER_NAMES } from '../../../scheduler/index.ts'
import { parsePlacementFlag } from '../../flags/common.ts'
import { type LeaseFlags, parseLeaseTimes } from '../../flags/lease-times.ts'

export interface SchedulerFlags extends RemoteFlags, LeaseFlags {
  /** Scheduler names, separated by commas. */
  readonly schedulerNames?: string
  readonly capacityReservation?: string
  readonly placement?: string
  readonly bindTimeoutSeconds?: string
  readonly featureGates?: string
}

export async function runScheduler(flags: SchedulerFlags, deps: ProcessDeps): Promise<void> {
  const settings = parseSchedulerFlags(flags)
  await runRemote(
    {
      userAgent: 'stowage-scheduler',
      components: ['scheduler'],
      leases: schedulerLeases(settings.schedulerNames),
      leaseTimes: parseLeaseTimes(flags),
      logFields: { schedulers: settings.schedulerNames },
      prepare(registry) {
        const schedulerMetrics = createSchedulerMetrics(registry)
        return (deps) => [createScheduler({ ...deps, schedulerMetrics, ...settings })]
      },
    },
    flags,
    deps,
  )
}

export function parseSchedulerFlags(flags: Partial<SchedulerFlags>) {
  const { capacityReservation = 'on', bindTimeoutSeconds = '600', featureGates = '' } = flags
  const names = (flags.schedulerNames ?? SCHEDULER_NAMES.join(',')).split(',').map((name) => name.trim())
  if (names.some((name) => name === '')) {
    throw new UsageError(
      `--scheduler-names ${JSON.stringify(flags.schedulerNames)}: expected names separated by commas`,
    )
  }
  if (capacityReservation !== 'on' && capacityReservation !== 'off') {
    throw new UsageError(`--capacity-reservation ${JSON.stringify(capacityReservation)}: expected on or off`)
  }
  const seconds = Number(bindTimeoutSeconds)
  if (!(Number.isInteger(seconds) && seconds >= 0) || bindTimeoutSeconds.trim() === '') {
    throw new UsageError(
      `--bind-timeout-seconds ${JSON.stringify(bindTimeoutSeconds)}: expected a whole number, 0 or more`,
    )
  }
  return {
    schedulerNames: names,
    reservesCapacity: capacityReservation === 'on',
    defaultPlacement: parsePlacementFlag(flags.placement),
    bindTimeoutMs: seconds * 1_000,
    gates: asUsageError(() => parseFeatureGates(featureGates), '--feature-gates'),
  }
}
