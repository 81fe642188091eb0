// The frame of a component beside a CSI driver: finds the server and the driver, shows metrics and health, elects a leader
// where there are several, and works until it is told to stop. What the work is, each component says itself
// (provisioner.ts, resizer.ts).
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { ListenAddress } from '../base/listen-address.ts'
import { type Client, httpClient, rateLimited } from '../client/index.ts'
import { type CsiDriver, connectDriver, createCsiMetrics, type DriverFacts, serializeCalls } from '../csi/index.ts'
import { type ClientMetrics, createClientMetrics, type LeaderElection } from '../runtime/index.ts'
import { serveMonitoring } from '../runtime/monitoring.ts'
import {
  createLeadership,
  type ElectionSettings,
  type Leadership,
  type MetDriver,
  meetDriver,
  type ServerSettings,
  type SidecarRun,
  serverOf,
} from './sidecar.ts'

export interface SidecarSettings extends ServerSettings, ElectionSettings {
  readonly csiAddress: string
  /** For one call of the driver. */
  readonly timeout: number
  readonly kubeApiQps: number
  readonly kubeApiBurst: number
  readonly nodeDeployment: boolean
  readonly leaderElection: boolean
  readonly monitoring: ListenAddress | undefined
  readonly metricsPath: string
}

export interface Sidecar {
  /** What it calls itself to the server. */
  readonly userAgent: string
  /** Throws where it is of no use beside this driver. */
  checkAble(facts: DriverFacts, address: string): void
  leaseName(met: MetDriver): string
  /** Metrics of its own are made once; answers what runs one term of its work. */
  prepare(registry: Registry): (given: SidecarWork, term: AbortSignal) => Promise<void>
}

export interface SidecarWork extends MetDriver {
  readonly client: Client
  /** Past the limit of requests. */
  readonly unlimited: Client
  readonly driver: CsiDriver
  readonly metrics: ClientMetrics
  readonly election?: LeaderElection
}

export async function runSidecar(
  run: SidecarRun & { readonly settings: SidecarSettings },
  { userAgent, checkAble, leaseName, prepare }: Sidecar,
): Promise<void> {
  const { settings, clock, log, signal } = run
  const { connection, namespace } = await serverOf(run)
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const metrics = createClientMetrics(registry)
  const work = prepare(registry)
  const { csiAddress: address, timeout: timeoutMs, kubeApiQps: perSecond, kubeApiBurst: burst } = settings
  const driver = connectDriver({ address, clock, log, metrics: createCsiMetrics(registry), timeoutMs })
  const unlimited = httpClient({ connection, clock, userAgent, observer: metrics.requests })
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
    const met = await meetDriver(driver, run)
    const { facts } = met
    checkAble(facts, address)
    const client = perSecond === -1 ? unlimited : rateLimited(unlimited, { perSecond, burst }, clock)
    const given = { ...met, client, unlimited, driver: serializeCalls(driver), metrics }

    const shown = monitoring ? { monitoring: monitoring.url } : {}
    log.info({ driver: facts.name, version: facts.version, server: connection.server, ...shown }, 'started')
    if (!settings.leaderElection) return await work(given, signal)
    // Not through the limit: a lease must not wait behind the work it protects.
    const lease = { client: unlimited, namespace, leaseName: leaseName(met), onChange: metrics.leadership }
    leadership = createLeadership({ ...run, ...lease })
    await leadership.run((term, election) => work({ ...given, election }, term))
  } catch (error) {
    if (!signal.aborted) throw error // else: told to stop while it was waiting for something
  } finally {
    await monitoring?.stop()
    driver.close()
    unlimited.close()
    log.info({}, 'stopped')
  }
}
