// Test fixture: the API server of server.fixture.ts on an HTTPS port, and an HTTP client for it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type HttpsListener, listenHttps, loadOrCreatePki } from '../../apiserver/index.ts'
import { createServerFixture, type ServerFixtureOptions } from '../../apiserver/server.fixture.ts'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { type HttpClientOptions, httpClient } from './http-client.ts'

const sharedPki = (async () => {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-client-'))
  const pki = await loadOrCreatePki({ dir, clock: systemClock() })
  await rm(dir, { recursive: true })
  return pki
})()

export async function createHttpFixture(
  options: ServerFixtureOptions = {},
  clientOptions: Partial<HttpClientOptions> = {},
) {
  const api = await createServerFixture(options)
  const pki = await sharedPki
  const clock = systemClock()
  const { handle } = api.server
  const listen = (port: number) => listenHttps({ handle, pki, host: '127.0.0.1', port, clock, log: silentLog })
  const listener = await listen(0)
  let restartedListener: HttpsListener | undefined
  const connection = {
    server: `https://127.0.0.1:${listener.port}`,
    ca: pki.caCert,
    credentials: async () => ({ token: pki.admin.token }),
  }
  const client = httpClient({ connection, clock, ...clientOptions })
  return {
    api,
    client,
    pki,
    connection,
    listener,
    /** Listens on the same port again after the listener was stopped. */
    async restart() {
      restartedListener = await listen(listener.port)
    },
    async stop() {
      client.close()
      await (restartedListener ?? listener).stop()
      await api.store.close()
    },
  }
}
