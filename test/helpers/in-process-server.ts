// Runs the API server in the test's process: with the durable store in a temporary directory, an HTTPS port, and a
// `handle` method without a socket for writers that must not be the bottleneck.
import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { wholeBody } from '../../src/apiserver/http/whole-body.fixture.ts'
import type { ApiServer } from '../../src/apiserver/index.ts'
import { systemClock } from '../../src/base/clock.ts'
import { openLmdbStore, type Store } from '../../src/store/index.ts'
import { createServerOnStore } from './server-on-store.ts'

export interface InProcessServer {
  readonly store: Store
  readonly server: ApiServer
  /** Handles a request of the administrator without a socket. */
  handle(method: string, path: string, body?: unknown): Promise<{ status: number; json: any }>
  open(method: string, path: string): Promise<IncomingMessage>
  readonly port: number
  readonly ca: string
  readonly token: string
  stop(): Promise<void>
}

export async function startInProcessServer(): Promise<InProcessServer> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-in-process-'))
  const clock = systemClock()
  const store = await openLmdbStore({ dir: join(dir, 'store'), clock })
  const { server, pki, listen } = await createServerOnStore(store, { dir, clock })
  const listener = await listen()
  const headers = { authorization: `Bearer ${pki.admin.token}` }
  const agent = new Agent({ ca: pki.caCert })
  return {
    store,
    server,
    port: listener.port,
    ca: pki.caCert,
    token: pki.admin.token!,
    async handle(method, path, body) {
      const bytes = body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(body))
      const [pathname = '', query = ''] = path.split('?')
      const response = await server.handle({
        method,
        path: pathname,
        query: new URLSearchParams(query),
        headers: { ...headers, 'content-type': 'application/json' },
        headerNames: () => [],
        headerValues: () => [],
        readBody: async () => bytes,
      })
      response.seats?.release()
      return { status: response.status, json: JSON.parse(Buffer.from(wholeBody(response)).toString('utf8')) }
    },
    open: (method, path) =>
      new Promise((resolve, reject) => {
        const outgoingRequest = request(
          { host: '127.0.0.1', port: listener.port, method, path, headers, agent },
          resolve,
        )
        outgoingRequest.on('error', reject)
        outgoingRequest.end()
      }),
    async stop() {
      agent.destroy()
      await listener.stop()
      await store.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
