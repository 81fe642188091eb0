// Runs `stowage resizer`: expands the volumes of a CSI driver and modifies their attributes. command.ts has the flags,
// processes/run-sidecar.ts runs the process.
import { hostname } from 'node:os'
import { canExpand } from '../../../controllers/expanding/index.ts'
import { createModifyingMetrics } from '../../../controllers/modifying/index.ts'
import type { DriverFacts } from '../../../csi/index.ts'
import type { DriverMetrics, DriverParts } from '../../../processes/driver-controllers.ts'
import { resizerLease } from '../../../processes/lease-names.ts'
import { runSidecar, type SidecarRun } from '../../../processes/run-sidecar.ts'
import type { ResizerSettings } from './command.ts'

export async function runResizer(run: SidecarRun<ResizerSettings>): Promise<void> {
  await runSidecar(run, {
    userAgent: 'stowage-resizer',
    components: ['resizer'],
    createMetrics: (registry): DriverMetrics => ({ modifying: createModifyingMetrics(registry) }),
    leasesOf: ({ facts, node }) => ({ name: resizerLease(facts.name, node?.name) }),
    partsFor({ facts }) {
      checkCanChange(facts, run.settings.csiAddress)
      return resizerParts(run.settings)
    },
  })
}

export function checkCanChange(facts: DriverFacts, address: string): void {
  const driver = `The CSI driver ${facts.name} at ${address}`
  if (!facts.plugin.has('CONTROLLER_SERVICE')) {
    throw new Error(
      `${driver} does not report the capability CONTROLLER_SERVICE. Run the resizer with a driver that does.`,
    )
  }
  if (canExpand(facts) || facts.controller.has('MODIFY_VOLUME')) return
  throw new Error(
    `${driver} cannot change volumes: it reports the capability EXPAND_VOLUME neither for the controller nor for nodes, ` +
      'nor MODIFY_VOLUME. Do not run a resizer for it.',
  )
}

export function resizerParts(settings: ResizerSettings): DriverParts {
  const commonOptions = {
    timeoutMs: settings.timeout,
    slowRetryMs: settings.retryIntervalMax,
    handlesInUse: settings.handleVolumeInuseError,
  }
  return {
    instance: hostname(),
    volumeChanges: {
      workers: settings.workers,
      retryIntervalStartMs: settings.retryIntervalStart,
      retryIntervalMaxMs: settings.retryIntervalMax,
      throttle: settings.throttle,
      expanding: { ...commonOptions, checksCapacity: settings.checkCapacity },
      modifying: { ...commonOptions, extraModifyMetadata: settings.extraModifyMetadata },
    },
  }
}
