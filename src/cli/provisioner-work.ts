// One term of a provisioner's work: from here on until the signal fires, the volumes of the driver are this process's to
// make and delete. Everything it knows of the cluster is made anew, so that nothing is believed from an earlier term.
import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import type { FeatureGates } from '../api/feature-gates.ts'
import { randomUuid } from '../base/identifiers.ts'
import { UsageError } from '../base/usage-error.ts'
import type { Client } from '../client/index.ts'
import { type CapacityDeps, type CapacityMetrics, createCapacityControllers } from '../controllers/capacity/index.ts'
import {
  type CsiProvisionerOptions,
  createCsiProvisioner,
  createSourceProtection,
  type NodeDeployment,
} from '../controllers/provisioning/csi/index.ts'
import { createProvisioningControllers, type ProvisioningMetrics } from '../controllers/provisioning/index.ts'
import type { CsiDriver, DriverFacts } from '../csi/index.ts'
import { readSecretDir } from '../processes/secret-dir.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import { type ClientMetrics, createCacheSet, createEventRecorder, type LeaderElection } from '../runtime/index.ts'
import type { ProvisionerRun } from './provisioner.ts'

export interface ProvisionerWork extends Omit<ProvisionerRun, 'signal'> {
  readonly client: Client
  /** Past the limit of requests; capacity objects have one of their own. */
  readonly unlimited: Client
  readonly capacityMetrics: CapacityMetrics
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly gates: FeatureGates
  readonly node?: NodeDeployment
  readonly metrics: ClientMetrics
  readonly provisioningMetrics: ProvisioningMetrics
  readonly election?: LeaderElection
}

export async function provideVolumes(work: ProvisionerWork, term: AbortSignal): Promise<void> {
  const { settings, client, clock, random, log, metrics, driver, facts, provisioningMetrics, election } = work
  setMaxListeners(0, term) // every claim in work listens to it
  const caches = createCacheSet({ client, clock, random, log })
  const component = `${facts.name}_${hostname()}_${randomUuid(random)}`
  const events = createEventRecorder({ client, clock, random, log, component, instance: hostname() })
  const deps = { client, caches, clock, random, log, metrics }
  const provisioner = createCsiProvisioner({ ...deps, driver, facts, events, options: optionsOf(work) })
  const controllers = [
    createProvisioningControllers({
      ...deps,
      provisioner,
      provisioningMetrics,
      events,
      ...(election ? { election } : {}),
      options: {
        workers: settings.workerThreads,
        bindsAtOnce: true,
        gates: work.gates,
        volumeNamePrefix: settings.volumeNamePrefix,
        volumeNameUuidLength: settings.volumeNameUuidLength,
        retryIntervalStartMs: settings.retryIntervalStart,
        retryIntervalMaxMs: settings.retryIntervalMax,
      },
    }),
    createSourceProtection(deps, {
      workers: settings.cloningProtectionThreads,
      sweepIntervalMs: settings.snapshotOrphanSweepInterval,
    }),
    ...(settings.capacity ? [createCapacityControllers(capacityOf(work, { ...deps, client: work.unlimited }))] : []),
  ]
  for (const cache of caches.all()) metrics.caches.add(cache)
  const workOver = new AbortController()
  const telling = events.run(workOver.signal)
  try {
    await Promise.all(controllers.map((controller) => controller.run(term)))
  } finally {
    workOver.abort() // what the last of them had to say is still told
    await telling
    for (const queue of controllers.flatMap(({ queues }) => queues)) metrics.queues.delete(queue)
    for (const cache of caches.all()) metrics.caches.delete(cache)
    await caches.stop()
  }
}

function capacityOf(work: ProvisionerWork, deps: ControllerDeps): CapacityDeps {
  const { settings, driver, facts, node, env, election, capacityMetrics } = work
  if (!facts.controller.has('GET_CAPACITY')) {
    throw new Error(`--enable-capacity: the CSI driver ${facts.name} does not report the capability GET_CAPACITY.`)
  }
  const { POD_NAME: podName, NAMESPACE: namespace = '' } = env
  const level = settings.capacityOwnerrefLevel
  if (namespace === '') throw new UsageError('--enable-capacity: set $NAMESPACE to the namespace of this pod.')
  if (level >= 0 && !podName) {
    throw new UsageError('--enable-capacity: set $POD_NAME, or --capacity-ownerref-level=-1 for objects without owner.')
  }
  const { kubeApiCapacityQps: perSecond, kubeApiCapacityBurst: burst } = settings
  return {
    ...deps,
    driver,
    facts,
    mode: node ? { is: 'local', node: node.name, segments: node.segments } : { is: 'central' },
    capacityMetrics,
    ...(election ? { election } : {}),
    options: {
      namespace,
      workers: settings.capacityThreads,
      pollIntervalMs: settings.capacityPollInterval,
      immediateBinding: settings.capacityForImmediateBinding,
      timeoutMs: settings.timeout,
      retryIntervalStartMs: settings.retryIntervalStart,
      retryIntervalMaxMs: settings.retryIntervalMax,
      ...(level >= 0 && podName ? { owner: { podName, level } } : {}),
      ...(perSecond === -1 ? {} : { writes: { perSecond, burst } }),
    },
  }
}

function optionsOf({ settings, gates, node }: ProvisionerWork): CsiProvisionerOptions {
  const dir = settings.provisionerSecretDir
  return {
    timeoutMs: settings.timeout,
    strictTopology: settings.strictTopology,
    immediateTopology: settings.immediateTopology,
    extraCreateMetadata: settings.extraCreateMetadata,
    defaultFsType: settings.defaultFstype,
    controllerPublishReadOnly: settings.controllerPublishReadonly,
    preventVolumeModeConversion: settings.preventVolumeModeConversion,
    gates,
    ...(dir ? { credentials: () => readSecretDir(dir) } : {}),
    ...(node ? { node } : {}),
  }
}
