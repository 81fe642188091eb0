import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createCertificationRequest } from '../../api/certification-request.ts'
import type { SubjectName } from '../../api/distinguished-name.ts'
import { ApiError } from '../../api/status-error.ts'
import { loadOrCreatePki } from '../../apiserver/index.ts'
import { createServerFixture, type Json } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { type CacheSet, createCacheSet } from '../../runtime/index.ts'
import { createCertificateController } from './certificate-controller.ts'
import { createTokenCleaner } from './token-cleaner.ts'

const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const HOUR_MS = 3_600_000

async function startController({ wrapCleanerClient = (client: Client) => client } = {}) {
  const api = await createServerFixture({ usesRbac: true, recordsRuleUse: true, answers: 'stowage' })
  const { clock, authorizer } = api
  const pki = await loadOrCreatePki({ dir: await mkdtemp(join(tmpdir(), 'pki-')), clock })
  const cacheSets: CacheSet[] = []
  const depsWith = (client: Client): ControllerDeps => {
    const sharedOptions = { client, clock, random: () => 0.5, log: silentLog }
    const caches = createCacheSet(sharedOptions)
    cacheSets.push(caches)
    return { ...sharedOptions, caches }
  }
  const controller = createCertificateController({
    ...depsWith(api.clientOf('certificates')),
    hasPermission: (user, subresource) =>
      authorizer.authorize({
        user,
        verb: 'create',
        group: 'certificates.k8s.io',
        version: 'v1',
        resource: 'certificatesigningrequests',
        subresource,
      }).allowed,
    sign: pki.signCertificate,
  })
  const cleanerMessages: string[] = []
  const tokenCleaner = createTokenCleaner({
    ...depsWith(wrapCleanerClient(api.clientOf('token-cleaner'))),
    log: { ...silentLog, info: (_, message) => void cleanerMessages.push(message) },
  })
  const stop = new AbortController()
  const runs = Promise.all([controller.run(stop.signal), tokenCleaner.run(stop.signal)])
  onTestFinished(async () => {
    stop.abort()
    await runs
    for (const caches of cacheSets) await caches.stop()
  })
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    api,
    pki,
    cleanerMessages,
    /** Creates a request as a user and returns it. */
    async request(
      user: { name: string; group?: string },
      spec: RequestSpec,
      key: KeyObject = privateKey,
    ): Promise<Json> {
      const body = JSON.stringify({ metadata: { generateName: 'csr-' }, spec: specOf(spec, key) })
      const headers = {
        'content-type': 'application/json',
        'impersonate-user': user.name,
        ...(user.group ? { 'impersonate-group': user.group } : {}),
      }
      return (await api.call('POST', REQUESTS, body, headers)).json
    },
    /** Approves a request as an administrator. */
    async approve(request: Json): Promise<void> {
      const conditions = [{ type: 'Approved', status: 'True', reason: 'Test' }]
      const path = `${REQUESTS}/${request.metadata.name}/approval`
      expect((await api.put(path, { ...request, status: { conditions } })).status).toBe(200)
    },
    read: async (name: string): Promise<Json> => (await api.get(`${REQUESTS}/${name}`)).json,
    async waitUntilIssued(name: string): Promise<X509Certificate> {
      let request: Json
      await api.waitUntil(async () => {
        request = (await api.get(`${REQUESTS}/${name}`)).json
        return request.status?.certificate !== undefined
      }, 'the certificate')
      return new X509Certificate(Buffer.from(request.status.certificate, 'base64'))
    },
  }
}

interface RequestSpec {
  readonly subject: SubjectName
  readonly signerName?: string
  readonly usages?: readonly string[]
  readonly expirationSeconds?: number
  /** Subject alternative names in openssl's syntax, such as `DNS:worker-1`. */
  readonly alternativeNames?: string
}

const KUBELET = 'kubernetes.io/kube-apiserver-client-kubelet'
const specOf = ({ subject, signerName = KUBELET, alternativeNames, ...otherFields }: RequestSpec, key: KeyObject) => ({
  request: Buffer.from(
    alternativeNames ? opensslRequest(subject, alternativeNames) : createCertificationRequest({ subject, key }),
  ).toString('base64'),
  signerName,
  usages: ['digital signature', 'client auth'],
  ...otherFields,
})

/** Returns a request with alternative names, which openssl creates with a new key. */
function opensslRequest({ commonName, organizations = [] }: SubjectName, alternativeNames: string): string {
  const subject = [...organizations.map((organization) => `/O=${organization}`), `/CN=${commonName}`].join('')
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', '/dev/null']
  const extension = `subjectAltName=${alternativeNames}`
  return execFileSync('openssl', ['req', '-new', ...key, '-subj', subject, '-addext', extension], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

const nodeSubject = (name: string) => ({ commonName: `system:node:${name}`, organizations: ['system:nodes'] })
const TOKEN_USER = { name: 'system:bootstrap:abcdef', group: 'system:bootstrappers:stowage:node-token' }

const SERVING_SPEC = {
  subject: nodeSubject('n1'),
  signerName: 'kubernetes.io/kubelet-serving',
  usages: ['digital signature', 'server auth'],
}
const NODE_USER = { name: 'system:node:n1', group: 'system:nodes' }

describe('the certificate controller', () => {
  it("SYS-9 approves a node's serving certificate if the node requests it with only its agent's name", async () => {
    const { request, read, waitUntilIssued } = await startController()
    const node = { name: 'system:node:worker-1', group: 'system:nodes' }
    const spec = (subject: string, alternativeNames: string) => ({
      subject: { commonName: `system:node:${subject}`, organizations: ['system:nodes'] },
      signerName: 'kubernetes.io/kubelet-serving',
      usages: ['digital signature', 'server auth'],
      alternativeNames,
    })
    const own = await request(node, spec('worker-1', 'DNS:worker-1.node.stowage.internal'))
    const certificate = await waitUntilIssued(own.metadata.name)
    expect(certificate.subjectAltName).toBe('DNS:worker-1.node.stowage.internal')
    const withAddress = await request(node, spec('worker-1', 'DNS:worker-1.node.stowage.internal,IP:10.0.0.1'))
    const withOtherName = await request(node, spec('worker-1', 'DNS:kubernetes'))
    const later = await request(node, spec('worker-1', 'DNS:worker-1.node.stowage.internal'))
    await waitUntilIssued(later.metadata.name)
    for (const { metadata } of [withAddress, withOtherName]) {
      expect((await read(metadata.name)).status?.conditions).toBeUndefined()
    }
    const ofOther = await request(node, spec('worker-2', 'DNS:worker-2.node.stowage.internal'))
    expect(ofOther.message).toContain('can only create a node CSR with CN=system:node:worker-1')
    const ofServer = await request(
      { name: 'alice', group: 'system:masters' },
      { subject: { commonName: 'kube-apiserver-kubelet-client' }, signerName: 'kubernetes.io/kube-apiserver-client' },
    )
    expect(ofServer.message).toContain('is reserved for the API server')
  })

  it('SYS-9 approves and signs the certificate of a node that joins with a token', async () => {
    const cluster = await startController()
    const { metadata, spec } = await cluster.request(TOKEN_USER, { subject: nodeSubject('n1') })
    expect(spec).toMatchObject({ username: TOKEN_USER.name, groups: [TOKEN_USER.group, 'system:authenticated'] })
    const certificate = await cluster.waitUntilIssued(metadata.name)
    expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:n1')
    expect(certificate.verify(new X509Certificate(cluster.pki.caCert).publicKey)).toBe(true)
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']) // client auth
    const lifetimeMs = Date.parse(certificate.validTo) - Date.parse(certificate.validFrom)
    expect(lifetimeMs).toBe(365 * 24 * HOUR_MS)
    expect((await cluster.read(metadata.name)).status.conditions).toMatchObject([
      { type: 'Approved', status: 'True', reason: 'AutoApproved' },
    ])
  })

  it('SYS-22 renews the certificate of a node, with the requested lifetime', async () => {
    const cluster = await startController()
    const node = { name: 'system:node:n1', group: 'system:nodes' }
    const { metadata } = await cluster.request(node, { subject: nodeSubject('n1'), expirationSeconds: 3_600 })
    const certificate = await cluster.waitUntilIssued(metadata.name)
    expect(Date.parse(certificate.validTo) - cluster.api.clock.nowMs()).toBeLessThanOrEqual(HOUR_MS)
    expect(Date.parse(certificate.validTo) - cluster.api.clock.nowMs()).toBeGreaterThan(HOUR_MS - 120_000)
  })

  it("SYS-9 receives no request of a node for another node's certificate, because the API server rejects it", async () => {
    const cluster = await startController()
    const node = { name: 'system:node:n1', group: 'system:nodes' }
    const { code, message } = await cluster.request(node, { subject: nodeSubject('n2') })
    expect({ code, message }).toMatchObject({
      code: 403,
      message: expect.stringContaining('can only create a node CSR with CN=system:node:n1'),
    })
  })

  it("SYS-9 leaves users' client certificates to an administrator, who can approve or deny them", async () => {
    const cluster = await startController()
    const admin = { name: 'admin', group: 'system:masters' }
    const requests = await Promise.all(
      ['a', 'b'].map((name) =>
        cluster.request(admin, {
          subject: { commonName: name, organizations: ['team'] },
          signerName: 'kubernetes.io/kube-apiserver-client',
        }),
      ),
    )
    await cluster.api.clock.advance(60_000)
    const [approvedName, deniedName] = requests.map(({ metadata }) => metadata.name)
    expect((await cluster.read(approvedName)).status?.conditions ?? []).toEqual([])
    const decide = async (name: string, type: string) => {
      const conditions = [{ type, status: 'True', reason: 'Test', message: 'decided' }]
      const request = await cluster.read(name)
      return cluster.api.put(`${REQUESTS}/${name}/approval`, { ...request, status: { conditions } })
    }
    expect((await decide(approvedName, 'Approved')).status).toBe(200)
    expect((await decide(deniedName, 'Denied')).status).toBe(200)
    expect((await cluster.waitUntilIssued(approvedName)).subject).toBe('O=team\nCN=a')
    expect((await cluster.read(deniedName)).status.certificate).toBeUndefined()
  })

  it('SYS-9 fails an approved request that its signer does not allow', async () => {
    const cluster = await startController()
    const admin = { name: 'admin', group: 'system:masters' }
    const spec = {
      subject: { commonName: 'ann' },
      usages: ['server auth'],
      signerName: 'kubernetes.io/kube-apiserver-client',
    }
    const request = await cluster.request(admin, spec)
    const { name } = request.metadata
    const conditions = [{ type: 'Approved', status: 'True' }]
    await cluster.api.put(`${REQUESTS}/${name}/approval`, { ...request, status: { conditions } })
    await cluster.api.waitUntil(
      async () => (await cluster.read(name)).status.conditions.some(({ type }: Json) => type === 'Failed'),
      'the condition Failed',
    )
    expect((await cluster.read(name)).status.conditions.at(-1)).toMatchObject({
      reason: 'SignerValidationFailure',
      message: 'usages must contain "client auth"',
    })
  })

  it('SYS-9 signs the serving certificate of a node with its names when an administrator has approved it', async () => {
    const cluster = await startController()
    const request = await cluster.request(NODE_USER, {
      ...SERVING_SPEC,
      alternativeNames: 'DNS:n1.example.com,IP:192.0.2.1',
    })
    await cluster.api.clock.advance(120_000)
    expect((await cluster.read(request.metadata.name)).status?.conditions ?? []).toEqual([])
    await cluster.approve(request)
    const certificate = await cluster.waitUntilIssued(request.metadata.name)
    expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:n1')
    expect(certificate.subjectAltName).toBe('DNS:n1.example.com, IP Address:192.0.2.1')
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']) // server auth
    expect(certificate.verify(new X509Certificate(cluster.pki.caCert).publicKey)).toBe(true)
  })

  it.each([
    ['no name', {}, 'DNS or IP subjectAltName is required'],
    ['an email address', { alternativeNames: 'DNS:n1,email:a@b' }, 'Email subjectAltNames are not allowed'],
    ['a URI', { alternativeNames: 'URI:https://n1' }, 'URI subjectAltNames are not allowed'],
    ['client auth', { alternativeNames: 'DNS:n1', usages: ['client auth'] }, 'usages must contain "server auth"'],
    [
      'another organization',
      { alternativeNames: 'DNS:n1', subject: { commonName: 'system:node:n1', organizations: ['team'] } },
      'subject organization is not system:nodes',
    ],
  ])('SYS-9 fails the approved serving certificate of a node with %s', async (_name, spec, message) => {
    const cluster = await startController()
    const request = await cluster.request(NODE_USER, { ...SERVING_SPEC, ...spec })
    await cluster.approve(request)
    const { name } = request.metadata
    await cluster.api.waitUntil(
      async () => (await cluster.read(name)).status.conditions.some(({ type }: Json) => type === 'Failed'),
      'the condition Failed',
    )
    expect((await cluster.read(name)).status.conditions.at(-1).message).toBe(message)
  })

  it("SYS-9 receives no request of a node for another node's serving certificate, because the API server rejects it", async () => {
    const cluster = await startController()
    const spec = { ...SERVING_SPEC, subject: nodeSubject('n2'), alternativeNames: 'DNS:n2' }
    expect((await cluster.request(NODE_USER, spec)).code).toBe(403)
  })

  it('deletes an issued request after an hour and a pending one after a day', async () => {
    const cluster = await startController()
    const issuedName = (await cluster.request(TOKEN_USER, { subject: nodeSubject('n1') })).metadata.name
    const admin = { name: 'admin', group: 'system:masters' }
    const signerName = 'kubernetes.io/kube-apiserver-client'
    const pendingName = (await cluster.request(admin, { subject: { commonName: 'ann' }, signerName })).metadata.name
    await cluster.waitUntilIssued(issuedName)
    const exists = async (name: string) => (await cluster.api.get(`${REQUESTS}/${name}`)).status === 200
    await cluster.api.clock.advance(0.9 * HOUR_MS)
    expect(await exists(issuedName)).toBe(true)
    await cluster.api.clock.advance(0.2 * HOUR_MS)
    await cluster.api.waitUntil(async () => !(await exists(issuedName)), 'the deletion of the issued request')
    expect(await exists(pendingName)).toBe(true)
    await cluster.api.clock.advance(23 * HOUR_MS)
    await cluster.api.waitUntil(async () => !(await exists(pendingName)), 'the deletion of the pending request')
  })
})

describe('the token cleaner', () => {
  it('does not log a deletion if the token has changed since it was read', async () => {
    let attempts = 0
    const { api, cleanerMessages } = await startController({
      wrapCleanerClient: (client) => ({
        ...client,
        delete: async () => {
          attempts++
          throw new ApiError(409, 'Conflict', 'the object has been modified')
        },
      }),
    })
    const stringData = { expiration: new Date(api.clock.nowMs() + HOUR_MS).toISOString() }
    const metadata = { name: 'bootstrap-token-aaaaaa' }
    await api.post('/api/v1/namespaces/kube-system/secrets', {
      metadata,
      type: 'bootstrap.kubernetes.io/token',
      stringData,
    })
    await api.clock.advance(26 * HOUR_MS)
    await api.waitUntil(() => attempts > 0, 'the attempt to delete the token')
    expect(cleanerMessages).toEqual([])
  })

  it('deletes a bootstrap token a day after it expired, and keeps one that does not expire', async () => {
    const { api, cleanerMessages } = await startController()
    const secrets = '/api/v1/namespaces/kube-system/secrets'
    const expiration = new Date(api.clock.nowMs() + HOUR_MS).toISOString()
    for (const [name, stringData] of Object.entries({
      'bootstrap-token-aaaaaa': { expiration },
      'bootstrap-token-bbbbbb': {},
    })) {
      await api.post(secrets, { metadata: { name }, type: 'bootstrap.kubernetes.io/token', stringData })
    }
    const exists = async (name: string) => (await api.get(`${secrets}/${name}`)).status === 200
    await api.clock.advance(24 * HOUR_MS)
    expect(await exists('bootstrap-token-aaaaaa')).toBe(true)
    await api.clock.advance(2 * HOUR_MS)
    await api.waitUntil(async () => !(await exists('bootstrap-token-aaaaaa')), 'the deletion of the token')
    expect(await exists('bootstrap-token-bbbbbb')).toBe(true)
    expect(cleanerMessages).toEqual(['deleted an expired bootstrap token'])
  })
})
