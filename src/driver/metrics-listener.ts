// Serves `/metrics` over plain HTTP.
import { createServer } from 'node:http'
import type { Logger } from '../base/log.ts'

export interface MetricsListener {
  readonly port: number
  stop(): Promise<void>
}

export async function listenMetrics(
  { host, port }: { readonly host: string; readonly port: number },
  { text, log }: { text(): Promise<string>; readonly log: Logger },
): Promise<MetricsListener> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('Not found. The only path is /metrics.\n')
      return
    }
    text().then(
      (body) => response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(body),
      (error: Error) => {
        log.warn({ reason: error.message }, 'cannot collect metrics')
        response
          .writeHead(500, { 'content-type': 'text/plain' })
          .end('Cannot collect metrics; see the log of the driver.\n')
      },
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
