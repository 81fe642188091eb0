import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { parseRoute } from '../http/route.ts'
import { createServerFixture, type Json, type ServerFixtureOptions } from '../server.fixture.ts'
import { createAudit } from './audit.ts'
import { parseAuditPolicy } from './policy.ts'

const NAMESPACE = '/api/v1/namespaces/default'
const CLAIM = {
  metadata: { name: 'a' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
}
const CLAIMS = `${NAMESPACE}/persistentvolumeclaims`
const SECRETS = `${NAMESPACE}/secrets`
const MARKER = 'bXktc2VjcmV0LW1hcmtlcg=='

/** Returns a server with these rules, and its audit events so far. */
async function createAuditedServer(rules: string, options: ServerFixtureOptions = {}) {
  const lines: string[] = []
  const policy = await parseAuditPolicy(`apiVersion: audit.k8s.io/v1\nkind: Policy\n${rules}`)
  const audit = createAudit({ policy, write: (line) => void lines.push(line), clock: manualClock() })
  const server = await createServerFixture({ ...options, audit })
  const events = (): Json[] => lines.map((line) => JSON.parse(line))
  return { server: { ...server, audit }, lines, events }
}

const requestOf = (method: string, path: string) => ({
  method,
  path,
  query: new URLSearchParams(),
  headers: { 'content-type': 'application/json' },
  headerNames: () => [],
  headerValues: () => [],
})

const METADATA = 'omitStages: [RequestReceived]\nrules: [{level: Metadata}]'
const ALL = 'rules: [{level: RequestResponse}]'

describe('an audited request', () => {
  it('SYS-21 is recorded with user, verb, object, status and decision', async () => {
    const { server, lines, events } = await createAuditedServer(METADATA)
    const response = await server.post(CLAIMS, CLAIM, { 'User-Agent': 'kubectl/v1', 'Audit-ID': 'my-id' })
    expect(response.headers['audit-id']).toBe('my-id')
    expect(lines[0]).toMatch(/^\{.*\}\n$/)
    expect(events()).toEqual([
      {
        kind: 'Event',
        apiVersion: 'audit.k8s.io/v1',
        level: 'Metadata',
        auditID: 'my-id',
        stage: 'ResponseComplete',
        requestURI: CLAIMS,
        verb: 'create',
        user: { username: 'tester', groups: ['system:masters', 'system:authenticated'] },
        sourceIPs: [],
        userAgent: 'kubectl/v1',
        objectRef: { resource: 'persistentvolumeclaims', namespace: 'default', name: 'a', apiVersion: 'v1' },
        responseStatus: { metadata: {}, code: 201 },
        requestReceivedTimestamp: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
        stageTimestamp: expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/),
        annotations: { 'authorization.k8s.io/decision': 'allow', 'authorization.k8s.io/reason': '' },
      },
    ])
  })

  it('SYS-21 has a random Audit-Id if the client sends no valid one', async () => {
    const { server } = await createAuditedServer(METADATA)
    const first = await server.get(CLAIMS)
    const second = await server.get(CLAIMS, { 'Audit-ID': 'with space' })
    expect(first.headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/)
    expect(second.headers['audit-id']).toMatch(/^[0-9a-f-]{36}$/)
    expect(first.headers['audit-id']).not.toBe(second.headers['audit-id'])
  })

  it('SYS-21 is recorded with the impersonated user and a denial', async () => {
    const { server, events } = await createAuditedServer(METADATA, { usesRbac: true })
    const { status } = await server.get(CLAIMS, { 'Impersonate-User': 'ann' })
    expect(status).toBe(403)
    expect(events()).toMatchObject([
      {
        user: { username: 'tester' },
        impersonatedUser: { username: 'ann', groups: ['system:authenticated'] },
        responseStatus: { code: 403, status: 'Failure', reason: 'Forbidden' },
        annotations: { 'authorization.k8s.io/decision': 'forbid' },
      },
    ])
  })

  it('SYS-21 is recorded with the rule that allows it', async () => {
    const { server, events } = await createAuditedServer(METADATA, { usesRbac: true })
    await server.get('/version', { 'Impersonate-User': 'ann' })
    expect(events()[0].annotations['authorization.k8s.io/reason']).toMatch(/^RBAC: allowed by ClusterRoleBinding/)
  })

  it('SYS-21 with rejected credentials is recorded without a user', async () => {
    const { server, events } = await createAuditedServer(METADATA, {
      authenticator: {
        authenticate: () => ({
          is: 'rejected',
          status: { code: 401, reason: 'Unauthorized', message: 'Unauthorized: the bearer token is not known' },
        }),
        authenticateToken: () => undefined,
      },
    })
    await server.call('DELETE', `${CLAIMS}/a`, undefined, { Authorization: 'Bearer junk' })
    expect(events()).toMatchObject([{ user: {}, verb: 'delete', responseStatus: { code: 401 } }])
    expect(JSON.stringify(events())).not.toContain('junk')
  })

  it('SYS-21 is recorded with bodies at level RequestResponse, even if they are in YAML', async () => {
    const { server, events } = await createAuditedServer(ALL)
    const yaml = 'apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: a\n'
    await server.call('POST', `${NAMESPACE}/serviceaccounts`, yaml, { 'Content-Type': 'application/yaml' })
    await server.waitUntil(() => events().length === 2, 'two events')
    expect(events()).toMatchObject([
      { stage: 'RequestReceived', level: 'RequestResponse' },
      {
        stage: 'ResponseComplete',
        requestObject: { kind: 'ServiceAccount', metadata: { name: 'a' } },
        responseObject: { kind: 'ServiceAccount', metadata: { name: 'a', namespace: 'default' } },
      },
    ])
    expect(events()[0]).not.toHaveProperty('requestObject')
  })

  it('SYS-21 is recorded without managed fields if the policy has omitManagedFields', async () => {
    const { server, events } = await createAuditedServer(
      'omitStages: [RequestReceived]\nomitManagedFields: true\nrules: [{level: RequestResponse}]',
    )
    await server.post(CLAIMS, CLAIM)
    await server.waitUntil(() => events().length === 1, 'an event')
    expect(events()[0].responseObject.metadata).toHaveProperty('uid')
    expect(events()[0].responseObject.metadata).not.toHaveProperty('managedFields')
  })

  it('SYS-21 with a large body is recorded without it and marked', async () => {
    const { server, events } = await createAuditedServer('omitStages: [RequestReceived]\nrules: [{level: Request}]')
    await server.post(`${NAMESPACE}/pods`, { metadata: { name: 'a' }, spec: { x: 'x'.repeat(600 * 1024) } })
    await server.waitUntil(() => events().length === 1, 'an event')
    expect(events()[0].annotations['audit.k8s.io/truncated']).toBe('true')
    expect(events()[0]).not.toHaveProperty('requestObject')
  })

  it('SYS-21 that lists more than 128 KiB, or 8 KiB in YAML, is recorded without the list and marked', async () => {
    const { server, events } = await createAuditedServer(
      'omitStages: [RequestReceived]\nrules: [{level: RequestResponse, verbs: [list]}]',
    )
    const isMarkedWith = async (headers: Record<string, string>) => {
      const count = events().length
      await server.get(CLAIMS, headers)
      await server.waitUntil(() => events().length > count, 'an event')
      const { annotations, responseObject } = events().at(-1)
      expect(responseObject === undefined).toBe('audit.k8s.io/truncated' in annotations)
      return responseObject === undefined
    }
    const createClaims = async (from: number, to: number) => {
      for (let index = from; index < to; index++) {
        const metadata = { name: `claim-${index}`, annotations: { text: 'x'.repeat(5_000) } }
        await server.post(CLAIMS, { ...CLAIM, metadata })
      }
    }
    await createClaims(0, 3)
    expect([await isMarkedWith({}), await isMarkedWith({ accept: 'application/yaml' })]).toEqual([false, true])
    await createClaims(3, 30)
    expect(await isMarkedWith({})).toBe(true)
  })

  it('SYS-21 is recorded without its body and marked while too many large bodies wait to be parsed', async () => {
    const rules = 'omitStages: [RequestReceived]\nrules: [{level: Request}]'
    const { server, lines, events } = await createAuditedServer(rules)
    const text = JSON.stringify({ ...CLAIM, metadata: { name: 'a', annotations: { text: 'x'.repeat(40_000) } } })
    const request = { ...requestOf('POST', CLAIMS), readBody: async () => Buffer.from(text) }
    const route = parseRoute('POST', CLAIMS, request.query)
    const resource = server.server.resources.find('', 'v1', 'persistentvolumeclaims')
    const records = Array.from({ length: 210 }, () => server.audit.start(request, route))
    for (const record of records) await record.setUser({ name: 'ann', groups: [] }).readBody()
    for (const record of records) record.finish({ status: 400, headers: {} }, { resource })
    await server.waitUntil(() => lines.length === 210, 'the events')
    const marks = events().map(({ annotations }) => annotations?.['audit.k8s.io/truncated'] === 'true')
    expect(marks.filter((isMarked) => isMarked)).toHaveLength(9)
    expect(events().filter(({ requestObject }) => requestObject?.metadata.name === 'a')).toHaveLength(201)
  })

  it('SYS-21 that watches is recorded when it starts and when it ends', async () => {
    const { server, events } = await createAuditedServer(METADATA)
    const watch = await server.watch(`${CLAIMS}?watch=1`)
    expect(events()).toMatchObject([{ stage: 'ResponseStarted', verb: 'watch', responseStatus: { code: 200 } }])
    watch.close()
    expect(events()).toMatchObject([{ stage: 'ResponseStarted' }, { stage: 'ResponseComplete' }])
    expect(events()[0].auditID).toBe(events()[1].auditID)
  })

  it('SYS-21 is recorded with masked values of query parameters that may hold credentials', async () => {
    const { server, events } = await createAuditedServer(METADATA)
    await server.get('/version?access_token=abc123&pretty=true')
    expect(events()[0].requestURI).toBe('/version?access_token=REDACTED&pretty=true')
  })

  it('SYS-21 that commits writes is recorded with their names, but without their contents', async () => {
    const { server, events } = await createAuditedServer(
      'omitStages: [RequestReceived]\nrules: [{level: RequestResponse, resources: [{group: "", resources: [secrets]}]}]',
    )
    const secret = { metadata: { name: 'a', namespace: 'default' }, data: { key: MARKER } }
    const write = { verb: 'create', apiVersion: 'v1', resource: 'secrets', namespace: 'default', body: secret }
    const { status } = await server.post('/apis/stowage.dev/v1/commits', { writes: [write] })
    expect(status).toBe(200)
    await server.post('/apis/stowage.dev/v1/commits', { writes: [] })
    expect(events()).toMatchObject([
      {
        level: 'Metadata',
        annotations: { 'audit.stowage.dev/writes': expect.stringMatching(/^create secrets default\//) },
      },
    ])
    expect(JSON.stringify(events())).not.toContain(MARKER)
  })
})

describe('credentials', () => {
  it('SYS-21 in a Secret do not appear, even if the Secret is sent to another resource', async () => {
    const { server, lines, events } = await createAuditedServer(ALL)
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, data: { key: MARKER } }
    await server.post(SECRETS, secret)
    await server.patch(`${SECRETS}/a`, { stringData: { other: MARKER } })
    await server.post(SECRETS, { ...secret, metadata: { name: 'b' }, data: { [MARKER]: MARKER } }) // 422
    await server.post(SECRETS, { ...secret, metadata: { name: MARKER }, data: { key: `!${MARKER}` } }) // 400
    await server.get(SECRETS)
    await server.get(`${SECRETS}/a`)
    await server.post(`${NAMESPACE}/pods`, secret) // sent to another resource
    await server.call('POST', `${NAMESPACE}/pods`, `kind: Secret\ndata: {k: ${MARKER}}\n`, {
      'Content-Type': 'application/yaml',
    })
    await server.delete(`${SECRETS}/a`)
    await server.waitUntil(() => lines.length >= 18, 'two events of each request')
    expect(
      events()
        .filter(({ objectRef }) => objectRef.resource === 'secrets')
        .every(({ level }) => level === 'Metadata'),
    ).toBe(true)
    expect(lines.join('')).not.toContain(MARKER)
  })

  it('SYS-21 in a TokenReview do not appear', async () => {
    const { server, lines } = await createAuditedServer(ALL)
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: MARKER } }
    await server.post('/apis/authentication.k8s.io/v1/tokenreviews', review)
    expect(lines).toHaveLength(2)
    expect(lines.join('')).not.toContain(MARKER)
  })
})
