// Serves HTTPS with the TLS settings of the API server, reads requests and responds with a given number of bytes. Its rate is
// the limit for an API server in Node.js.
//   GET  …?watch=…   stays open; every POST then sends it one line of the given size
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type Pki, servingTlsOptions } from '../../src/apiserver/security/index.ts'

export type EchoJob =
  | { readonly do: 'listen'; readonly pki: Pick<Pki, 'caCert' | 'servingCert' | 'servingKey'> }
  /** Sets the size of responses and of lines on open streams. */
  | { readonly do: 'setSizes'; readonly bodyBytes: number; readonly lineBytes?: number }

export async function runEcho(job: EchoJob): Promise<number> {
  if (job.do === 'listen') return listen(job.pki)
  body = Buffer.alloc(job.bodyBytes, 'x')
  line = Buffer.alloc(job.lineBytes ?? 1, 'x')
  line[line.length - 1] = 0x0a
  return 0
}

let body = Buffer.alloc(0)
let line = Buffer.alloc(0)
const streams = new Set<ServerResponse>()

function listen(pki: Pick<Pki, 'caCert' | 'servingCert' | 'servingKey'>): Promise<number> {
  const server = createServer({ ...servingTlsOptions(pki), keepAliveTimeout: 120_000 }, (incoming, outgoing) => {
    if (incoming.url?.includes('watch=')) {
      outgoing.writeHead(200, { 'content-type': 'application/json' })
      outgoing.flushHeaders()
      streams.add(outgoing)
      outgoing.on('close', () => streams.delete(outgoing))
      return
    }
    incoming.on('data', () => {})
    incoming.on('end', () => {
      if (incoming.method === 'POST') for (const stream of streams) stream.write(line)
      outgoing.writeHead(200, {
        'content-type': 'application/json',
        'cache-control': 'no-cache, private',
        'content-length': body.length,
      })
      outgoing.end(body)
    })
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}
