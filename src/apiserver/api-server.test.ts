import { afterEach, describe, expect, it } from 'vitest'
import { startTrial, type TrialServer } from './server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'

let trial: TrialServer
afterEach(() => trial.store.close())

describe('requests for nothing we have', () => {
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
  ])('SYS-10 %s is 404 with a Status', async (request) => {
    trial = await startTrial()
    const [method = '', url = ''] = request.split(' ')
    expect((await trial.call(method, url)).json).toMatchObject({ kind: 'Status', code: 404, reason: 'NotFound' })
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
  ])('SYS-10 %s is 405 with a Status', async (request) => {
    trial = await startTrial()
    const [method = '', url = ''] = request.split(' ')
    expect((await trial.call(method, url, '{}')).json).toMatchObject({
      kind: 'Status',
      code: 405,
      reason: 'MethodNotAllowed',
    })
  })
})

describe('bodies', () => {
  const post = (body: string | Uint8Array, type?: string) =>
    trial.call('POST', MAPS, body, type === undefined ? {} : { 'content-type': type })

  it.each([
    ['JSON', '{"metadata":{"name":"a"}}', 'application/json'],
    ['JSON without a type', '{"metadata":{"name":"a"}}', undefined],
    ['JSON with a charset', '{"metadata":{"name":"a"}}', 'application/json; charset=utf-8'],
    ['YAML', 'metadata:\n  name: a\n', 'application/yaml'],
  ])('of %s are read', async (_, body, type) => {
    trial = await startTrial()
    expect((await post(body, type)).json.metadata.name).toBe('a')
  })

  it.each([
    ['nothing', '', 'application/json', 400],
    ['half an object', '{"metadata":', 'application/json', 400],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), 'application/json', 400],
    ['a wrong type', '{"metadata":{"name":5}}', 'application/json', 400],
    ['null', 'null', 'application/json', 400],
    ['broken YAML', 'metadata: [', 'application/yaml', 400],
    ['protobuf of nothing', 'k8s\0', 'application/x-protobuf', 415],
    ['CBOR', 'x', 'application/cbor', 415],
    ['a form', 'a=b', 'application/x-www-form-urlencoded', 415],
  ])('SYS-10 of %s are refused and change nothing', async (_, body, type, code) => {
    trial = await startTrial()
    const { revision } = trial.store
    const { status, json } = await post(body, type)
    expect({ status, kind: json.kind, code: json.code }).toEqual({ status: code, kind: 'Status', code })
    expect(json.message).toBeTruthy()
    expect(trial.store.revision).toBe(revision)
  })
})

describe('itself', () => {
  it('lists its paths', async () => {
    trial = await startTrial()
    expect((await trial.get('/')).json.paths).toEqual(
      expect.arrayContaining(['/api/v1', '/apis/storage.k8s.io/v1', '/healthz', '/openapi/v3']),
    )
  })

  it('tells its version in the form clients compare', async () => {
    trial = await startTrial()
    const { json } = await trial.get('/version')
    expect(json).toMatchObject({
      major: '1',
      minor: expect.stringMatching(/^\d+$/),
      gitVersion: expect.stringMatching(/^v1\.\d+\.\d+/),
    })
  })

  it('SYS-11 counts requests by verb, resource and code', async () => {
    trial = await startTrial()
    await trial.post(MAPS, { metadata: { name: 'a' } })
    await trial.get(`${MAPS}/nowhere`)
    const { text } = await trial.get('/metrics')
    expect(text).toMatch(/^apiserver_request_total\{.*verb="POST".*resource="configmaps".*code="201".*\} 1$/m)
    expect(text).toMatch(/^apiserver_request_total\{.*verb="GET".*resource="configmaps".*code="404".*\} 1$/m)
  })

  it('answers 503 once its store is closed', async () => {
    trial = await startTrial()
    await trial.store.close()
    expect((await trial.get(MAPS)).json).toMatchObject({ code: 503, reason: 'ServiceUnavailable' })
  })
})
