// `/metrics` over plain HTTP, for whoever scrapes the node.
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
      response.writeHead(404, { 'content-type': 'text/plain' }).end('There is only /metrics here.\n')
      return
    }
    text().then(
      (body) => response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(body),
      (error: Error) => {
        log.warn({ because: error.message }, 'metrics could not be collected')
        response.writeHead(500, { 'content-type': 'text/plain' }).end('Metrics could not be collected; see the log.\n')
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
