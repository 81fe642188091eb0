// `stowage provisioner`: finds the driver and the server, elects a leader where there are several, and works until it is
// told to stop. What a term of work is made of is provisioner-work.ts.
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { createClientMetrics, httpClient, rateLimited } from '../client/index.ts'
import { createCapacityMetrics } from '../controllers/capacity/index.ts'
import type { ServedNode } from '../controllers/changing/index.ts'
import type { NodeDeployment } from '../controllers/provisioning/csi/index.ts'
import { createProvisioningMetrics } from '../controllers/provisioning/index.ts'
import { connectDriver, createCsiMetrics, type DriverFacts, oneAtATime } from '../csi/index.ts'
import { serveMonitoring } from './monitoring.ts'
import type { ProvisionerSettings } from './provisioner-flags.ts'
import { provideVolumes } from './provisioner-work.ts'
import { readSecretDir } from './secret-dir.ts'
import { createLeadership, type Leadership, meetDriver, serverOf } from './sidecar.ts'

export interface ProvisionerRun {
  readonly settings: ProvisionerSettings
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
}

export async function runProvisioner(run: ProvisionerRun): Promise<void> {
  const { settings, clock, log, signal } = run
  if (settings.provisionerSecretDir) readSecretDir(settings.provisionerSecretDir) // a wrong one is told at once
  const { connection, namespace } = await serverOf(run)
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const metrics = createClientMetrics(registry)
  const provisioningMetrics = createProvisioningMetrics(registry)
  const csiMetrics = createCsiMetrics(registry)
  const capacityMetrics = createCapacityMetrics(registry)
  const { csiAddress: address, timeout: timeoutMs } = settings
  const driver = connectDriver({ address, clock, log, metrics: csiMetrics, timeoutMs })
  const direct = httpClient({ connection, clock, userAgent: 'stowage-provisioner', observer: metrics.requests })
  let leadership: Leadership | undefined
  const monitoring =
    settings.monitoring &&
    (await serveMonitoring({
      ...settings.monitoring,
      registry,
      metricsPath: settings.metricsPath,
      health: { '/healthz': () => undefined, '/healthz/leader-election': () => leadership?.problem() },
    }))
  try {
    const { facts, node: served } = await meetDriver(driver, run)
    checkAbleToMakeVolumes(facts, address)
    const node = served && deployedOn(served, settings)
    const client = settings.kubeApiQps === -1 ? direct : rateLimited(direct, limitOf(settings), clock)
    const calls = { client, unlimited: direct, driver: oneAtATime(driver), facts }
    const deps = { ...run, ...calls, node, gates: settings.gates, metrics, provisioningMetrics, capacityMetrics }

    const shown = monitoring ? { monitoring: monitoring.url } : {}
    log.info({ driver: facts.name, version: facts.version, server: connection.server, ...shown }, 'started')
    if (!settings.leaderElection) return await provideVolumes(deps, signal)
    // Not through the limit: a lease must not wait behind the work it protects.
    const leaseName = facts.name.replaceAll('/', '-')
    leadership = createLeadership({ ...run, client: direct, namespace, leaseName, onChange: metrics.leadership })
    await leadership.run((term, election) => provideVolumes({ ...deps, election }, term))
  } catch (error) {
    if (!signal.aborted) throw error // else: told to stop while it was waiting for something
  } finally {
    await monitoring?.stop()
    driver.close()
    direct.close()
    log.info({}, 'stopped')
  }
}

const limitOf = ({ kubeApiQps: perSecond, kubeApiBurst: burst }: ProvisionerSettings) => ({ perSecond, burst })

function checkAbleToMakeVolumes(facts: DriverFacts, address: string): void {
  if (facts.controller.has('CREATE_DELETE_VOLUME')) return
  throw new Error(
    `The CSI driver ${facts.name} at ${address} cannot make volumes: it does not report the controller capability ` +
      'CREATE_DELETE_VOLUME. Run no provisioner beside it.',
  )
}

const deployedOn = (node: ServedNode, settings: ProvisionerSettings): NodeDeployment => ({
  ...node,
  immediateBinding: settings.nodeDeploymentImmediateBinding,
  baseDelayMs: settings.nodeDeploymentBaseDelay,
  maxDelayMs: settings.nodeDeploymentMaxDelay,
})
