// Serves the metrics, health checks and operations of a process over HTTP.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'
import type { Operation } from '../api/kinds/operation/operation-schema.ts'
import type { ListenAddress } from '../base/listen-address.ts'
import { UsageError } from '../base/usage-error.ts'
import { formatOperationList } from './operations/operation-list.ts'

/** The health checks by path. A check returns the problem, or undefined if there is none. */
export type HealthChecks = Readonly<Record<string, () => string | undefined>>

export interface MonitoringOptions extends ListenAddress {
  readonly registry: Registry
  readonly metricsPath: string
  /** Called for every health check request, so that checks can be added after the start. */
  health(): HealthChecks
  /** Returns lines about features that are out of service. They follow the result of every check and do not change it. */
  notes?(): readonly string[]
  /** Returns the process's operations. Default: none. */
  operations?(): readonly Operation[]
}

const OPERATIONS_PATH = '/operations'

export interface Monitoring {
  readonly url: string
  stop(): Promise<void>
}

const REQUEST_TIMEOUT_MS = 10_000 // requests that arrive more slowly are aborted
const CONNECTIONS_MAX = 64 // further connections are rejected

export async function serveMonitoring(options: MonitoringOptions): Promise<Monitoring> {
  const { host, port, registry, metricsPath, health } = options
  const server = createServer(async (request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    const respond = (code: number, text: string, type = 'text/plain; charset=utf-8') =>
      response.writeHead(code, { 'content-type': type }).end(text)
    if (request.method !== 'GET' && request.method !== 'HEAD') return respond(405, 'only GET and HEAD are supported\n')
    if (path === metricsPath) return respond(200, await registry.metrics(), registry.contentType)
    if (path === OPERATIONS_PATH)
      return respond(200, formatOperationList(options.operations?.() ?? []), 'application/json')
    const checks = health()
    if (!Object.hasOwn(checks, path)) {
      return respond(404, `not found; paths: ${[metricsPath, OPERATIONS_PATH, ...Object.keys(checks)].join(', ')}\n`)
    }
    const problem = checks[path]!()
    const notes = options.notes?.() ?? []
    if (problem !== undefined) return respond(500, `${[problem, ...notes].join('\n')}\n`)
    return respond(200, notes.length === 0 ? 'ok' : `${['ok', ...notes].join('\n')}\n`)
  })
  server.requestTimeout = REQUEST_TIMEOUT_MS
  server.maxConnections = CONNECTIONS_MAX
  server.listen(port, host)
  await once(server, 'listening').catch((error) => {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageError(`Cannot listen on ${host}:${port} (${code ?? message}): choose another --http-endpoint.`)
  })
  const address = server.address() as AddressInfo
  return {
    url: `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    async stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}
