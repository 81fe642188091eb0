import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const apply = (url: string, body: object | string, query = 'fieldManager=me') =>
  api.call('PATCH', `${url}?${query}`, typeof body === 'string' ? body : JSON.stringify(body), {
    'content-type': 'application/apply-patch+yaml',
  })
const aConfigMap = (data: object | undefined, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', ...metadata },
  ...(data ? { data } : {}),
})
/** Returns the owned fields by manager, operation and subresource: `me Apply`, `me Update status`. */
const ownersOf = ({ metadata: { managedFields = [] } }: Json) =>
  Object.fromEntries(
    managedFields.map(({ manager, operation, subresource, fieldsV1 }: Json) => [
      [manager, operation, ...(subresource ? [subresource] : [])].join(' '),
      fieldsV1,
    ]),
  )
const getObject = async (url: string) => (await api.get(url)).json

describe('apply', () => {
  it('lets two managers own an amount that they specify in different units', async () => {
    const claim = (throughput: string | number) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'c' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi', throughput } } },
    })
    expect((await apply(`${CLAIMS}/c`, claim(125), 'fieldManager=a')).status).toBe(201)
    expect((await apply(`${CLAIMS}/c`, claim('125Mi'), 'fieldManager=b')).status).toBe(200)
    expect((await apply(`${CLAIMS}/c`, claim(125), 'fieldManager=b')).status).toBe(200)
    expect((await apply(`${CLAIMS}/c`, claim(126), 'fieldManager=b')).status).toBe(409)
  })

  it('SYS-2 creates a missing object, then changes it', async () => {
    const createResponse = await apply(`${MAPS}/a`, aConfigMap({ k: '1' }))
    expect(createResponse).toMatchObject({ status: 201, json: { kind: 'ConfigMap', data: { k: '1' } } })
    expect(createResponse.json.metadata.managedFields).toEqual([
      {
        manager: 'me',
        operation: 'Apply',
        apiVersion: 'v1',
        time: '2026-01-01T00:00:00Z',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': { 'f:k': {} } },
      },
    ])
    const changed = await apply(`${MAPS}/a`, aConfigMap({ k: '2' }))
    expect(changed).toMatchObject({ status: 200, json: { data: { k: '2' } } })
  })

  it('SYS-2 accepts YAML in block and in flow style', async () => {
    const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: "1" # one\n'
    expect((await apply(`${MAPS}/a`, yaml)).json.data).toEqual({ k: '1' })
    const flowYaml = '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: "2"}}'
    expect((await apply(`${MAPS}/a`, flowYaml)).json.data).toEqual({ k: '2' })
  })

  it('SYS-2 keeps the resourceVersion and times if nothing changes', async () => {
    const previousObject = (await apply(`${MAPS}/a`, aConfigMap({ k: '1' }))).json
    await api.clock.advance(60_000)
    expect((await apply(`${MAPS}/a`, aConfigMap({ k: '1' }))).json).toEqual(previousObject)
    const labelledObject = (await apply(`${MAPS}/a`, aConfigMap({ k: '1' }, { labels: {} }))).json
    await api.clock.advance(60_000)
    expect((await apply(`${MAPS}/a`, aConfigMap({ k: '1' }, { labels: {} }))).json).toEqual(labelledObject)
  })

  it('SYS-2 stores nothing in a dry run', async () => {
    expect((await apply(`${MAPS}/a`, aConfigMap({ k: '1' }), 'fieldManager=me&dryRun=All')).status).toBe(201)
    expect((await api.get(`${MAPS}/a`)).status).toBe(404)
    const previousObject = (await apply(`${MAPS}/a`, aConfigMap({ k: '1' }))).json
    const dryRun = await apply(`${MAPS}/a`, aConfigMap({ k: '2' }), 'fieldManager=me&dryRun=All')
    expect(dryRun.json.data).toEqual({ k: '2' })
    expect(await getObject(`${MAPS}/a`)).toEqual(previousObject)
  })

  it('SYS-2 conflicts on a field of another manager, unless forced', async () => {
    await api.post(`${MAPS}?fieldManager=creator`, aConfigMap({ k: '1', other: 'x' }))
    expect(await apply(`${MAPS}/a`, aConfigMap({ k: '2' }))).toMatchObject({
      status: 409,
      json: {
        reason: 'Conflict',
        message: 'Apply failed with 1 conflict: conflict with "creator" using v1: .data.k',
        details: {
          causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "creator" using v1', field: '.data.k' }],
        },
      },
    })
    const forcedResponse = await apply(`${MAPS}/a`, aConfigMap({ k: '2' }), 'fieldManager=me&force=true')
    expect(forcedResponse.json.data).toEqual({ k: '2', other: 'x' })
    expect(ownersOf(forcedResponse.json)).toEqual({
      'me Apply': { 'f:data': { 'f:k': {} } },
      'creator Update': { 'f:data': { '.': {}, 'f:other': {} } },
    })
  })

  it('SYS-2 groups several conflicts by manager', async () => {
    await apply(`${MAPS}/a`, aConfigMap({ a: '1', b: '1' }), 'fieldManager=first')
    await apply(`${MAPS}/a`, aConfigMap({ c: '1' }), 'fieldManager=second')
    const { json } = await apply(`${MAPS}/a`, aConfigMap({ a: '2', b: '2', c: '2' }))
    expect(json.message).toBe(
      'Apply failed with 3 conflicts: conflicts with "first":\n- .data.a\n- .data.b\nconflicts with "second":\n- .data.c',
    )
  })

  it('SYS-2 identifies list items by their keys, including defaulted ones', async () => {
    const pod = (container: object) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'web', ...container }] },
    })
    const image = { image: 'web:1', ports: [{ containerPort: 80 }], env: [{ name: 'A', value: '1' }] }
    expect((await apply(`${PODS}/p`, pod(image))).status).toBe(201)
    const withProtocol = { ...image, ports: [{ containerPort: 80, protocol: 'TCP' }] }
    expect((await apply(`${PODS}/p`, pod(withProtocol), 'fieldManager=other')).status).toBe(200)
    expect(ownersOf(await getObject(`${PODS}/p`))['other Apply']['f:spec']['f:containers']).toMatchObject({
      'k:{"name":"web"}': {
        'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {}, 'f:protocol': {} } },
        'f:env': { 'k:{"name":"A"}': { '.': {}, 'f:name': {}, 'f:value': {} } },
      },
    })
  })

  it('SYS-2 to the status subresource sets and owns only the status', async () => {
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'c' } }
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    await apply(`${CLAIMS}/c`, { ...claim, spec, status: { phase: 'Lost' } })
    const conditions = [{ type: 'Resizing', status: 'True' }]
    const { json } = await apply(`${CLAIMS}/c/status`, { ...claim, spec: {}, status: { conditions } }, 'fieldManager=s')
    expect(json).toMatchObject({ spec, status: { phase: 'Pending', conditions } })
    expect(ownersOf(json)).toEqual({
      'me Apply': {
        'f:spec': { 'f:accessModes': {}, 'f:resources': { 'f:requests': { 'f:storage': {} } } },
      },
      's Apply status': {
        'f:status': { 'f:conditions': { 'k:{"type":"Resizing"}': { '.': {}, 'f:type': {}, 'f:status': {} } } },
      },
    })
    expect((await apply(`${CLAIMS}/d/status`, { ...claim, metadata: { name: 'd' } })).status).toBe(404)
  })

  it('SYS-2 assigns all fields to before-first-apply if there are no managedFields', async () => {
    await api.post(MAPS, aConfigMap({ k: '1' }))
    await api.put(`${MAPS}/a`, aConfigMap({ k: '1' }, { managedFields: [] }))
    expect(await getObject(`${MAPS}/a`)).not.toHaveProperty('metadata.managedFields')
    await api.put(`${MAPS}/a`, aConfigMap({ k: '2' }))
    expect(await getObject(`${MAPS}/a`)).not.toHaveProperty('metadata.managedFields')
    const { message } = (await apply(`${MAPS}/a`, aConfigMap({ k: '3' }))).json
    expect(message).toBe('Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.k')
  })

  it.each([
    [
      'that is sent without a manager',
      aConfigMap({}),
      '',
      422,
      'fieldManager: Required value: is required for apply patch',
    ],
    ['with an unknown field', { ...aConfigMap({}), x: 1 }, 'fieldManager=me', 400, '.x: field not declared in schema'],
    [
      'with managedFields',
      aConfigMap({}, { managedFields: [] }),
      'fieldManager=me',
      400,
      'metadata.managedFields must be nil',
    ],
    ['of another kind', { ...aConfigMap({}), kind: 'Secret' }, 'fieldManager=me', 400, 'invalid object type'],
    ['without a kind', { metadata: { name: 'a' } }, 'fieldManager=me', 400, 'invalid object type'],
    ['with another name', aConfigMap({}, { name: 'b' }), 'fieldManager=me', 400, 'does not match the name on the URL'],
    ['without a name', aConfigMap({}, { name: undefined }), 'fieldManager=me', 400, 'name must be provided'],
    [
      'with another namespace',
      aConfigMap({}, { namespace: 'x' }),
      'fieldManager=me',
      400,
      'does not match the namespace',
    ],
    [
      'with the uid of an object that does not exist',
      aConfigMap({}, { uid: 'u1' }),
      'fieldManager=me',
      409,
      'no existing object was found',
    ],
    [
      'with a field of the wrong type',
      { ...aConfigMap({}), data: [] },
      'fieldManager=me',
      400,
      'data: expected an object',
    ],
    ['that is not an object', '[]', 'fieldManager=me', 400, 'must be a ConfigMap object'],
    ['that is not YAML', '{a: ', 'fieldManager=me', 400, 'could not be read'],
    [
      'with a duplicate item',
      aConfigMap({}, { finalizers: ['a.b/c', 'a.b/c'] }),
      'fieldManager=me',
      400,
      '.metadata.finalizers: duplicate entries for key [="a.b/c"]',
    ],
  ])('SYS-2 rejects a body %s', async (_, body, query, code, message) => {
    const { json } = await apply(`${MAPS}/a`, body, query)
    expect(json).toMatchObject({ code, message: expect.stringContaining(message) })
    expect((await api.get(`${MAPS}/a`)).status).toBe(404)
  })

  it('SYS-2 is conditional if the body has a resourceVersion', async () => {
    const { resourceVersion } = (await apply(`${MAPS}/a`, aConfigMap({ k: '1' }))).json.metadata
    expect((await apply(`${MAPS}/a`, aConfigMap({ k: '2' }, { resourceVersion }))).status).toBe(200)
    expect((await apply(`${MAPS}/a`, aConfigMap({ k: '3' }, { resourceVersion }))).status).toBe(409)
  })

  it('SYS-2 allows force only for apply', async () => {
    await api.post(MAPS, aConfigMap({}))
    const { json } = await api.patch(`${MAPS}/a?force=true`, { data: { k: '1' } }, 'merge')
    expect(json).toMatchObject({ code: 422, details: { causes: [{ field: 'force', reason: 'FieldValueForbidden' }] } })
  })

  it('SYS-2 by kubectl takes over the fields of client-side apply and updates the last-applied annotation', async () => {
    const config = aConfigMap({ k: '1' })
    const annotations = { [LAST_APPLIED]: `${JSON.stringify(config)}\n` }
    await api.post(`${MAPS}?fieldManager=kubectl-client-side-apply`, aConfigMap({ k: '1' }, { annotations }))
    const changed = aConfigMap({ k: '2' })
    expect((await apply(`${MAPS}/a`, changed, 'fieldManager=stranger')).status).toBe(409)
    const { status, json } = await apply(`${MAPS}/a`, changed, 'fieldManager=kubectl')
    expect(status).toBe(200)
    expect(json.data).toEqual({ k: '2' })
    expect(JSON.parse(json.metadata.annotations[LAST_APPLIED])).toEqual(changed)
  })
})

describe('managedFields', () => {
  it("SYS-2 record creates, updates and patches under the client's name", async () => {
    const agent = { 'user-agent': 'builder/v1.2 (linux)' }
    await api.post(MAPS, aConfigMap({ k: '1', l: '1' }), agent)
    await api.patch(`${MAPS}/a?fieldManager=patcher`, { data: { l: '2' } }, 'merge')
    await api.put(`${MAPS}/a?fieldManager=putter`, aConfigMap({ k: '1', l: '2', m: '1' }))
    expect(ownersOf(await getObject(`${MAPS}/a`))).toEqual({
      'builder Update': { 'f:data': { '.': {}, 'f:k': {} } },
      'patcher Update': { 'f:data': { 'f:l': {} } },
      'putter Update': { 'f:data': { 'f:m': {} } },
    })
  })

  it('SYS-2 do not contain fields that admission adds', async () => {
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    const { json } = await api.post(`${CLAIMS}?fieldManager=me`, { metadata: { name: 'c' }, spec })
    expect(json.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
    expect(ownersOf(json)).toEqual({
      'me Update': {
        'f:spec': {
          'f:accessModes': {},
          'f:resources': { 'f:requests': { '.': {}, 'f:storage': {} } },
          'f:volumeMode': {},
        },
      },
    })
  })

  it('SYS-2 do not contain the status that a node is created with', async () => {
    const conditions = [{ type: 'Ready', status: 'True' }]
    await api.post('/api/v1/nodes?fieldManager=kubelet', {
      metadata: { name: 'n', labels: { zone: 'a' } },
      status: { conditions },
    })
    const url = '/api/v1/nodes/n'
    expect(Object.keys(ownersOf(await getObject(url))['kubelet Update'])).toEqual(['f:metadata'])
    await api.patch(`${url}/status?fieldManager=kubelet`, { status: { phase: 'Running' } })
    expect(ownersOf(await getObject(url))['kubelet Update status']).toEqual({ 'f:status': { 'f:phase': {} } })
  })

  it('SYS-2 can be changed by a JSON patch', async () => {
    await api.post(`${MAPS}?fieldManager=kubectl-client-side-apply`, aConfigMap({ k: '1' }))
    const previousObject = await getObject(`${MAPS}/a`)
    const transferredEntries = previousObject.metadata.managedFields.map((entry: Json) => ({
      ...entry,
      manager: 'kubectl',
      operation: 'Apply',
    }))
    const { status, json } = await api.patch(
      `${MAPS}/a?fieldManager=kubectl`,
      [
        { op: 'replace', path: '/metadata/managedFields', value: transferredEntries },
        { op: 'replace', path: '/metadata/resourceVersion', value: previousObject.metadata.resourceVersion },
      ],
      'json',
    )
    expect(status).toBe(200)
    expect(Object.keys(ownersOf(json))).toEqual(['kubectl Apply'])
    expect((await apply(`${MAPS}/a`, aConfigMap(undefined), 'fieldManager=kubectl')).json.data).toBeUndefined()
  })

  it.each([
    ['no operation', { manager: 'x', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} }],
    ['an unknown operation', { manager: 'x', operation: 'Steal', apiVersion: 'v1', fieldsType: 'FieldsV1' }],
    ['no version', { manager: 'x', operation: 'Update', fieldsType: 'FieldsV1', fieldsV1: { 'f:data': {} } }],
    [
      'an unknown fieldsType',
      { manager: 'x', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV2', fieldsV1: {} },
    ],
    [
      'an invalid field set',
      { manager: 'x', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { data: {} } },
    ],
  ])('SYS-2 are not changed by an entry with %s', async (_, entry) => {
    await api.post(`${MAPS}?fieldManager=me`, aConfigMap({ k: '1' }))
    const previousObject = await getObject(`${MAPS}/a`)
    const { status } = await api.put(`${MAPS}/a`, aConfigMap({ k: '1' }, { managedFields: [entry] }))
    expect(status).toBe(200)
    expect(await getObject(`${MAPS}/a`)).toEqual(previousObject)
  })

  it('SYS-2 are rejected if an entry has an invalid manager', async () => {
    await api.post(`${MAPS}?fieldManager=me`, aConfigMap({ k: '1' }))
    const entry = { operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:data': {} } }
    const managedFields = [{ ...entry, manager: 'x'.repeat(129) }]
    expect((await api.put(`${MAPS}/a`, aConfigMap({ k: '1' }, { managedFields }))).json).toMatchObject({
      code: 422,
      details: { causes: [{ field: 'metadata.managedFields[0].manager' }] },
    })
  })

  it('SYS-2 in the body are ignored for subresources', async () => {
    const claim = {
      metadata: { name: 'c' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1' } } },
    }
    const { json } = await api.post(`${CLAIMS}?fieldManager=me`, claim)
    const body = { ...json, metadata: { ...json.metadata, managedFields: [{}] } }
    await api.put(`${CLAIMS}/c/status`, body)
    expect(ownersOf(await getObject(`${CLAIMS}/c`))).toEqual(ownersOf(json))
  })
})
