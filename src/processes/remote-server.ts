// The Kubernetes API server that a program of its own works on, with what such a program shows of itself: where it is asked
// to, it serves metrics, requests to that server among them, and /healthz.
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Clock } from '../base/clock.ts'
import { parseListen } from '../base/listen-address.ts'
import { UsageError } from '../base/usage-error.ts'
import { findServer } from '../client/find-server.ts'
import { type Client, httpClient } from '../client/index.ts'
import { type ClientMetrics, createClientMetrics } from '../runtime/index.ts'
import { serveMonitoring } from '../runtime/monitoring.ts'

export interface RemoteServerFlags {
  readonly kubeconfig?: string
  /** Address of the server, instead of the one in the kubeconfig. */
  readonly server?: string
  readonly httpEndpoint?: string
}

export interface RemoteServerDeps {
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface RemoteServer {
  readonly client: Client
  readonly url: string
  readonly registry: Registry
  readonly metrics: ClientMetrics
  /** Where these are served, if they are. */
  readonly monitoringUrl: string | undefined
  close(): Promise<void>
}

/** `userAgent`: what this program calls itself there. */
export async function reachServer(
  userAgent: string,
  flags: RemoteServerFlags,
  deps: RemoteServerDeps,
): Promise<RemoteServer> {
  const found = await findServer(flags.kubeconfig, deps).catch((error) => {
    throw new UsageError((error as Error).message)
  })
  const connection = flags.server ? { ...found.connection, server: flags.server } : found.connection
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const metrics = createClientMetrics(registry)
  const client = httpClient({ connection, clock: deps.clock, userAgent, observer: metrics.requests })
  const monitoring = flags.httpEndpoint
    ? await serveMonitoring({
        ...parseListen(flags.httpEndpoint, '--http-endpoint'),
        registry,
        metricsPath: '/metrics',
        health: { '/healthz': () => undefined },
      })
    : undefined
  return {
    client,
    url: connection.server,
    registry,
    metrics,
    monitoringUrl: monitoring?.url,
    async close() {
      await monitoring?.stop()
      client.close()
    },
  }
}
