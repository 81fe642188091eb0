// Tests the tokens of ServiceAccounts through the API: TokenRequest, use of the token, TokenReview, discovery of the issuer.
import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { serviceAccountKind } from '../../api/kinds/service-account/service-account.ts'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { DEFAULT_ISSUER } from './default-issuer.ts'
import { signJwt } from './jwt.ts'
import { generateSigningKey, tokenKeysOf } from './test-tokens.fixture.ts'

const SHOP = '/api/v1/namespaces/shop'
const ACCOUNTS = `${SHOP}/serviceaccounts`
const TOKEN = `${ACCOUNTS}/robot/token`

let server: ServerFixture
beforeEach(async () => {
  server = await createServerFixture({ hasAccountTokens: true })
  await server.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
  await server.post(ACCOUNTS, { metadata: { name: 'robot' } })
})
afterEach(async () => {
  await server.clock.nextTurn() // the connections of ended watches close
  await server.store.close()
})

const requestToken = async (spec: object = {}, metadata: object = {}): Promise<Json> =>
  (await server.post(TOKEN, { metadata, spec })).json
const issueToken = async (spec: object = {}): Promise<string> => (await requestToken(spec)).status.token
const whoAmI = (token: string) =>
  server.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, { authorization: `Bearer ${token}` })
const reviewToken = async (token: string, audiences?: string[]): Promise<Json> =>
  (await server.post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token, audiences } })).json.status
const partOf = (token: string, index: number): Json =>
  JSON.parse(Buffer.from(token.split('.')[index]!, 'base64url').toString())
const claimsOf = (token: string): Json => partOf(token, 1)
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const createPod = (name: string, accountName = 'robot') =>
  server.post(`${SHOP}/pods`, {
    metadata: { name },
    spec: { serviceAccountName: accountName, nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
  })
const watchUrl = () => `/api/v1/configmaps?watch=1&resourceVersion=${server.store.revision}`
const podRef = (name: string) => ({ boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name } })

describe('TokenRequest', () => {
  it('SYS-23 issues a token with the Kubernetes claims', async () => {
    const response = await server.post(TOKEN, { spec: {} })
    expect(response.status).toBe(201)
    const { kind, apiVersion, metadata, spec, status } = response.json
    expect({ kind, apiVersion }).toEqual({ kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1' })
    const account = (await server.get(`${ACCOUNTS}/robot`)).json
    expect(metadata).toMatchObject({ name: 'robot', namespace: 'shop', uid: account.metadata.uid })
    expect(spec).toEqual({ audiences: [DEFAULT_ISSUER], expirationSeconds: 3_600 })
    const nowSeconds = Math.floor(server.clock.nowMs() / 1_000)
    expect(claimsOf(status.token)).toEqual({
      iss: DEFAULT_ISSUER,
      sub: 'system:serviceaccount:shop:robot',
      aud: [DEFAULT_ISSUER],
      iat: nowSeconds,
      nbf: nowSeconds,
      exp: nowSeconds + 3_600,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      'kubernetes.io': { namespace: 'shop', serviceaccount: { name: 'robot', uid: account.metadata.uid } },
    })
    expect(Date.parse(status.expirationTimestamp)).toBe((nowSeconds + 3_600) * 1_000)
    expect(partOf(status.token, 0)).toEqual({ alg: 'ES256', kid: expect.any(String) })
  })

  it('SYS-23 stores nothing', async () => {
    const previousRevision = server.store.revision
    await issueToken()
    expect(server.store.revision).toBe(previousRevision)
  })

  it('is available to components in the server process', async () => {
    const object = { metadata: { namespace: 'shop', name: 'robot' }, spec: { audiences: ['vault'] } } as Json
    const tokenRequest: Json = await server.client().create(serviceAccountKind, object, { subresource: 'token' })
    expect(claimsOf(tokenRequest.status.token).aud).toEqual(['vault'])
  })

  it('shortens a lifetime above the maximum and warns', async () => {
    const { headers, json } = await server.post(TOKEN, { spec: { expirationSeconds: 1_000_000 } })
    expect(json.spec.expirationSeconds).toBe(86_400)
    expect(String(headers.warning)).toContain('requested expiration of 1000000 seconds shortened to 86400 seconds')
  })

  it.each([
    [{ expirationSeconds: 599 }, {}, 422, 'may not specify a duration less than 10 minutes'],
    [{ expirationSeconds: 2 ** 32 + 1 }, {}, 422, 'may not specify a duration larger than 2^32 seconds'],
    [{}, { name: 'other' }, 422, 'must match the service account name'],
    [{}, { namespace: 'other' }, 422, 'must match the service account namespace'],
    [{}, { uid: 'other' }, 409, 'does not match the UID of the service account'],
    [{ boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'x' } }, {}, 400, 'cannot bind token to object'],
    [{ boundObjectRef: { kind: 'Pod', apiVersion: 'apps/v1', name: 'x' } }, {}, 400, 'cannot bind token to object'],
    [podRef('missing'), {}, 404, 'pods "missing" not found'],
    [podRef('other'), {}, 400, 'pod running with different serviceaccount name'],
    [{ boundObjectRef: { ...podRef('web').boundObjectRef, uid: 'u' } }, {}, 409, 'does not match the UID in record'],
  ])('rejects the spec %j and the metadata %j with status %i', async (spec, metadata, status, message) => {
    await createPod('web')
    await server.post(ACCOUNTS, { metadata: { name: 'other' } })
    await createPod('other', 'other')
    const response = await server.post(TOKEN, { metadata, spec })
    expect(response.status).toBe(status)
    expect(response.json.message).toContain(message)
  })

  it('returns 404 for an account that does not exist', async () => {
    expect((await server.post(`${ACCOUNTS}/missing/token`, { spec: {} })).status).toBe(404)
  })
})

describe('a ServiceAccount token', () => {
  it('SYS-23 authenticates the account with its groups and credential ID', async () => {
    const token = await issueToken()
    const { userInfo } = (await whoAmI(token)).json.status
    expect(userInfo).toEqual({
      username: 'system:serviceaccount:shop:robot',
      uid: (await server.get(`${ACCOUNTS}/robot`)).json.metadata.uid,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [`JTI=${claimsOf(token).jti}`] },
    })
  })

  it('names the pod that it is bound to, and the node of the pod', async () => {
    await server.post('/api/v1/nodes', { metadata: { name: 'n1' } })
    const pod = (await createPod('web')).json
    const { extra } = (await whoAmI(await issueToken(podRef('web')))).json.status.userInfo
    expect(extra).toMatchObject({
      'authentication.kubernetes.io/pod-name': ['web'],
      'authentication.kubernetes.io/pod-uid': [pod.metadata.uid],
      'authentication.kubernetes.io/node-name': ['n1'],
      'authentication.kubernetes.io/node-uid': [expect.any(String)],
    })
  })

  it('SYS-23 is rejected as soon as its account is deleted, and stays rejected when the account is recreated', async () => {
    const token = await issueToken()
    expect((await whoAmI(token)).status).toBe(201)
    await server.delete(`${ACCOUNTS}/robot`)
    expect((await whoAmI(token)).status).toBe(401)
    await server.post(ACCOUNTS, { metadata: { name: 'robot' } })
    expect((await whoAmI(token)).status).toBe(401)
  })

  it.each([
    ['Pod', `${SHOP}/pods`],
    ['Secret', `${SHOP}/secrets`],
    ['Node', '/api/v1/nodes'],
  ])('SYS-23 that is bound to a %s is rejected as soon as the object is deleted', async (kind, collection) => {
    if (kind === 'Pod') await createPod('bound')
    else await server.post(collection, { metadata: { name: 'bound' } })
    const token = await issueToken({ boundObjectRef: { kind, apiVersion: 'v1', name: 'bound' } })
    expect((await whoAmI(token)).status).toBe(201)
    await server.delete(`${collection}/bound`, { gracePeriodSeconds: 0 })
    expect((await whoAmI(token)).status).toBe(401)
  })

  it.each([
    ['account', ACCOUNTS, 'robot', {}],
    ['Pod', `${SHOP}/pods`, 'bound', podRef('bound')],
    ['Secret', `${SHOP}/secrets`, 'bound', { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'bound' } }],
    ['Node', '/api/v1/nodes', 'bound', { boundObjectRef: { kind: 'Node', apiVersion: 'v1', name: 'bound' } }],
  ])(
    'SYS-23 ends its open watches as soon as its %s is deleted, but no others',
    async (kind, collection, name, spec) => {
      await server.post(ACCOUNTS, { metadata: { name: 'other' } })
      if (kind === 'Pod') await createPod('bound')
      else if (kind !== 'account') await server.post(collection, { metadata: { name: 'bound' } })
      const watchAs = (token: string) => server.watch(watchUrl(), { authorization: `Bearer ${token}` })
      const watch = await watchAs(await issueToken(spec))
      const otherWatches = [
        await server.watch(watchUrl()),
        await watchAs((await server.post(`${ACCOUNTS}/other/token`, { spec: {} })).json.status.token),
      ]
      await server.delete(`${collection}/${name}`, { gracePeriodSeconds: 0 })
      expect(watch.isEnded).toBe(true)
      expect(otherWatches.map(({ isEnded }) => isEnded)).toEqual([false, false])
    },
  )

  it('SYS-23 ends its open watches when a finalizer has retained its account for 60 s', async () => {
    const account = (await server.get(`${ACCOUNTS}/robot`)).json
    await server.put(`${ACCOUNTS}/robot`, {
      ...account,
      metadata: { ...account.metadata, finalizers: ['example.com/a'] },
    })
    const watch = await server.watch(watchUrl(), {
      authorization: `Bearer ${await issueToken()}`,
    })
    await server.delete(`${ACCOUNTS}/robot`)
    await server.clock.advance(59_000)
    expect(watch.isEnded).toBe(false)
    await server.clock.advance(2_000)
    expect(watch.isEnded).toBe(true)
  })

  it('stays valid for 60 s after the deletion time of a pod that is terminating', async () => {
    await createPod('web')
    const token = await issueToken(podRef('web'))
    await server.delete(`${SHOP}/pods/web`, { gracePeriodSeconds: 10 })
    await server.clock.advance(69_000)
    expect((await whoAmI(token)).status).toBe(201)
    await server.clock.advance(2_000)
    expect((await whoAmI(token)).status).toBe(401)
  })

  it('SYS-23 is rejected one minute after it has expired', async () => {
    const token = await issueToken({ expirationSeconds: 600 })
    await server.clock.advance(600_000 + 59_000)
    expect((await whoAmI(token)).status).toBe(201)
    await server.clock.advance(3_000)
    const { status, json } = await whoAmI(token)
    expect(status).toBe(401)
    expect(json.message).toContain('expired at')
  })

  it('SYS-23 for another audience is rejected by the API server, and confirmed for that audience by a TokenReview', async () => {
    const token = await issueToken({ audiences: ['vault'] })
    expect((await whoAmI(token)).status).toBe(401)
    expect(await reviewToken(token, ['vault', 'x'])).toMatchObject({ authenticated: true, audiences: ['vault'] })
    expect(await reviewToken(token)).toMatchObject({ authenticated: false })
  })

  it('SYS-23 is rejected without detail if it is forged', async () => {
    const token = await issueToken()
    const [header = '', payload = '', signature = ''] = token.split('.')
    const { kid } = partOf(token, 0)
    const jwks = (await server.get('/openid/v1/jwks')).text
    const stranger = generateSigningKey()
    const hmacInput = `${encode({ alg: 'HS256', kid })}.${payload}`
    const forgeries = {
      'alg none': `${encode({ alg: 'none', kid })}.${payload}.`,
      'alg none with a signature': `${encode({ alg: 'none', kid })}.${payload}.${signature}`,
      'HS256 keyed with the public key': `${hmacInput}.${createHmac('sha256', jwks).update(hmacInput).digest('base64url')}`,
      'unknown kid': signJwt(claimsOf(token), stranger),
      'signature of another key': signJwt(claimsOf(token), { ...stranger, kid }),
      'no kid': `${encode({ alg: 'ES256' })}.${payload}.${signature}`,
      'other claims': `${header}.${encode({ ...claimsOf(token), exp: 9e9 })}.${signature}`,
      'no signature': `${header}.${payload}`,
      'a fourth part': `${token}.x`,
      'another issuer': signJwt({ ...claimsOf(token), iss: 'https://other' }, stranger),
      'broken header': `eyJ.${payload}.${signature}`,
    }
    for (const [name, forgery] of Object.entries(forgeries)) {
      const { status, json } = await whoAmI(forgery)
      expect({ name, status, message: json.message }).toEqual({
        name,
        status: 401,
        message: 'Unauthorized: the bearer token is not known',
      })
    }
    expect((await whoAmI(token)).status).toBe(201)
  })

  it('SYS-23 is rejected if it has another issuer, subject or audience, even though it has a valid signature', async () => {
    const key = generateSigningKey()
    server.accountTokens!.setKeys(tokenKeysOf(key))
    const claims = claimsOf(await issueToken())
    expect((await whoAmI(signJwt(claims, key))).status).toBe(201)
    for (const change of [{ iss: 'https://other' }, { sub: 'system:serviceaccount:shop:admin' }, { aud: 'x' }])
      expect((await whoAmI(signJwt({ ...claims, ...change }, key))).status).toBe(401)
  })

  it('SYS-23 stays valid after a key rotation until its key is removed', async () => {
    const [oldKey, newKey] = [generateSigningKey(), generateSigningKey()]
    server.accountTokens!.setKeys(tokenKeysOf(oldKey))
    const token = await issueToken()
    server.accountTokens!.setKeys(tokenKeysOf(newKey, oldKey))
    expect(partOf(await issueToken(), 0).kid).toBe(newKey.kid)
    expect((await whoAmI(token)).status).toBe(201)
    const watch = await server.watch(watchUrl(), { authorization: `Bearer ${token}` })
    server.accountTokens!.setKeys(tokenKeysOf(newKey))
    expect((await whoAmI(token)).status).toBe(401)
    expect(watch.isEnded).toBe(true)
  })
})

describe('the discovery of the issuer', () => {
  it('publishes the issuer and the public keys', async () => {
    const { json: configuration } = await server.get('/.well-known/openid-configuration')
    expect(configuration).toEqual({
      issuer: DEFAULT_ISSUER,
      jwks_uri: 'https://127.0.0.1:7443/openid/v1/jwks',
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    })
    const { json, headers } = await server.get('/openid/v1/jwks')
    expect(headers).toMatchObject({
      'content-type': 'application/jwk-set+json',
      'cache-control': 'public, max-age=3600',
    })
    const { kid } = partOf(await issueToken(), 0)
    expect(json.keys).toEqual([
      { use: 'sig', kid, alg: 'ES256', kty: 'EC', crv: 'P-256', x: expect.any(String), y: expect.any(String) },
    ])
    expect((await server.get('/')).json.paths).toContain('/openid/v1/jwks')
  })
})
