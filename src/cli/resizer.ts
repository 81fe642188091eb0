// `stowage resizer`: finds the driver and the server, elects a leader where there are several, and changes volumes until
// it is told to stop. What a term of work is made of is resizer-work.ts.
import { collectDefaultMetrics, Registry } from 'prom-client'
import { createClientMetrics, httpClient, rateLimited } from '../client/index.ts'
import { createModifyingMetrics } from '../controllers/modifying/index.ts'
import { connectDriver, createCsiMetrics, oneAtATime } from '../csi/index.ts'
import { serveMonitoring } from './monitoring.ts'
import type { ResizerSettings } from './resizer-flags.ts'
import { changeVolumes, checkAbleToChange } from './resizer-work.ts'
import { createLeadership, type Leadership, meetDriver, type SidecarRun, serverOf } from './sidecar.ts'

export interface ResizerRun extends SidecarRun {
  readonly settings: ResizerSettings
}

export async function runResizer(run: ResizerRun): Promise<void> {
  const { settings, clock, log, signal } = run
  const { connection, namespace } = await serverOf(run)
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const metrics = createClientMetrics(registry)
  const { csiAddress: address, timeout: timeoutMs, kubeApiQps: perSecond, kubeApiBurst: burst } = settings
  const driver = connectDriver({ address, clock, log, metrics: createCsiMetrics(registry), timeoutMs })
  const direct = httpClient({ connection, clock, userAgent: 'stowage-resizer', observer: metrics.requests })
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
    const { facts, node } = await meetDriver(driver, run)
    checkAbleToChange(facts, address)
    const client = perSecond === -1 ? direct : rateLimited(direct, { perSecond, burst }, clock)
    const modifyingMetrics = createModifyingMetrics(registry)
    const work = {
      ...run,
      client,
      driver: oneAtATime(driver),
      facts,
      metrics,
      modifyingMetrics,
      ...(node ? { node } : {}),
    }

    const shown = monitoring ? { monitoring: monitoring.url } : {}
    log.info({ driver: facts.name, version: facts.version, server: connection.server, ...shown }, 'started')
    if (!settings.leaderElection) return await changeVolumes(work, signal)
    // Not through the limit: a lease must not wait behind the work it protects.
    const leaseName = `external-resizer-${leaseNameOf(facts.name)}${node ? `-${node.name}` : ''}`
    leadership = createLeadership({ ...run, client: direct, namespace, leaseName, onChange: metrics.leadership })
    await leadership.run((term, election) => changeVolumes({ ...work, election }, term))
  } catch (error) {
    if (!signal.aborted) throw error // else: told to stop while it was waiting for something
  } finally {
    await monitoring?.stop()
    driver.close()
    direct.close()
    log.info({}, 'stopped')
  }
}

/** As other resizers make it, so that they and this one share a lease. */
function leaseNameOf(driverName: string): string {
  const name = driverName.replace(/[^a-zA-Z0-9-]/g, '-')
  return name.endsWith('-') ? `${name}X` : name
}
