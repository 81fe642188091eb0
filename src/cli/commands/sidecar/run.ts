// Runs `stowage sidecar`: the controllers of a CSI driver in one process, with shared caches. flags.ts has the flags,
// processes/run-sidecar.ts runs the process, replace-containers.ts rewrites the manifests for --print-replacement.
import { text as readText } from 'node:stream/consumers'
import { createCapacityMetrics } from '../../../controllers/capacity/index.ts'
import { createModifyingMetrics } from '../../../controllers/modifying/index.ts'
import { createProvisioningMetrics } from '../../../controllers/provisioning/index.ts'
import { createVolumeHealthMetrics } from '../../../controllers/volume-health/index.ts'
import type { DriverFacts } from '../../../csi/index.ts'
import type { DriverMetrics, DriverParts } from '../../../processes/driver-controllers.ts'
import {
  attacherLease,
  healthMonitorLease,
  provisionerLease,
  resizerLease,
  sidecarLease,
} from '../../../processes/lease-names.ts'
import { runSidecar, type SidecarLeases, type SidecarRun } from '../../../processes/run-sidecar.ts'
import { checkCanPublishCapacity, checkEnvironment, provisionerParts, releaseIntents } from '../provisioner/run.ts'
import { resizerParts } from '../resizer/run.ts'
import type { SidecarController } from './parse-controllers.ts'
import { replaceContainers } from './replace-containers.ts'
import { selectControllers } from './select-controllers.ts'
import type { StowageSidecarSettings } from './settings.ts'

export async function runStowageSidecar(run: SidecarRun<StowageSidecarSettings>): Promise<void> {
  const { settings, env, log } = run
  const { provisioner } = settings
  if (settings.printReplacement) {
    run.write(replaceContainers(await readText(process.stdin), settings.image))
    return
  }
  checkEnvironment(provisioner, env)
  await runSidecar(run, {
    userAgent: 'stowage-sidecar',
    components: ['provisioner', 'resizer', 'attacher', 'health-monitor'],
    createMetrics: (registry): DriverMetrics => ({
      provisioning: createProvisioningMetrics(registry),
      capacity: createCapacityMetrics(registry),
      modifying: createModifyingMetrics(registry),
      volumeHealth: createVolumeHealthMetrics(registry),
    }),
    leasesOf: ({ facts }) => leasesOf(settings, facts),
    partsFor(driver, { unlimitedClient }) {
      const { facts } = driver
      checkCanPublishCapacity(facts, provisioner)
      const selectedControllers = selectControllers(settings.controllers, facts)
      const unsupportedControllers = [...settings.controllers.enabledNames].filter(
        (name) => !selectedControllers.has(name),
      )
      log.info(
        { driver: facts.name, controllers: [...selectedControllers], unsupported: unsupportedControllers },
        'controllers selected',
      )
      return selectParts(selectedControllers, settings, provisionerParts(provisioner, { driver, env, unlimitedClient }))
    },
    runOnce: provisioner.release
      ? ({ facts }, client) => releaseIntents(facts.name, client, { ...run, settings: provisioner })
      : undefined,
  })
}

function selectParts(
  selectedControllers: ReadonlySet<SidecarController>,
  { resizer, attacher, healthMonitor }: StowageSidecarSettings,
  { provisioning, sourceProtection, ...parts }: DriverParts,
): DriverParts {
  const [isExpansionEnabled, isModificationEnabled] = [
    selectedControllers.has('resizer'),
    selectedControllers.has('modifier'),
  ]
  const { volumeChanges } = resizerParts(resizer)
  return {
    ...parts,
    ...(selectedControllers.has('provisioner') ? { provisioning, sourceProtection } : {}),
    ...(isExpansionEnabled || isModificationEnabled
      ? { volumeChanges: { ...volumeChanges, isExpansionEnabled, isModificationEnabled } }
      : {}),
    ...(selectedControllers.has('attacher') ? { attaching: attacher } : {}),
    ...(selectedControllers.has('health-monitor') ? { volumeHealth: healthMonitor } : {}),
  }
}

/** Returns the sidecar's lease and the upstream leases of the programs whose work it does, sorted as holdAll requires. */
function leasesOf(settings: StowageSidecarSettings, facts: DriverFacts): SidecarLeases {
  const selectedControllers = selectControllers(settings.controllers, facts)
  const { name: driver } = facts
  const upstreamNames = [
    ...(selectedControllers.has('provisioner') || settings.provisioner.capacity ? [provisionerLease(driver)] : []),
    ...(selectedControllers.has('resizer') || selectedControllers.has('modifier') ? [resizerLease(driver)] : []),
    ...(selectedControllers.has('attacher') ? [attacherLease(driver)] : []),
    ...(selectedControllers.has('health-monitor') ? [healthMonitorLease(driver)] : []),
  ].sort()
  const name = sidecarLease(driver)
  return settings.holdUpstreamLeases ? { name, additionalNames: upstreamNames } : { name, foreignNames: upstreamNames }
}
