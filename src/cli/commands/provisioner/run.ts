// Runs `stowage provisioner`: provisions and deletes a CSI driver's volumes. command.ts has the flags,
// processes/run-sidecar.ts runs the process.
import { hostname } from 'node:os'
import { UsageError } from '../../../base/usage-error.ts'
import type { Client } from '../../../client/index.ts'
import { createCapacityMetrics } from '../../../controllers/capacity/index.ts'
import { createProvisioningMetrics, releaseClaims, volumeNameOf } from '../../../controllers/provisioning/index.ts'
import type { DriverFacts } from '../../../csi/index.ts'
import type { DiscoveredDriver } from '../../../processes/discover-driver.ts'
import type { DriverMetrics, DriverParts } from '../../../processes/driver-controllers.ts'
import { intentLease, provisionerLease } from '../../../processes/lease-names.ts'
import { resolveLeaseNamespace, runSidecar, type SidecarRun } from '../../../processes/run-sidecar.ts'
import { readSecretDir } from '../../../processes/secret-dir.ts'
import type { ProcessDeps } from '../../../runtime/index.ts'
import type { ProvisionerSettings } from './command.ts'

export async function runProvisioner(run: SidecarRun<ProvisionerSettings>): Promise<void> {
  const { settings, env } = run
  checkEnvironment(settings, env)
  await runSidecar(run, {
    userAgent: 'stowage-provisioner',
    components: ['provisioner'],
    createMetrics: (registry): DriverMetrics => ({
      provisioning: createProvisioningMetrics(registry),
      capacity: createCapacityMetrics(registry),
    }),
    leasesOf: ({ facts }) => ({ name: provisionerLease(facts.name) }),
    partsFor(driver, { unlimitedClient }) {
      checkCanProvision(driver, settings)
      return provisionerParts(settings, { driver, env, unlimitedClient })
    },
    runOnce: settings.release ? ({ facts }, client) => releaseIntents(facts.name, client, run) : undefined,
  })
}

/** Throws before the election if the environment is incomplete or the directory of credentials is unreadable. */
export function checkEnvironment(settings: ProvisionerSettings, env: ProcessDeps['env']): void {
  if (settings.capacity) capacityOwner(settings, env)
  if (settings.provisionerSecretDir) readSecretDir(settings.provisionerSecretDir)
}

export async function releaseIntents(
  driver: string,
  client: Client,
  run: SidecarRun<ProvisionerSettings>,
): Promise<void> {
  const { released, unreleased } = await releaseClaims(client, {
    provisionerName: driver,
    intentLease: { namespace: await resolveLeaseNamespace(run), name: intentLease(driver) },
    signal: run.signal,
  })
  run.write(`Removed the intents of Stowage for ${countClaims(released.length)} of ${driver}.\n`)
  if (unreleased.length === 0) return
  const nameOptions = {
    volumeNamePrefix: run.settings.volumeNamePrefix,
    volumeNameUuidLength: run.settings.volumeNameUuidLength,
  }
  const lines = unreleased.map(
    ({ key, uid, intent }) => `  ${key}: volume ${volumeNameOf(uid, nameOptions)}, ${intent}`,
  )
  throw new Error(
    `${countClaims(unreleased.length)} ${unreleased.length === 1 ? 'is' : 'are'} deleted, but volumes may still exist in the storage. Start the ` +
      'provisioner of Stowage again until it has deleted the volumes, or look for each volume in the storage, delete it, and remove the record that is listed with it:\n' +
      lines.join('\n'),
  )
}

function checkCanProvision({ facts }: DiscoveredDriver, settings: ProvisionerSettings): void {
  if (!facts.controller.has('CREATE_DELETE_VOLUME')) {
    throw new Error(
      `The CSI driver ${facts.name} at ${settings.csiAddress} cannot create volumes: it does not report the controller capability ` +
        'CREATE_DELETE_VOLUME. Do not run a provisioner for it.',
    )
  }
  checkCanPublishCapacity(facts, settings)
}

export function checkCanPublishCapacity(facts: DriverFacts, { capacity }: ProvisionerSettings): void {
  if (capacity && !facts.controller.has('GET_CAPACITY')) {
    throw new Error(
      `--enable-capacity: the CSI driver ${facts.name} does not report the capability GET_CAPACITY. Remove the flag.`,
    )
  }
}

interface PartsDeps extends Pick<ProcessDeps, 'env'> {
  readonly driver: DiscoveredDriver
  readonly unlimitedClient: Client
}

export function provisionerParts(
  settings: ProvisionerSettings,
  { driver, env, unlimitedClient }: PartsDeps,
): DriverParts {
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
      nodeRace: driver.node && {
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
      client: unlimitedClient,
      ...capacityOwner(settings, env),
      workers: settings.capacityThreads,
      pollIntervalMs: settings.capacityPollInterval,
      immediateBinding: settings.capacityForImmediateBinding,
      timeoutMs,
      retryIntervalStartMs,
      retryIntervalMaxMs,
      writeRateLimit: writeLimit(settings),
    },
  }
}

function capacityOwner({ capacityOwnerrefLevel: level }: ProvisionerSettings, env: ProcessDeps['env']) {
  const { POD_NAME: podName, NAMESPACE: namespace } = env
  if (!namespace) throw new UsageError('--enable-capacity: set $NAMESPACE to the namespace of this pod.')
  if (level < 0) return { namespace }
  if (podName) return { namespace, owner: { podName, level } }
  throw new UsageError(
    '--enable-capacity: set $POD_NAME, or --capacity-ownerref-level=-1 for objects without an owner.',
  )
}

const writeLimit = ({ kubeApiCapacityQps: perSecond, kubeApiCapacityBurst: burst }: ProvisionerSettings) =>
  perSecond === -1 ? undefined : { perSecond, burst }

const countClaims = (count: number): string => `${count} claim${count === 1 ? '' : 's'}`
