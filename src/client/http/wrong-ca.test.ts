import { expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { systemClock } from '../../base/clock.ts'
import { createHttpFixture } from './http.fixture.ts'
import { httpClient } from './http-client.ts'

it('SYS-12 a client says that the certificate of the server is not signed by the CA of its kubeconfig', async () => {
  const [server, other] = await Promise.all([createHttpFixture(), createHttpFixture()])
  const connection = { ...server.connection, ca: other.pki.caCert }
  const client = httpClient({ connection, clock: systemClock() })
  try {
    const ref = { namespace: 'default', name: 'a' }
    await expect(client.get(configMapKind, ref)).rejects.toThrow(
      'its certificate is not signed by the certificate authority in the kubeconfig',
    )
  } finally {
    client.close()
    await Promise.all([server.stop(), other.stop()])
  }
})
