import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createCertificationRequest } from '../../api/certification-request.ts'
import { silentLog } from '../../base/log.ts'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { createBootstrapTokens } from './index.ts'

const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const requestOf = (commonName: string, ...organizations: string[]) =>
  Buffer.from(createCertificationRequest({ subject: { commonName, organizations }, key })).toString('base64')
const SPEC = {
  request: requestOf('ann'),
  signerName: 'kubernetes.io/kube-apiserver-client',
  usages: ['client auth'],
}
const createServer = () => createServerFixture({ usesRbac: true })
const create = (api: ServerFixture, spec: object, name = 'a') => api.post(REQUESTS, { metadata: { name }, spec })

describe('CertificateSigningRequest', () => {
  it.each<[string, object, string]>([
    ['a request that is not PEM', { request: 'YQ==' }, 'spec.request: Invalid value: "YQ==": PEM block type must be'],
    ['no usages', { usages: [] }, 'spec.usages: Required value'],
    ['an unknown usage', { usages: ['x'] }, 'spec.usages[0]: Unsupported value: "x"'],
    ['a repeated usage', { usages: ['any', 'any'] }, 'spec.usages[1]: Duplicate value: "any"'],
    ['a signer without a domain', { signerName: 'x' }, 'spec.signerName: Invalid value: "x"'],
    ['a lifetime below ten minutes', { expirationSeconds: 599 }, 'may not specify a duration less than 600 seconds'],
  ])('SYS-9 rejects %s', async (_name, change, message) => {
    const api = await createServer()
    const { status, json } = await create(api, { ...SPEC, ...change })
    expect(status).toBe(422)
    expect(json.message).toContain(message)
  })

  it('SYS-9 records the requester, ignores a submitted one, and keeps the spec on update', async () => {
    const api = await createServer()
    const { json } = await create(api, { ...SPEC, username: 'root', groups: ['system:masters'], uid: 'u' })
    expect(json.spec).toMatchObject({ username: 'tester', groups: ['system:masters', 'system:authenticated'] })
    expect(json.spec.uid).toBeUndefined()
    const changedRequest = { ...json, spec: { ...json.spec, username: 'root', signerName: 'example.com/x' } }
    expect((await api.put(`${REQUESTS}/a`, changedRequest)).json.spec).toEqual(json.spec)
  })

  it('SYS-9 accepts Approved through approval but not through status, and ignores the certificate in an approval', async () => {
    const api = await createServer()
    const { json } = await create(api, SPEC)
    const put = (subresource: string, status: object) =>
      api.put(`${REQUESTS}/a/${subresource}`, { ...json, metadata: { name: 'a' }, status })
    const approvedCondition = { type: 'Approved', status: 'True' }
    expect((await put('status', { conditions: [approvedCondition] })).json.message).toContain(
      'updates may not add a condition of type "Approved"',
    )
    const approval = (await put('approval', { conditions: [approvedCondition], certificate: 'YQ==' })).json
    expect(approval.status).toMatchObject({
      conditions: [{ ...approvedCondition, lastUpdateTime: expect.any(String) }],
    })
    expect(approval.status.certificate).toBeUndefined()
    expect((await put('approval', { conditions: [] })).json.message).toContain(
      'may not remove a condition of type "Approved"',
    )
    expect(
      (await put('approval', { conditions: [approvedCondition, { type: 'Denied', status: 'True' }] })).json.message,
    ).toContain('Approved and Denied conditions are mutually exclusive')
    expect((await put('approval', { conditions: [{ ...approvedCondition, status: 'False' }] })).json.message).toContain(
      'Unsupported value: "False": supported values: "True"',
    )
    expect((await put('status', { ...approval.status, certificate: 'YQ==' })).json.message).toContain(
      'must contain at least one CERTIFICATE PEM block',
    )
  })

  it('SYS-9 requires the verbs approve and sign on the signer', async () => {
    const api = await createServer()
    await create(api, SPEC)
    const ann = { 'impersonate-user': 'ann', 'content-type': 'application/json' }
    const rules = [{ verbs: ['update'], apiGroups: ['certificates.k8s.io'], resources: ['*'] }]
    await api.post(`${RBAC}/clusterroles`, { metadata: { name: 'r' }, rules })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'r' }
    const subjects = [{ kind: 'User', name: 'ann', apiGroup: 'rbac.authorization.k8s.io' }]
    await api.post(`${RBAC}/clusterrolebindings`, { metadata: { name: 'r' }, roleRef, subjects })
    const { json } = await api.get(`${REQUESTS}/a`)
    const put = async (subresource: string, type: string): Promise<Json> => {
      const body = { ...json, metadata: { name: 'a' }, status: { conditions: [{ type, status: 'True' }] } }
      return (await api.call('PUT', `${REQUESTS}/a/${subresource}`, JSON.stringify(body), ann)).json
    }
    const signer = '"kubernetes.io/kube-apiserver-client"'
    expect((await put('approval', 'Approved')).message).toContain(
      `user not permitted to approve requests with signerName ${signer}`,
    )
    expect((await put('status', 'Failed')).message).toContain(
      `user not permitted to sign requests with signerName ${signer}`,
    )
    const signers = { apiGroups: ['certificates.k8s.io'], resources: ['signers'], resourceNames: ['kubernetes.io/*'] }
    await api.patch(`${RBAC}/clusterroles/r`, { rules: [...rules, { ...signers, verbs: ['approve'] }] }, 'merge')
    expect((await put('approval', 'Approved')).kind).toBe('CertificateSigningRequest')
  })

  it('SYS-9 rejects a request for a certificate with the group system:masters', async () => {
    const api = await createServer()
    const { status, json } = await create(api, { ...SPEC, request: requestOf('ann', 'system:masters') })
    expect(status).toBe(403)
    expect(json.message).toContain('signer with system:masters group is not allowed')
  })
})

describe('bootstrap tokens', () => {
  const SECRETS = '/api/v1/namespaces/kube-system/secrets'
  const TOKEN = 'abcdef.0123456789abcdef'

  async function openTokens(stringData: Readonly<Record<string, string>> = {}) {
    const api = await createServer()
    const tokens = createBootstrapTokens({ store: api.store, clock: api.clock, log: silentLog })
    const revocations: unknown[] = []
    await tokens.start({
      objects: api.server.objects.objects,
      signal: new AbortController().signal,
      onRevocation: () => void revocations.push(tokens.authenticate(TOKEN, [])),
    })
    const base = {
      'token-id': 'abcdef',
      'token-secret': '0123456789abcdef',
      'usage-bootstrap-authentication': 'true',
    }
    const secret = {
      metadata: { name: 'bootstrap-token-abcdef' },
      type: 'bootstrap.kubernetes.io/token',
      stringData: { ...base, ...stringData },
    }
    expect((await api.post(SECRETS, secret)).status).toBe(201)
    return { api, revocations, authenticate: (token = TOKEN) => tokens.authenticate(token, []) }
  }

  it('SYS-22 notify the listener after one of them is deleted, so that its watches can be ended', async () => {
    const { authenticate, api, revocations } = await openTokens()
    await api.waitUntil(() => authenticate() !== undefined, 'the token to be known')
    expect(revocations).toEqual([])
    await api.delete(`${SECRETS}/bootstrap-token-abcdef`)
    await api.waitUntil(() => revocations.length > 0, 'the revocation')
    expect(revocations).toEqual([undefined]) // the token no longer authenticates
  })

  it('SYS-9 authenticate as system:bootstrap:ID with the groups of the Secret', async () => {
    const { authenticate, api } = await openTokens({
      'auth-extra-groups': 'system:bootstrappers:a,system:bootstrappers:b',
    })
    await api.waitUntil(() => authenticate() !== undefined, 'the token to be known')
    expect(authenticate()).toEqual({
      user: {
        name: 'system:bootstrap:abcdef',
        groups: ['system:bootstrappers', 'system:bootstrappers:a', 'system:bootstrappers:b', 'system:authenticated'],
      },
    })
    expect(authenticate('abcdef.0123456789abcdee')).toBeUndefined()
    expect(authenticate('abcdeg.0123456789abcdef')).toBeUndefined()
    await api.delete(`${SECRETS}/bootstrap-token-abcdef`)
    expect(authenticate()).toBeUndefined()
  })

  it('SYS-9 are rejected after they expire, with the time only if the secret is correct', async () => {
    const { authenticate, api } = await openTokens({ expiration: '2000-01-01T00:00:00Z' })
    await api.waitUntil(() => authenticate() !== undefined, 'the token to be known')
    expect(authenticate()).toEqual({ rejection: 'the bootstrap token "abcdef" expired at 2000-01-01T00:00:00.000Z' })
    expect(authenticate('abcdef.0123456789abcdee')).toBeUndefined()
  })

  it.each<[string, Readonly<Record<string, string>>]>([
    ['without the usage', { 'usage-bootstrap-authentication': 'yes' }],
    ['with a group outside of system:bootstrappers', { 'auth-extra-groups': 'system:masters' }],
    ['with a token-id that differs from the name of their Secret', { 'token-id': 'abcdeg' }],
  ])('SYS-9 %s are not accepted', async (_name, stringData) => {
    const { authenticate, api } = await openTokens(stringData)
    await api.clock.advance(1_000)
    expect(authenticate()).toBeUndefined()
  })

  it('SYS-9 for one node can request a certificate for this node only, and are rejected if their expiration is not a time', async () => {
    const { authenticate, api } = await openTokens({ 'node-name': 'n1', expiration: 'never' })
    await api.waitUntil(() => authenticate() !== undefined, 'the token to be known')
    expect(authenticate()).toHaveProperty('rejection') // an expiration that is not a time
    const headers = {
      'content-type': 'application/json',
      'impersonate-user': 'system:bootstrap:abcdef',
      'impersonate-group': 'system:bootstrappers:stowage:node-token',
      'impersonate-extra-stowage.dev%2fnode-name': 'n1',
    }
    const request = async (node: string, signerName = 'kubernetes.io/kube-apiserver-client-kubelet') => {
      const spec = { request: requestOf(`system:node:${node}`, 'system:nodes'), signerName, usages: ['client auth'] }
      return api.call('POST', REQUESTS, JSON.stringify({ metadata: { generateName: 'r' }, spec }), headers)
    }
    expect((await request('n1')).status).toBe(201)
    const otherNodeResponse = await request('n2')
    expect(otherNodeResponse.status).toBe(403)
    expect(otherNodeResponse.json.message).toContain('the bootstrap token is for node "n1"')
    expect((await request('n1', 'kubernetes.io/kube-apiserver-client')).status).toBe(403)
  })
})
