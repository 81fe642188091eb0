// The whole server inside the test's own process: the durable store in a temporary directory, a real HTTPS port,
// and a shortcut past the socket for writers that need not be the bottleneck.
import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allGatesOn } from '../../src/api/feature-gates.ts'
import { ALL_KINDS } from '../../src/api/kinds/index.ts'
import {
  type ApiServer,
  createApiServer,
  createAuthenticator,
  createBasicAuthorizer,
  createBuiltIns,
  listenHttps,
  loadOrCreatePki,
  versionInfo,
} from '../../src/apiserver/index.ts'
import { systemClock, systemRandom } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { openLmdbStore, type Store } from '../../src/store/index.ts'

export interface ServerHere {
  readonly store: Store
  readonly server: ApiServer
  /** The request path without a socket, as the administrator. */
  handle(method: string, path: string, body?: unknown): Promise<{ status: number; json: any }>
  open(method: string, path: string): Promise<IncomingMessage>
  readonly port: number
  readonly ca: string
  readonly token: string
  stop(): Promise<void>
}

export async function startHere(): Promise<ServerHere> {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-here-'))
  const clock = systemClock()
  const store = await openLmdbStore({ dir: join(dir, 'store'), clock })
  const pki = await loadOrCreatePki({ dir: join(dir, 'pki'), clock })
  const server = createApiServer({
    store,
    clock,
    random: systemRandom(),
    log: silentLog,
    kinds: ALL_KINDS,
    gates: allGatesOn,
    authenticator: createAuthenticator({ caCert: pki.caCert, tokens: pki.tokens, clock }),
    authorizer: createBasicAuthorizer(),
    version: versionInfo(),
  })
  await createBuiltIns(server.objects)
  const listener = await listenHttps({ handle: server.handle, pki, host: '127.0.0.1', port: 0, clock, log: silentLog })
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
      const { status, body: answer } = await server.handle({
        method,
        path: pathname,
        query: new URLSearchParams(query),
        headers: { ...headers, 'content-type': 'application/json' },
        headerNames: () => [],
        headerValues: () => [],
        readBody: async () => bytes,
      })
      return { status, json: JSON.parse(Buffer.from(answer ?? []).toString('utf8')) }
    },
    open: (method, path) =>
      new Promise((resolve, reject) => {
        const outgoing = request({ host: '127.0.0.1', port: listener.port, method, path, headers, agent }, resolve)
        outgoing.on('error', reject)
        outgoing.end()
      }),
    async stop() {
      agent.destroy()
      await listener.stop()
      await store.close()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
