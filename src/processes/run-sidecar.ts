// Runs a CSI sidecar, for `stowage sidecar`, `stowage provisioner` and `stowage resizer`: connects to the API server and
// the driver, then runs the controllers that the command selects.
import type { Registry } from 'prom-client'
import type { FeatureGates } from '../api/feature-gates.ts'
import type { Component } from '../apiserver/rbac/component-rules.ts'
import type { ListenAddress } from '../base/listen-address.ts'
import { UsageError } from '../base/usage-error.ts'

import { type ClientConfig, loadClientConfig, readPodNamespace } from '../client/connection/client-config.ts'
import { type AdaptiveLimit, type Client, createAdaptiveLimit, limitRate } from '../client/index.ts'
import { type CsiConnection, connectDriver, createCsiMetrics, recordCalls, serializeCalls } from '../csi/index.ts'
import {
  createWorkerBudget,
  type Host,
  type LeaseTimes,
  type ProcessDeps,
  runOnHost,
  startHost,
} from '../runtime/index.ts'
import { type DiscoveredDriver, discoverDriver } from './discover-driver.ts'
import { createDriverControllers, type DriverMetrics, type DriverParts } from './driver-controllers.ts'
import { createFeatureLookup } from './feature-lookup.ts'
import { PRUNED_CACHES } from './pruned-fields.ts'
import { failIfAbandoned } from './run-remote.ts'

export interface SidecarSettings {
  readonly kubeconfig: string
  readonly master: string
  readonly csiAddress: string
  /** Timeout of one call to the driver, in milliseconds. */
  readonly timeout: number
  readonly kubeApiQps: number
  readonly kubeApiBurst: number
  /** Number of objects that all controllers together process concurrently. Default: only the limits of each controller apply. */
  readonly workerBudget?: number
  readonly nodeDeployment: boolean
  readonly gates: FeatureGates
  readonly leaderElection: boolean
  readonly leaderElectionNamespace: string
  readonly leaderElectionLeaseDuration: number
  readonly leaderElectionRenewDeadline: number
  readonly leaderElectionRetryPeriod: number
  readonly leaderElectionLabels: Readonly<Record<string, string>> | undefined
  readonly monitoring: ListenAddress | undefined
  readonly metricsPath: string
}

export interface SidecarRun<Settings extends SidecarSettings = SidecarSettings> extends ProcessDeps {
  readonly settings: Settings
  /** Writes to standard output. */
  write(text: string): void
}

export interface Sidecar {
  readonly userAgent: string
  /** The components that the sidecar can run. */
  readonly components: readonly Component[]
  createMetrics(registry: Registry): DriverMetrics
  leasesOf(driver: DiscoveredDriver): SidecarLeases
  /** Throws if the sidecar cannot work with this driver. */
  partsFor(driver: DiscoveredDriver, clients: { readonly unlimitedClient: Client }): DriverParts
  /** Replaces the controllers with a single run without leader election. */
  runOnce?(driver: DiscoveredDriver, client: Client): Promise<void>
}

export interface SidecarLeases {
  readonly name: string
  /** More leases that the leader holds. */
  readonly additionalNames?: readonly string[]
  /** Leases of other programs that do the same work. The sidecar does not lead while one of them is held. */
  readonly foreignNames?: readonly string[]
}

export async function runSidecar(run: SidecarRun, sidecar: Sidecar): Promise<void> {
  const { settings, clock, log } = run
  const { monitoring, metricsPath, csiAddress: address, timeout: timeoutMs } = settings
  const nodeName = nodeNameOf(run)
  const limit = createAdaptiveLimit({ clock, log })
  const { userAgent } = sidecar
  const featureOf = createFeatureLookup(sidecar.components)
  const host = await startHost(
    { server: await loadServerConfig(run), userAgent, observer: limit, monitoring, metricsPath, featureOf },
    run,
  )
  const metrics = recordCalls(createCsiMetrics(host.registry), host.metrics.operations)
  const driver = connectDriver({ address, clock, log, metrics, timeoutMs })
  try {
    await runWithDriver({ ...run, nodeName, limit }, sidecar, host, driver)
  } finally {
    driver.close()
    await host.close()
    log.info({}, 'stopped')
  }
}

async function runWithDriver(
  run: SidecarRun & { readonly nodeName: string | undefined; readonly limit: AdaptiveLimit },
  sidecar: Sidecar,
  host: Host,
  driver: CsiConnection,
): Promise<void> {
  const { settings, clock } = run
  const { gates, kubeApiQps: perSecond, kubeApiBurst: burst, workerBudget: workers } = settings
  const unlimitedClient = host.client
  const adaptiveClient = run.limit.limitClient(unlimitedClient)
  const driverMetrics = sidecar.createMetrics(host.registry)
  const discoveredDriver = await discoverDriver(driver, { ...run, retry: 'unavailable' }).catch((error) => {
    if (run.signal.aborted) return undefined
    throw error
  })
  if (!discoveredDriver) return
  if (sidecar.runOnce) return sidecar.runOnce(discoveredDriver, unlimitedClient)
  const parts = sidecar.partsFor(discoveredDriver, { unlimitedClient })
  const leaseNamespace = await resolveLeaseNamespace(run)
  const serializedDriver = serializeCalls(driver)
  const { name, version } = discoveredDriver.facts
  const outcome = await runOnHost(
    host,
    {
      client: perSecond === -1 ? adaptiveClient : limitRate(adaptiveClient, { perSecond, burst }, clock),
      lease: settings.leaderElection
        ? {
            client: unlimitedClient,
            namespace: leaseNamespace,
            ...sidecar.leasesOf(discoveredDriver),
            labels: settings.leaderElectionLabels,
            ...leaseTimesOf(settings),
          }
        : undefined,
      logFields: { driver: name, version },
      reductions: PRUNED_CACHES,
      createControllers: (deps) => [
        createDriverControllers(
          {
            ...deps,
            ...discoveredDriver,
            driver: serializedDriver,
            leaseNamespace,
            gates,
            driverMetrics,
            workerBudget: workers === undefined ? undefined : createWorkerBudget(workers),
          },
          parts,
        ),
      ],
    },
    run,
  )
  failIfAbandoned(outcome)
}

export const resolveLeaseNamespace = async ({ settings, env }: Pick<SidecarRun, 'settings' | 'env'>): Promise<string> =>
  settings.leaderElectionNamespace || (await readPodNamespace(env))

export const leaseTimesOf = (settings: SidecarSettings): LeaseTimes => ({
  leaseMs: settings.leaderElectionLeaseDuration,
  renewDeadlineMs: settings.leaderElectionRenewDeadline,
  retryMs: settings.leaderElectionRetryPeriod,
})

/** --master without credentials means a server without authentication; otherwise it overrides the address. */
async function loadServerConfig({ settings, clock, env }: SidecarRun): Promise<ClientConfig> {
  const { kubeconfig, master } = settings
  const hasCredentials = kubeconfig || env.KUBECONFIG || env.KUBERNETES_SERVICE_HOST
  if (master && !hasCredentials) {
    return { connection: { server: master, credentials: async () => ({}) }, namespace: 'default' }
  }
  const config = await loadClientConfig(kubeconfig || undefined, { clock, env })
  return master ? { ...config, connection: { ...config.connection, server: master } } : config
}

function nodeNameOf({ settings, env }: SidecarRun): string | undefined {
  if (!settings.nodeDeployment) return undefined
  if (env.NODE_NAME) return env.NODE_NAME
  throw new UsageError('--node-deployment needs the name of the node: set $NODE_NAME from spec.nodeName.')
}
