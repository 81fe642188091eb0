// Hosts a process that uses an API server: creates its client, its metrics, the reports of its operations, and the HTTP
// endpoint for metrics, health and operations, and runs its controllers with manager.ts.
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Clock, Random } from '../base/clock.ts'
import type { ListenAddress } from '../base/listen-address.ts'
import type { Logger } from '../base/log.ts'
import { processName } from '../base/process-identity.ts'
import type { ClientConfig } from '../client/connection/client-config.ts'
import { type HttpClient, httpClient, type RequestObserver } from '../client/http/http-client.ts'
import { patchByUpdate } from '../client/patch-by-update.ts'
import { createEventRecorder } from './events.ts'
import { createManager, type ManagerOptions } from './manager.ts'
import { type ClientMetrics, createClientMetrics } from './metrics.ts'
import { type HealthChecks, serveMonitoring } from './monitoring.ts'
import { createOperationRegistry } from './operations/registry.ts'
import { reportOperations } from './operations/report-operations.ts'
import { createRights, type Rights, type RightsOptions } from './rights.ts'

/** The health checks until the controllers are started: the process is alive, but not ready. */
const STARTING_CHECKS: HealthChecks = {
  '/healthz': () => undefined,
  '/healthz/leader-election': () => undefined,
  '/readyz': () => 'starting',
}

export interface ProcessDeps {
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface HostOptions {
  readonly server: ClientConfig
  readonly userAgent: string
  /** Called after every attempt of a request. */
  readonly observer?: RequestObserver
  /** The address of the endpoint for metrics, health and operations. Default: no endpoint. */
  readonly monitoring?: ListenAddress
  /** Default `/metrics`. */
  readonly metricsPath?: string
  /** Returns the optional feature of this process that needs a permission, if there is one. */
  readonly featureOf?: RightsOptions['featureOf']
}

export interface Host {
  readonly client: HttpClient
  readonly url: string
  /** The namespace of this process, or the one of the kubeconfig. */
  readonly namespace: string
  readonly registry: Registry
  readonly metrics: ClientMetrics
  readonly monitoringUrl: string | undefined
  /** Reports the permissions that requests of the client lack. */
  readonly rights: Rights
  /** Replaces the health checks. The initial ones report that the process is not ready. */
  setHealth(checks: HealthChecks): void
  close(): Promise<void>
}

export async function startHost(
  options: HostOptions,
  { clock, random, log }: Pick<ProcessDeps, 'clock' | 'random' | 'log'>,
): Promise<Host> {
  const { connection, namespace } = options.server
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const { userAgent } = options
  const program = userAgent.split(/[ /]/)[0]!
  const operations = createOperationRegistry({ process: processName(program), clock })
  const metrics = createClientMetrics(registry, operations)
  let health: HealthChecks = STARTING_CHECKS
  const observer: RequestObserver = {
    observeRequest(request) {
      metrics.requests.observeRequest(request)
      options.observer?.observeRequest(request)
    },
  }
  const http = httpClient({ connection, clock, userAgent, observer })
  const events = createEventRecorder({ client: http, clock, random, log, component: userAgent.split(' ')[0]! })
  const rights = createRights({
    clock,
    log,
    observe: metrics.setMissingRight,
    events,
    ...(options.featureOf ? { featureOf: options.featureOf } : {}),
  })
  const client = rights.track(patchByUpdate(http))
  const recorderAbort = new AbortController()
  void events.run(recorderAbort.signal)
  const reporter = reportOperations({ client: http, operations, clock, log })
  const monitoring =
    options.monitoring &&
    (await serveMonitoring({
      ...options.monitoring,
      registry,
      metricsPath: options.metricsPath ?? '/metrics',
      health: () => health,
      notes: rights.notes,
      operations: operations.list,
    }))
  return {
    client,
    rights,
    url: connection.server,
    namespace,
    registry,
    metrics,
    monitoringUrl: monitoring?.url,
    setHealth(checks) {
      health = checks
    },
    async close() {
      await reporter.stop()
      recorderAbort.abort()
      await monitoring?.stop()
      client.close()
    },
  }
}

export interface HostedWork
  extends Pick<ManagerOptions, 'lease' | 'createControllers' | 'onSynced' | 'reductions' | 'stopTimeoutMs'> {
  /** Default: the client of the host. */
  readonly client?: ManagerOptions['client']
  /** Fields of the log line that is written at the start. */
  readonly logFields: object
}

/** Must be less than STOP_MS_MAX of src/main.ts. */
const STOP_TIMEOUT_MS = 25_000

/** Runs controllers until the signal is aborted and they have stopped or the stop timeout has passed. */
export async function runOnHost(host: Host, work: HostedWork, deps: ProcessDeps): Promise<'stopped' | 'abandoned'> {
  const { logFields, ...options } = work
  const { client, metrics, monitoringUrl: monitoring } = host
  const { clock, random, log, signal } = deps
  const stopTimeoutMs = work.stopTimeoutMs ?? STOP_TIMEOUT_MS
  const manager = createManager({ client, metrics, clock, random, log, ...options, stopTimeoutMs })
  host.setHealth(manager.health)
  if (work.lease) host.rights.recordOnLease({ namespace: work.lease.namespace, name: work.lease.name })

  log.info({ server: host.url, ...logFields, ...(monitoring ? { monitoring } : {}) }, 'started')
  const result = await manager.run(signal)
  if (result === 'abandoned') {
    log.warn({ afterMs: stopTimeoutMs }, 'stopped without waiting for work in progress; the next start resumes it')
  }
  return result
}
