// Creates an API server on a given store in this process, with certificates in a directory, all kinds and feature gates, and
// the built-in objects.
import { join } from 'node:path'
import { allGatesOn } from '../../src/api/feature-gates.ts'
import { ALL_KINDS } from '../../src/api/kinds/index.ts'
import {
  createApiServer,
  createAuthenticator,
  createBuiltIns,
  createRbac,
  listenHttps,
  loadOrCreatePki,
  staticTokenAuthenticator,
  versionInfo,
} from '../../src/apiserver/index.ts'
import { type Clock, systemRandom } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import type { Store } from '../../src/store/index.ts'

export async function createServerOnStore(
  store: Store,
  { dir, clock }: { readonly dir: string; readonly clock: Clock },
) {
  const pki = await loadOrCreatePki({ dir: join(dir, 'pki'), clock })
  const server = createApiServer({
    store,
    clock,
    random: systemRandom(),
    log: silentLog,
    kinds: ALL_KINDS,
    gates: allGatesOn,
    authenticator: createAuthenticator({
      caCert: pki.caCert,
      tokenAuthenticators: [staticTokenAuthenticator(pki.tokens)],
      clock,
    }),
    authorizer: createRbac({ store, clock, log: silentLog }).authorizer,
    version: versionInfo(),
  })
  await createBuiltIns(server.objects)
  const listen = () => listenHttps({ handle: server.handle, pki, host: '127.0.0.1', port: 0, clock, log: silentLog })
  return { server, pki, listen }
}
