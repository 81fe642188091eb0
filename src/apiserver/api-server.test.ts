import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ApiRequest, StreamSink } from './http/messages.ts'
import { MASTERS_GROUP } from './security/index.ts'
import { createServerFixture, type ServerFixture } from './server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'

let api: ServerFixture
afterEach(() => api.store.close())

describe("a request's timeout", () => {
  it.each([`GET ${MAPS}`, `GET ${MAPS}/a`, `DELETE ${MAPS}/a`, 'GET /version', 'GET /apis'])(
    'SYS-10 is rejected with 400 if it is malformed: %s',
    async (request) => {
      api = await createServerFixture()
      const [method = '', url = ''] = request.split(' ')
      const { json } = await api.call(method, `${url}?timeout=invalid`)
      expect(json).toMatchObject({ kind: 'Status', code: 400, reason: 'BadRequest' })
      expect(json.message).toContain('invalid timeout specified in the request URL')
    },
  )

  it('ends a request that takes longer with 504', async () => {
    api = await createServerFixture()
    vi.spyOn(api.store, 'transact').mockReturnValue(new Promise(() => {}))
    const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } })
    const response = api.call('POST', `${MAPS}?timeout=5s`, body, { 'content-type': 'application/json' })
    const { json } = await api.advanceUntilSettled(response)
    expect(json).toMatchObject({ kind: 'Status', code: 504, reason: 'Timeout' })
  })

  it('is ignored by a watch, as in Kubernetes', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=1&timeout=invalid`)
    watch.close()
  })
})

describe('unsupported requests', () => {
  it.each([
    'GET /nowhere',
    'GET /api/v2',
    'GET /api/v1/unicorns',
    'GET /apis/example.com/v1/unicorns',
    'GET /apis/storage.k8s.io/v9/storageclasses',
    'GET /apis/storage.k8s.io/v1/namespaces/default/storageclasses',
    'GET /apis/storage.k8s.io/v1/csistoragecapacities/a',
    'GET /api/v1/namespaces/default/persistentvolumes/a',
    'GET /api/v1/namespaces/default/pods/p/log/more',
    'GET /api/v1/configmaps/a',
    'GET //',
    'GET /api/v1/%zz/a',
  ])('SYS-10 %s returns 404 with a Status', async (request) => {
    api = await createServerFixture()
    const [method = '', url = ''] = request.split(' ')
    expect((await api.call(method, url)).json).toMatchObject({ kind: 'Status', code: 404, reason: 'NotFound' })
  })

  it.each([
    'DELETE /api/v1/configmaps',
    'POST /api/v1/configmaps',
    `PUT ${MAPS}`,
    `PATCH ${MAPS}`,
    `POST ${MAPS}/a`,
    `OPTIONS ${MAPS}/a`,
    `TRACE ${MAPS}`,
    'POST /healthz',
    'PUT /version',
    'DELETE /api',
    'DELETE /api/v1/namespaces',
  ])('SYS-10 %s returns 405 with a Status', async (request) => {
    api = await createServerFixture()
    const [method = '', url = ''] = request.split(' ')
    expect((await api.call(method, url, '{}')).json).toMatchObject({
      kind: 'Status',
      code: 405,
      reason: 'MethodNotAllowed',
    })
  })
})

describe('the seats of a request', () => {
  /** One user may occupy three quarters of the 8 seats of the level, and each list occupies 2. */
  const LISTS_MAX = 3

  async function createCrowdedServer() {
    api = await createServerFixture({
      authenticator: {
        authenticate: ({ authorization }) => ({
          is: 'authenticated',
          user: { name: authorization ?? 'admin', groups: authorization ? [] : [MASTERS_GROUP] },
        }),
        authenticateToken: () => undefined,
      },
      limits: { concurrency: { system: 0, workload: 0, default: 8 } },
    })
    const text = 'x'.repeat(1_000)
    for (let i = 0; i < 300; i++) await api.post(MAPS, { metadata: { name: `map-${i}` }, data: { text } })
  }
  const request = (url: string, user: string): ApiRequest => ({
    method: 'GET',
    path: url.split('?')[0]!,
    query: new URLSearchParams(url.split('?')[1] ?? ''),
    headers: { authorization: user },
    headerNames: () => [],
    headerValues: () => [],
    readBody: async () => new Uint8Array(),
  })
  const startList = (url = MAPS, user = 'ann') => api.server.handle(request(url, user))
  const isPending = async (promise: Promise<unknown>) => {
    for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve))
    return (await Promise.race([promise, Promise.resolve('pending')])) === 'pending'
  }

  it('SYS-19 are occupied until a long list is sent, while other users are served', async () => {
    await createCrowdedServer()
    const lists = await Promise.all(Array.from({ length: LISTS_MAX }, () => startList()))
    const queuedRequest = startList()
    expect(await isPending(queuedRequest)).toBe(true)
    expect((await startList(`${MAPS}/map-1`, 'bob')).status).toBe(200)
    lists[0]!.seats!.release()
    expect((await queuedRequest).status).toBe(200)
  })

  it('SYS-19 are occupied until the initial events of a watch are sent', async () => {
    await createCrowdedServer()
    const watches = await Promise.all(Array.from({ length: LISTS_MAX }, () => startList(`${MAPS}?watch=1`)))
    const queuedRequest = startList(`${MAPS}?watch=1`)
    expect(await isPending(queuedRequest)).toBe(true)
    const closes: (() => void)[] = []
    const sink: StreamSink = {
      write: () => {},
      pendingBytes: 0,
      onDrain: (run) => run(),
      end: () => {},
      cut: () => {},
      onClose: (run) => void closes.push(run),
    }
    watches[0]!.stream!(sink, watches[0]!.seats)
    expect((await queuedRequest).status).toBe(200)
    for (const close of closes) close()
  })

  it('SYS-19 are not given to a client that has closed its connection', async () => {
    await createCrowdedServer()
    const lists = await Promise.all(Array.from({ length: LISTS_MAX }, () => startList()))
    const closedRequest = api.server.handle({ ...request(MAPS, 'ann'), isClosed: () => true })
    const queuedRequest = startList()
    lists[0]!.seats!.release()
    expect((await closedRequest).status).toBe(400)
    expect((await queuedRequest).status).toBe(200)
  })
})

describe('request bodies', () => {
  const post = (body: string | Uint8Array, type?: string) =>
    api.call('POST', MAPS, body, type === undefined ? {} : { 'content-type': type })

  it.each([
    ['JSON', '{"metadata":{"name":"a"}}', 'application/json'],
    ['JSON without a content type', '{"metadata":{"name":"a"}}', undefined],
    ['JSON with a charset', '{"metadata":{"name":"a"}}', 'application/json; charset=utf-8'],
    ['YAML', 'metadata:\n  name: a\n', 'application/yaml'],
  ])('in %s are accepted', async (_, body, type) => {
    api = await createServerFixture()
    expect((await post(body, type)).json.metadata.name).toBe('a')
  })

  it.each([
    ['no content', '', 'application/json', 400],
    ['truncated JSON', '{"metadata":', 'application/json', 400],
    ['invalid UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), 'application/json', 400],
    ['a field of the wrong type', '{"metadata":{"name":5}}', 'application/json', 400],
    ['null', 'null', 'application/json', 400],
    ['broken YAML', 'metadata: [', 'application/yaml', 400],
    ['empty protobuf', 'k8s\0', 'application/x-protobuf', 415],
    ['CBOR', 'x', 'application/cbor', 415],
    ['a form', 'a=b', 'application/x-www-form-urlencoded', 415],
  ])('SYS-10 with %s are rejected and change nothing', async (_, body, type, code) => {
    api = await createServerFixture()
    const { revision } = api.store
    const { status, json } = await post(body, type)
    expect({ status, kind: json.kind, code: json.code }).toEqual({ status: code, kind: 'Status', code })
    expect(json.message).toBeTruthy()
    expect(api.store.revision).toBe(revision)
  })
})

describe('the server', () => {
  it('lists its paths at /', async () => {
    api = await createServerFixture()
    expect((await api.get('/')).json.paths).toEqual(
      expect.arrayContaining(['/api/v1', '/apis/storage.k8s.io/v1', '/healthz', '/openapi/v3']),
    )
  })

  it('returns its version in the Kubernetes format', async () => {
    api = await createServerFixture()
    const { json } = await api.get('/version')
    expect(json).toMatchObject({
      major: '1',
      minor: expect.stringMatching(/^\d+$/),
      gitVersion: expect.stringMatching(/^v1\.\d+\.\d+/),
    })
  })

  it('SYS-11 counts requests by verb, resource and code', async () => {
    api = await createServerFixture()
    await api.post(MAPS, { metadata: { name: 'a' } })
    await api.get(`${MAPS}/nowhere`)
    const { text } = await api.get('/metrics')
    expect(text).toMatch(/^apiserver_request_total\{.*verb="POST".*resource="configmaps".*code="201".*\} 1$/m)
    expect(text).toMatch(/^apiserver_request_total\{.*verb="GET".*resource="configmaps".*code="404".*\} 1$/m)
    await api.post('/healthz', {})
    expect((await api.get('/metrics')).text).toMatch(/^apiserver_request_total\{.*verb="POST".*resource="",.*\} 1$/m)
  })

  it('returns 503 once its store is closed', async () => {
    api = await createServerFixture()
    await api.store.close()
    expect((await api.get(MAPS)).json).toMatchObject({ code: 503, reason: 'ServiceUnavailable' })
  })
})
