// Serves a component's metrics and health checks over HTTP.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'
import type { ListenAddress } from '../base/listen-address.ts'
import { UsageError } from '../base/usage-error.ts'

/** By path: the problem, or undefined. */
export type HealthChecks = Readonly<Record<string, () => string | undefined>>

export interface MonitoringOptions extends ListenAddress {
  readonly registry: Registry
  readonly metricsPath: string
  /** Called for every request, so that checks can be added after the start. */
  health(): HealthChecks
}

export interface Monitoring {
  readonly url: string
  stop(): Promise<void>
}

const REQUEST_TIMEOUT_MS = 10_000 // slower requests are cut off
const CONNECTIONS_MAX = 64 // further connections are refused

export async function serveMonitoring(options: MonitoringOptions): Promise<Monitoring> {
  const { host, port, registry, metricsPath, health } = options
  const server = createServer(async (request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    const answer = (code: number, text: string, type = 'text/plain; charset=utf-8') =>
      response.writeHead(code, { 'content-type': type }).end(text)
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(405, 'only GET is supported\n')
    if (path === metricsPath) return answer(200, await registry.metrics(), registry.contentType)
    const checks = health()
    if (!Object.hasOwn(checks, path)) {
      return answer(404, `not found; paths: ${[metricsPath, ...Object.keys(checks)].join(', ')}\n`)
    }
    const problem = checks[path]!()
    return problem === undefined ? answer(200, 'ok') : answer(500, `${problem}\n`)
  })
  server.requestTimeout = REQUEST_TIMEOUT_MS
  server.maxConnections = CONNECTIONS_MAX
  server.listen(port, host)
  await once(server, 'listening').catch((error) => {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageError(`Cannot listen on ${host}:${port} (${code ?? message}): choose another --http-endpoint.`)
  })
  const bound = server.address() as AddressInfo
  return {
    url: `http://${bound.family === 'IPv6' ? `[${bound.address}]` : bound.address}:${bound.port}`,
    async stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}
