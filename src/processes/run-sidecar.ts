// A process that runs beside a CSI driver, as `stowage provisioner` and `stowage resizer` do: connects to the API server and
// the driver, then hosts the controllers of its part. Which part that is, each command says.
import type { Registry } from 'prom-client'
import type { FeatureGates } from '../api/feature-gates.ts'
import type { ListenAddress } from '../base/listen-address.ts'
import { UsageError } from '../base/usage-error.ts'
import { type FoundServer, findServer } from '../client/connection/find-server.ts'
import { type Client, rateLimited } from '../client/index.ts'
import { type CsiConnection, connectDriver, createCsiMetrics, serializeCalls } from '../csi/index.ts'
import { type Host, type LeaseTimes, type ProcessDeps, runOnHost, startHost } from '../runtime/index.ts'
import { createDriverControllers, type DriverMetrics, type DriverParts } from './driver-controllers.ts'
import { type MetDriver, meetDriver } from './meet-driver.ts'
import { failIfAbandoned } from './run-remote.ts'

export interface SidecarSettings {
  readonly kubeconfig: string
  readonly master: string
  readonly csiAddress: string
  /** For one call of the driver, in ms. */
  readonly timeout: number
  readonly kubeApiQps: number
  readonly kubeApiBurst: number
  readonly nodeDeployment: boolean
  readonly gates: FeatureGates
  readonly leaderElection: boolean
  readonly leaderElectionNamespace: string
  readonly leaderElectionLeaseDuration: number
  readonly leaderElectionRenewDeadline: number
  readonly leaderElectionRetryPeriod: number
  readonly monitoring: ListenAddress | undefined
  readonly metricsPath: string
}

export interface SidecarRun<Settings extends SidecarSettings = SidecarSettings> extends ProcessDeps {
  readonly settings: Settings
}

export interface Sidecar {
  readonly userAgent: string
  createMetrics(registry: Registry): DriverMetrics
  leaseName(met: MetDriver): string
  /** Throws if the sidecar is of no use beside this driver. */
  partsFor(met: MetDriver, given: { readonly unlimited: Client }): DriverParts
}

export async function runSidecar(run: SidecarRun, sidecar: Sidecar): Promise<void> {
  const { settings, clock, log, signal } = run
  const { monitoring, metricsPath, csiAddress: address, timeout: timeoutMs } = settings
  const host = await startHost(
    { server: await serverOf(run), userAgent: sidecar.userAgent, monitoring, metricsPath },
    run,
  )
  const driver = connectDriver({ address, clock, log, metrics: createCsiMetrics(host.registry), timeoutMs })
  try {
    await runBesideDriver(run, sidecar, host, driver)
  } catch (error) {
    if (!signal.aborted) throw error // else the stop interrupted the start
  } finally {
    driver.close()
    await host.close()
    log.info({}, 'stopped')
  }
}

async function runBesideDriver(run: SidecarRun, sidecar: Sidecar, host: Host, driver: CsiConnection): Promise<void> {
  const { settings, clock } = run
  const { gates, kubeApiQps: perSecond, kubeApiBurst: burst } = settings
  const unlimited = host.client
  const driverMetrics = sidecar.createMetrics(host.registry)
  const met = await meetDriver(driver, { ...run, nodeName: nodeNameOf(run), retry: 'unavailable' })
  const parts = sidecar.partsFor(met, { unlimited })
  const serialized = serializeCalls(driver)
  const { name, version } = met.facts
  const end = await runOnHost(
    host,
    {
      client: perSecond === -1 ? unlimited : rateLimited(unlimited, { perSecond, burst }, clock),
      lease: settings.leaderElection
        ? {
            client: unlimited,
            namespace: settings.leaderElectionNamespace || host.namespace,
            name: sidecar.leaseName(met),
            ...leaseTimesOf(settings),
          }
        : undefined,
      about: { driver: name, version },
      createControllers: (deps) => [
        createDriverControllers({ ...deps, ...met, driver: serialized, gates, driverMetrics }, parts),
      ],
    },
    run,
  )
  failIfAbandoned(end)
}

export const leaseTimesOf = (settings: SidecarSettings): LeaseTimes => ({
  leaseMs: settings.leaderElectionLeaseDuration,
  renewDeadlineMs: settings.leaderElectionRenewDeadline,
  retryMs: settings.leaderElectionRetryPeriod,
})

/** --master alone names a server that needs no credentials; beside a kubeconfig it replaces the address only. */
async function serverOf({ settings, clock, env }: SidecarRun): Promise<FoundServer> {
  const { kubeconfig, master } = settings
  const hasCredentials = kubeconfig || env.KUBECONFIG || env.KUBERNETES_SERVICE_HOST
  if (master && !hasCredentials) {
    return { connection: { server: master, credentials: async () => ({}) }, namespace: 'default' }
  }
  const found = await findServer(kubeconfig || undefined, { clock, env })
  return master ? { ...found, connection: { ...found.connection, server: master } } : found
}

function nodeNameOf({ settings, env }: SidecarRun): string | undefined {
  if (!settings.nodeDeployment) return undefined
  if (env.NODE_NAME) return env.NODE_NAME
  throw new UsageError('--node-deployment needs the name of the node: set $NODE_NAME from spec.nodeName.')
}
