import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { loadOrCreatePki } from '../../apiserver/index.ts'
import { systemClock } from '../../base/clock.ts'
import { createHttpFixture } from './http.fixture.ts'
import { httpClient } from './http-client.ts'

it("the client reports that the server's certificate is not signed by its kubeconfig's CA", async () => {
  const server = await createHttpFixture()
  const dir = await mkdtemp(join(tmpdir(), 'stowage-other-ca-'))
  const { caCert: ca } = await loadOrCreatePki({ dir, clock: systemClock() })
  const connection = { ...server.connection, ca }
  const client = httpClient({ connection, clock: systemClock() })
  try {
    const ref = { namespace: 'default', name: 'a' }
    await expect(client.get(configMapKind, ref)).rejects.toThrow(
      'its certificate is not signed by the certificate authority in the kubeconfig',
    )
  } finally {
    client.close()
    await server.stop()
    await rm(dir, { recursive: true })
  }
})
