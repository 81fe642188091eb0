import { describe, expect, it, onTestFinished } from 'vitest'
import { createServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { createBootstrapSigner } from './bootstrap-signer.ts'

const CLUSTER_INFO = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
const SECRETS = '/api/v1/namespaces/kube-system/secrets'
const HOUR_MS = 3_600_000

async function start() {
  const server = await createServerFixture({ answers: 'stowage' })
  const { clock } = server
  const sharedOptions = { client: server.clientOf('bootstrap-signer'), clock, random: () => 0.5, log: silentLog }
  const caches = createCacheSet(sharedOptions)
  const abort = new AbortController()
  const run = createBootstrapSigner({ ...sharedOptions, caches }).run(abort.signal)
  onTestFinished(async () => {
    abort.abort()
    await run
    await caches.stop()
    await server.store.close()
  })
  await server.post('/api/v1/namespaces/kube-public/configmaps', {
    metadata: { name: 'cluster-info' },
    data: { kubeconfig: 'clusters: []\n', other: 'kept' },
  })
  const read = async (): Promise<Record<string, string>> => (await server.get(CLUSTER_INFO)).json.data
  return {
    ...server,
    read,
    createToken: (id: string, data: object = {}) =>
      server.post(SECRETS, {
        metadata: { name: `bootstrap-token-${id}` },
        type: 'bootstrap.kubernetes.io/token',
        stringData: {
          'token-id': id,
          'token-secret': '0123456789abcdef',
          'usage-bootstrap-signing': 'true',
          ...data,
        },
      }),
    /** Waits until the ConfigMap has the signatures of exactly these tokens. */
    waitUntilSigned: (...ids: string[]) =>
      server.waitUntil(
        async () =>
          Object.keys(await read())
            .filter((key) => key.startsWith('jws-'))
            .sort()
            .join() === ids.map((id) => `jws-kubeconfig-${id}`).join(),
        `the signatures of ${ids.join()}`,
      ),
  }
}

describe('the bootstrap signer', () => {
  it('SYS-9 signs the cluster information with a token, in the form that kubeadm verifies', async () => {
    const { createToken, waitUntilSigned, read } = await start()
    await createToken('abcdef')
    await waitUntilSigned('abcdef')
    expect(await read()).toEqual({
      kubeconfig: 'clusters: []\n',
      other: 'kept',
      // {"alg":"HS256","kid":"abcdef"}, no payload, and the HMAC that another implementation computed
      'jws-kubeconfig-abcdef': 'eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..aiG7z8XWjjzLz3AwuhjgjACCUfWawXW2oX1uxgNWBSg',
    })
  })

  it('SYS-9 signs again when the kubeconfig changes', async () => {
    const { createToken, waitUntilSigned, waitUntil, read, patch } = await start()
    await createToken('abcdef')
    await waitUntilSigned('abcdef')
    const signatureBefore = (await read())['jws-kubeconfig-abcdef']
    await patch(CLUSTER_INFO, { data: { kubeconfig: 'clusters: [1]\n' } }, 'merge')
    await waitUntil(async () => (await read())['jws-kubeconfig-abcdef'] !== signatureBefore, 'another signature')
  })

  it('SYS-9 removes the signature of a token that has expired or was deleted', async () => {
    const { createToken, waitUntilSigned, clock, delete: remove } = await start()
    await createToken('aaaaaa', { expiration: new Date(clock.nowMs() + HOUR_MS).toISOString() })
    await createToken('bbbbbb')
    await createToken('cccccc')
    await waitUntilSigned('aaaaaa', 'bbbbbb', 'cccccc')
    await clock.advance(HOUR_MS)
    await waitUntilSigned('bbbbbb', 'cccccc')
    await remove(`${SECRETS}/bootstrap-token-bbbbbb`)
    await waitUntilSigned('cccccc')
  })

  it('SYS-9 does not sign with a token that lacks the signing usage', async () => {
    const { createToken, waitUntilSigned } = await start()
    await createToken('aaaaaa', { 'usage-bootstrap-signing': 'false' })
    await createToken('bbbbbb')
    await waitUntilSigned('bbbbbb')
  })
})
