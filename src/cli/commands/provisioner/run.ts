// Runs `stowage provisioner`: provisions and deletes the volumes of a CSI driver. The process around it is
// processes/run-sidecar.ts; its flags are provisioner-flags.ts.
import { hostname } from 'node:os'
import { UsageError } from '../../../base/usage-error.ts'
import type { Client } from '../../../client/index.ts'
import { createCapacityMetrics } from '../../../controllers/capacity/index.ts'
import { createProvisioningMetrics } from '../../../controllers/provisioning/index.ts'
import type { DriverMetrics, DriverParts } from '../../../processes/driver-controllers.ts'
import type { MetDriver } from '../../../processes/meet-driver.ts'
import { runSidecar, type SidecarRun } from '../../../processes/run-sidecar.ts'
import { readSecretDir } from '../../../processes/secret-dir.ts'
import type { ProcessDeps } from '../../../runtime/index.ts'
import type { ProvisionerSettings } from './command.ts'

export async function runProvisioner(run: SidecarRun<ProvisionerSettings>): Promise<void> {
  const { settings, env } = run
  if (settings.provisionerSecretDir) readSecretDir(settings.provisionerSecretDir) // an unreadable one fails at the start
  await runSidecar(run, {
    userAgent: 'stowage-provisioner',
    createMetrics: (registry): DriverMetrics => ({
      provisioning: createProvisioningMetrics(registry),
      capacity: createCapacityMetrics(registry),
    }),
    leaseName: ({ facts }) => facts.name.replaceAll('/', '-'),
    partsFor(met, { unlimited }) {
      checkCanProvision(met, settings)
      return provisionerParts(settings, { met, env, unlimited })
    },
  })
}

function checkCanProvision({ facts }: MetDriver, { csiAddress, capacity }: ProvisionerSettings): void {
  if (!facts.controller.has('CREATE_DELETE_VOLUME')) {
    throw new Error(
      `The CSI driver ${facts.name} at ${csiAddress} cannot create volumes: it does not report the controller capability ` +
        'CREATE_DELETE_VOLUME. Run no provisioner beside it.',
    )
  }
  if (capacity && !facts.controller.has('GET_CAPACITY')) {
    throw new Error(`--enable-capacity: the CSI driver ${facts.name} does not report the capability GET_CAPACITY.`)
  }
}

interface PartsDeps extends Pick<ProcessDeps, 'env'> {
  readonly met: MetDriver
  readonly unlimited: Client
}

export function provisionerParts(settings: ProvisionerSettings, { met, env, unlimited }: PartsDeps): DriverParts {
  const { provisionerSecretDir: dir, retryIntervalStart: retryIntervalStartMs, timeout: timeoutMs } = settings
  const { retryIntervalMax: retryIntervalMaxMs } = settings
  return {
    instance: hostname(),
    provisioning: {
      workers: settings.workerThreads,
      volumeNamePrefix: settings.volumeNamePrefix,
      volumeNameUuidLength: settings.volumeNameUuidLength,
      retryIntervalStartMs,
      retryIntervalMaxMs,
      csi: {
        timeoutMs,
        strictTopology: settings.strictTopology,
        immediateTopology: settings.immediateTopology,
        extraCreateMetadata: settings.extraCreateMetadata,
        defaultFsType: settings.defaultFstype,
        controllerPublishReadOnly: settings.controllerPublishReadonly,
        preventVolumeModeConversion: settings.preventVolumeModeConversion,
        credentials: dir ? () => readSecretDir(dir) : undefined,
      },
      nodeRace: met.node && {
        immediateBinding: settings.nodeDeploymentImmediateBinding,
        baseDelayMs: settings.nodeDeploymentBaseDelay,
        maxDelayMs: settings.nodeDeploymentMaxDelay,
      },
    },
    sourceProtection: {
      workers: settings.cloningProtectionThreads,
      sweepIntervalMs: settings.snapshotOrphanSweepInterval,
    },
    capacity: settings.capacity && {
      client: unlimited,
      ...capacityOwner(settings, env),
      workers: settings.capacityThreads,
      pollIntervalMs: settings.capacityPollInterval,
      immediateBinding: settings.capacityForImmediateBinding,
      timeoutMs,
      retryIntervalStartMs,
      retryIntervalMaxMs,
      writes: writeLimit(settings),
    },
  }
}

function capacityOwner({ capacityOwnerrefLevel: level }: ProvisionerSettings, env: ProcessDeps['env']) {
  const { POD_NAME: podName, NAMESPACE: namespace } = env
  if (!namespace) throw new UsageError('--enable-capacity: set $NAMESPACE to the namespace of this pod.')
  if (level < 0) return { namespace }
  if (podName) return { namespace, owner: { podName, level } }
  throw new UsageError('--enable-capacity: set $POD_NAME, or --capacity-ownerref-level=-1 for objects without owner.')
}

const writeLimit = ({ kubeApiCapacityQps: perSecond, kubeApiCapacityBurst: burst }: ProvisionerSettings) =>
  perSecond === -1 ? undefined : { perSecond, burst }
