import { describe, expect, it, onTestFinished } from 'vitest'
import { createServerFixture, type Json } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { createAccountTokenController } from './account-token-controller.ts'

const SHOP = '/api/v1/namespaces/shop'
const ACCOUNTS = `${SHOP}/serviceaccounts`
const SECRETS = `${SHOP}/secrets`
const NAME = 'kubernetes.io/service-account.name'
const UID = 'kubernetes.io/service-account.uid'

async function start() {
  const server = await createServerFixture({ hasAccountTokens: true, answers: 'stowage' })
  const { clock } = server
  const sharedOptions = { client: server.clientOf('account-tokens'), clock, random: () => 0.5, log: silentLog }
  const caches = createCacheSet(sharedOptions)
  const createToken = server.accountTokens!.createSecretToken
  const abort = new AbortController()
  const controller = createAccountTokenController({ ...sharedOptions, caches, rootCa: 'PEM', createToken })
  const run = controller.run(abort.signal)
  onTestFinished(async () => {
    abort.abort()
    await run
    await caches.stop()
    await server.store.close()
  })
  await server.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
  const account = (await server.post(ACCOUNTS, { metadata: { name: 'robot' } })).json
  const waitUntilFilled = async (name: string): Promise<Json> => {
    let secret: Json
    await server.waitUntil(async () => {
      secret = (await server.get(`${SECRETS}/${name}`)).json
      return secret.data?.token !== undefined
    }, `the token of ${name}`)
    return secret
  }
  return {
    ...server,
    account,
    createSecret: (name: string, fields: object = {}, annotations: object = { [NAME]: 'robot' }) =>
      server.post(SECRETS, {
        metadata: { name, annotations },
        type: 'kubernetes.io/service-account-token',
        ...fields,
      }),
    waitUntilFilled,
    waitUntilDeleted: (path: string) =>
      server.waitUntil(async () => (await server.get(path)).status === 404, `the deletion of ${path}`),
    /** Sends a request with a Secret's token. */
    async whoAmI(secret: Json) {
      const token = Buffer.from(secret.data.token, 'base64').toString()
      const headers = { authorization: `Bearer ${token}` }
      return server.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, headers)
    },
  }
}

const textOf = (secret: Json, key: string) => Buffer.from(secret.data[key], 'base64').toString()

describe('the account token controller', () => {
  it('SYS-23 fills a Secret with a token that authenticates the account, the CA and the namespace', async () => {
    const { createSecret, waitUntilFilled, whoAmI, account } = await start()
    await createSecret('key', { stringData: { extra: 'kept' } })
    const secret = await waitUntilFilled('key')
    expect(textOf(secret, 'ca.crt')).toBe('PEM')
    expect(textOf(secret, 'namespace')).toBe('shop')
    expect(textOf(secret, 'extra')).toBe('kept')
    expect(secret.metadata.annotations).toEqual({ [NAME]: 'robot', [UID]: account.metadata.uid })
    const { status, json } = await whoAmI(secret)
    expect(status).toBe(201)
    expect(json.status.userInfo).toEqual({
      username: 'system:serviceaccount:shop:robot',
      uid: account.metadata.uid,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
    })
  })

  it('SYS-23 creates a token with the Kubernetes claims, which does not expire', async () => {
    const { createSecret, waitUntilFilled, whoAmI, account, clock } = await start()
    await createSecret('key')
    const secret = await waitUntilFilled('key')
    const claims = JSON.parse(Buffer.from(textOf(secret, 'token').split('.')[1]!, 'base64url').toString())
    expect(claims).toEqual({
      iss: 'kubernetes/serviceaccount',
      sub: 'system:serviceaccount:shop:robot',
      'kubernetes.io/serviceaccount/namespace': 'shop',
      'kubernetes.io/serviceaccount/secret.name': 'key',
      'kubernetes.io/serviceaccount/service-account.name': 'robot',
      'kubernetes.io/serviceaccount/service-account.uid': account.metadata.uid,
    })
    await clock.advance(2 * 24 * 3_600_000)
    expect((await whoAmI(secret)).status).toBe(201)
  })

  it('SYS-23 deletes a Secret of a deleted account, even if a new account has the same name', async () => {
    const { createSecret, waitUntilFilled, waitUntilDeleted, whoAmI, post, delete: remove } = await start()
    await createSecret('key')
    const secret = await waitUntilFilled('key')
    await remove(`${ACCOUNTS}/robot`)
    expect((await whoAmI(secret)).status).toBe(401)
    await waitUntilDeleted(`${SECRETS}/key`)
    await post(ACCOUNTS, { metadata: { name: 'robot' } })
    await createSecret('key', { data: secret.data }, secret.metadata.annotations)
    await waitUntilDeleted(`${SECRETS}/key`)
    expect((await whoAmI(secret)).status).toBe(401)
  })

  it('SYS-23 deletes a Secret that names an account that does not exist', async () => {
    const { createSecret, waitUntilDeleted } = await start()
    expect((await createSecret('key', {}, { [NAME]: 'missing' })).status).toBe(201)
    await waitUntilDeleted(`${SECRETS}/key`)
  })

  it('restores the CA, the namespace and a removed token, and keeps the token otherwise', async () => {
    const { createSecret, waitUntilFilled, waitUntil, whoAmI, get, patch } = await start()
    await createSecret('key')
    const filledSecret = await waitUntilFilled('key')
    await patch(`${SECRETS}/key`, { data: { 'ca.crt': 'eA==', namespace: null } }, 'merge')
    await waitUntil(async () => {
      const { data } = (await get(`${SECRETS}/key`)).json
      return data['ca.crt'] === filledSecret.data['ca.crt'] && data.namespace === filledSecret.data.namespace
    }, 'the CA and the namespace')
    expect((await get(`${SECRETS}/key`)).json.data.token).toBe(filledSecret.data.token)
    await patch(`${SECRETS}/key`, { data: { token: null } }, 'merge')
    expect((await whoAmI(await waitUntilFilled('key'))).status).toBe(201)
  })
})

describe("a Secret's token", () => {
  it('SYS-23 is rejected as soon as the Secret is deleted, invalidated, or has another token', async () => {
    const { createSecret, waitUntilFilled, whoAmI, patch, delete: remove } = await start()
    for (const name of ['deleted', 'invalidated', 'replaced']) {
      await createSecret(name)
      const secret = await waitUntilFilled(name)
      expect((await whoAmI(secret)).status).toBe(201)
      const path = `${SECRETS}/${name}`
      if (name === 'deleted') await remove(path)
      const labels = { 'kubernetes.io/legacy-token-invalid-since': '2026-01-01' }
      if (name === 'invalidated') await patch(path, { metadata: { labels } }, 'merge')
      if (name === 'replaced') await patch(path, { data: { token: 'b3RoZXI=' } }, 'merge')
      const { status, json } = await whoAmI(secret)
      expect(status, name).toBe(401)
      expect(json.message).toContain('the token of system:serviceaccount:shop:robot is no longer valid')
    }
  })

  it('SYS-23 is rejected if only Secrets of another type contain it', async () => {
    const { createSecret, waitUntilFilled, whoAmI, post, delete: remove } = await start()
    await createSecret('key')
    const secret = await waitUntilFilled('key')
    await remove(`${SECRETS}/key`)
    const { data } = secret
    await post(SECRETS, { metadata: { name: 'key' }, type: 'Opaque', data })
    await post(SECRETS, { metadata: { name: 'copy' }, type: 'Opaque', data })
    await post('/api/v1/namespaces/default/secrets', { metadata: { name: 'key' }, type: 'Opaque', data })
    expect((await whoAmI(secret)).status).toBe(401)
  })

  it('SYS-23 is valid for the API server only', async () => {
    const { createSecret, waitUntilFilled, post } = await start()
    await createSecret('key')
    const token = textOf(await waitUntilFilled('key'), 'token')
    const review = async (audiences?: string[]) =>
      (await post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token, audiences } })).json.status
    expect(await review()).toMatchObject({ authenticated: true })
    expect(await review(['vault'])).toMatchObject({ authenticated: false })
  })
})
