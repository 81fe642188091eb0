import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const ATTRIBUTES_CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const aClaim = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
})

describe('POST', () => {
  it('returns 201 with the stored object, including uid, creationTimestamp, resourceVersion and namespace', async () => {
    const { status, json } = await api.post(MAPS, { metadata: { name: 'a' }, data: { k: 'v' } })
    expect(status).toBe(201)
    expect(json).toEqual({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      metadata: {
        name: 'a',
        namespace: 'default',
        uid: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
        creationTimestamp: '2026-01-01T00:00:00Z',
        resourceVersion: String(api.store.revision),
        managedFields: [expect.objectContaining({ operation: 'Update', apiVersion: 'v1' })],
      },
      data: { k: 'v' },
    })
    expect((await api.get(`${MAPS}/a`)).json).toEqual(json)
  })

  it.each([
    ['9007199254740993', 'has more digits than can be stored exactly; send a quantity as a string'],
    ['"1Gi\\n"', '"1Gi\\\\n\\" is not a quantity'],
  ])('SYS-10 rejects a claim that requests %s', async (storage, message) => {
    const spec = `{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":${storage}}}}`
    const body = `{"metadata":{"name":"a"},"spec":${spec}}`
    const { status, text } = await api.call('POST', CLAIMS, body, { 'content-type': 'application/json' })
    expect([status, text]).toEqual([400, expect.stringContaining(message)])
  })

  it('stores the largest number that JSON represents exactly', async () => {
    const { status, json } = await api.post(CLAIMS, aClaim('a', { resources: { requests: { storage: 2 ** 53 - 1 } } }))
    expect([status, json.spec.resources.requests.storage]).toEqual([201, '9007199254740991'])
  })

  it('ignores server-owned metadata in the body', async () => {
    const metadata = {
      name: 'a',
      uid: 'mine',
      creationTimestamp: '2000-01-01T00:00:00Z',
      deletionTimestamp: '2000-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 5,
      generation: 7,
      selfLink: '/x',
    }
    const { json } = await api.post(MAPS, { metadata })
    expect(json.metadata).toEqual({
      name: 'a',
      namespace: 'default',
      uid: expect.not.stringMatching('mine'),
      creationTimestamp: '2026-01-01T00:00:00Z',
      resourceVersion: expect.any(String),
    })
  })

  it('ignores a namespace in the body of a cluster-scoped object', async () => {
    const body = { metadata: { name: 'fast', namespace: 'default' }, provisioner: 'example.com/p' }
    const { status, json } = await api.post(CLASSES, body)
    expect(status).toBe(201)
    expect(json.metadata.namespace).toBeUndefined()
  })

  it('SYS-4 returns 409 AlreadyExists for an existing name', async () => {
    await api.post(MAPS, { metadata: { name: 'a' } })
    expect((await api.post(MAPS, { metadata: { name: 'a' } })).json).toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
      message: 'configmaps "a" already exists',
      details: { name: 'a', kind: 'configmaps' },
    })
  })

  it('returns 404 if the namespace does not exist', async () => {
    expect((await api.post('/api/v1/namespaces/nowhere/configmaps', { metadata: { name: 'a' } })).json).toMatchObject({
      code: 404,
      reason: 'NotFound',
      details: { name: 'nowhere', kind: 'namespaces' },
    })
  })

  it('returns 403 with the cause if the namespace is terminating', async () => {
    await api.post('/api/v1/namespaces', { metadata: { name: 'terminating' } })
    await api.delete('/api/v1/namespaces/terminating')
    expect(
      (await api.post('/api/v1/namespaces/terminating/configmaps', { metadata: { name: 'a' } })).json,
    ).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      details: { causes: [{ reason: 'NamespaceTerminating' }] },
    })
  })

  it.each([
    ['another namespace in the body', MAPS, { metadata: { name: 'a', namespace: 'kube-system' } }, 400],
    ['another kind', MAPS, { kind: 'Secret', metadata: { name: 'a' } }, 400],
    ['another version', MAPS, { apiVersion: 'v2', kind: 'ConfigMap', metadata: { name: 'a' } }, 400],
    ['a resourceVersion', MAPS, { metadata: { name: 'a', resourceVersion: '7' } }, 400],
    ['no name', MAPS, { metadata: {} }, 422],
    ['a path traversal in the name', MAPS, { metadata: { name: '../../etc' } }, 422],
    ['a list as the body', MAPS, [], 400],
  ])('SYS-10 rejects a request with %s', async (_, url, body, code) => {
    const { revision } = api.store
    const { status, json } = await api.post(url, body)
    expect({ status, kind: json.kind, code: json.code }).toEqual({ status: code, kind: 'Status', code })
    expect(api.store.revision).toBe(revision)
  })

  it('SYS-10 returns 405 for a path without a namespace and for a path with a name', async () => {
    expect((await api.post('/api/v1/configmaps', { metadata: { name: 'a' } })).status).toBe(405)
    expect((await api.post(`${MAPS}/a`, { metadata: { name: 'a' } })).status).toBe(405)
  })
})

describe('generateName', () => {
  it('SYS-4 appends five unambiguous characters', async () => {
    const { json } = await api.post(MAPS, { metadata: { generateName: 'draft-' } })
    expect(json.metadata.name).toMatch(/^draft-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    expect(json.metadata.generateName).toBe('draft-')
  })

  it('SYS-4 truncates a long prefix', async () => {
    const { json } = await api.post(MAPS, { metadata: { generateName: 'x'.repeat(100) } })
    expect(json.metadata.name).toHaveLength(63)
  })

  it('SYS-4 is ignored if there is a name', async () => {
    const { json } = await api.post(MAPS, { metadata: { name: 'chosen', generateName: 'draft-' } })
    expect(json.metadata.name).toBe('chosen')
  })

  it('SYS-4 returns 409 with retryAfterSeconds if all generated names are taken', async () => {
    const conflictingApi = await createServerFixture({ random: () => 0 })
    expect((await conflictingApi.post(MAPS, { metadata: { generateName: 'draft-' } })).json.metadata.name).toBe(
      'draft-bbbbb',
    )
    const { status, json } = await conflictingApi.post(MAPS, { metadata: { generateName: 'draft-' } })
    expect(status).toBe(409)
    expect(json).toMatchObject({ reason: 'AlreadyExists', details: { retryAfterSeconds: 1 } })
  })
})

describe('dryRun=All', () => {
  it('SYS-4 returns the object without storing it', async () => {
    const { revision } = api.store
    const { status, json } = await api.post(`${CLAIMS}?dryRun=All`, aClaim('a'))
    expect(status).toBe(201)
    expect(json).toMatchObject({ metadata: { name: 'a', uid: expect.any(String) }, spec: { volumeMode: 'Filesystem' } })
    expect(api.store.revision).toBe(revision)
    expect((await api.get(`${CLAIMS}/a`)).status).toBe(404)
  })

  it('SYS-4 rejects an existing name and an invalid object, and other values of dryRun', async () => {
    await api.post(CLAIMS, aClaim('a'))
    expect((await api.post(`${CLAIMS}?dryRun=All`, aClaim('a'))).status).toBe(409)
    expect((await api.post(`${CLAIMS}?dryRun=All`, aClaim('b', { accessModes: [] }))).status).toBe(422)
    expect((await api.post(`${CLAIMS}?dryRun=Some`, aClaim('b'))).status).toBe(422)
  })
})

describe('fieldValidation', () => {
  const body = '{"metadata":{"name":"a","colour":"red"},"data":{"k":"1","k":"2"},"size":5}'
  const post = (query: string, text = body) =>
    api.call('POST', `${MAPS}?${query}`, text, { 'content-type': 'application/json' })

  it('SYS-4 Warn, which is the default, drops unknown fields and returns warnings', async () => {
    const { status, headers, json } = await post('')
    expect(status).toBe(201)
    expect(headers.warning).toEqual([
      '299 - "unknown field \\"metadata.colour\\""',
      '299 - "unknown field \\"size\\""',
      '299 - "duplicate field \\"data.k\\""',
    ])
    expect(json.size).toBeUndefined()
    expect(json.data).toEqual({ k: '2' })
  })

  it('SYS-4 Strict rejects the request with 400 and names every field', async () => {
    const { status, json } = await post('fieldValidation=Strict')
    expect(status).toBe(400)
    expect(json).toMatchObject({ reason: 'BadRequest' })
    expect(json.message).toMatch(/^ConfigMap in version "v1" cannot be handled.*strict decoding error: /)
    for (const field of ['unknown field "metadata.colour"', 'unknown field "size"', 'duplicate field "data.k"']) {
      expect(json.message).toContain(field)
    }
  })

  it('SYS-4 Ignore drops unknown fields without a warning', async () => {
    const { status, headers } = await post('fieldValidation=Ignore')
    expect(status).toBe(201)
    expect(headers.warning).toBeUndefined()
  })

  it('SYS-10 returns 422 for another value', async () => {
    expect((await post('fieldValidation=Sometimes')).status).toBe(422)
  })

  it('SYS-4 applies to patches, where Strict returns 422', async () => {
    await api.post(MAPS, { metadata: { name: 'b' } })
    const patch = (query: string) =>
      api.call('PATCH', `${MAPS}/b?${query}`, '{"size":5}', { 'content-type': 'application/merge-patch+json' })
    expect((await patch('')).headers.warning).toEqual(['299 - "unknown field \\"size\\""'])
    expect((await patch('fieldValidation=Strict')).json).toMatchObject({
      code: 422,
      reason: 'Invalid',
      details: { causes: [{ field: 'patch' }] },
    })
  })
})

describe('POST of a specific kind', () => {
  it('PROV-1 sets reclaimPolicy Delete and volumeBindingMode Immediate on a storage class by default', async () => {
    const { json } = await api.post(CLASSES, { metadata: { name: 'fast' }, provisioner: 'example.com/p' })
    expect(json).toMatchObject({ reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })
  })

  it('PROV-18 adds protection finalizers to claims, volumes and attributes classes', async () => {
    const claim = (await api.post(CLAIMS, aClaim('a'))).json
    expect(claim).toMatchObject({
      metadata: { finalizers: ['kubernetes.io/pvc-protection'] },
      spec: { volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    })
    const volume = (
      await api.post('/api/v1/persistentvolumes', {
        metadata: { name: 'disk' },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          csi: { driver: 'd.example.com', volumeHandle: 'h' },
        },
      })
    ).json
    expect(volume).toMatchObject({
      metadata: { finalizers: ['kubernetes.io/pv-protection'] },
      spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' },
      status: { phase: 'Pending', lastPhaseTransitionTime: '2026-01-01T00:00:00Z' },
    })
    const attributesClass = await api.post('/apis/storage.k8s.io/v1/volumeattributesclasses', {
      metadata: { name: 'silver' },
      driverName: 'd.example.com',
      parameters: { iops: '1' },
    })
    expect(attributesClass.json.metadata.finalizers).toEqual(['kubernetes.io/vac-protection'])
  })

  it('VAC-9 does not add the finalizer of an attributes class twice', async () => {
    const { json } = await api.post(ATTRIBUTES_CLASSES, {
      metadata: { name: 'silver', finalizers: ['example.com/mine', 'kubernetes.io/vac-protection'] },
      driverName: 'd.example.com',
      parameters: { iops: '1' },
    })
    expect(json.metadata.finalizers).toEqual(['example.com/mine', 'kubernetes.io/vac-protection'])
  })

  it('VAC-2 does not set a default attributes class on a claim', async () => {
    await api.post(ATTRIBUTES_CLASSES, {
      metadata: { name: 'silver', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      driverName: 'd.example.com',
      parameters: { iops: '1' },
    })
    expect((await api.post(CLAIMS, aClaim('a'))).json.spec).not.toHaveProperty('volumeAttributesClassName')
  })

  it("CAP-2 sets a driver's defaults, among them storageCapacity false", async () => {
    const { json } = await api.post('/apis/storage.k8s.io/v1/csidrivers', {
      metadata: { name: 'd.example.com' },
      spec: {},
    })
    expect(json).toMatchObject({
      metadata: { generation: 1 },
      spec: {
        attachRequired: true,
        podInfoOnMount: false,
        storageCapacity: false,
        fsGroupPolicy: 'ReadWriteOnceWithFSType',
        volumeLifecycleModes: ['Persistent'],
        requiresRepublish: false,
        seLinuxMount: false,
      },
    })
  })

  it('SYS-10 rejects a capacity object with an invalid name with 422', async () => {
    const body = { metadata: { name: '#%123-invalid-name' }, storageClassName: '' }
    const { status, json } = await api.post('/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities', body)
    expect({ status, reason: json.reason }).toEqual({ status: 422, reason: 'Invalid' })
  })

  it('sets the phase, label and finalizer of a namespace', async () => {
    expect((await api.post('/api/v1/namespaces', { metadata: { name: 'shop' } })).json).toMatchObject({
      metadata: { labels: { 'kubernetes.io/metadata.name': 'shop' } },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    })
  })

  it('stores stringData of a secret as data', async () => {
    const body = { metadata: { name: 's' }, stringData: { user: 'admin' }, data: { user: 'b2xk', other: 'eA==' } }
    const { json } = await api.post('/api/v1/namespaces/default/secrets', body)
    expect(json).toMatchObject({ type: 'Opaque', data: { user: 'YWRtaW4=', other: 'eA==' } })
    expect(json.stringData).toBeUndefined()
  })

  it('PIO-1 stores quantities of a claim in canonical form, with throughput in bytes', async () => {
    const requests = { storage: '1024Mi', iops: '3000', throughput: '100' }
    const { json } = await api.post(CLAIMS, aClaim('a', { resources: { requests } }))
    expect(json.spec.resources.requests).toEqual({ storage: '1Gi', iops: '3k', throughput: '100Mi' })
  })

  it.each([
    ['iops', 'many'],
    ['iops', ''],
    ['iops', {}],
    ['iops', '1e99999'],
    ['throughput', '100MiB/s'],
    ['throughput', true],
  ])('PIO-1 SYS-10 rejects a claim with %s %j', async (name, amount) => {
    for (const field of ['requests', 'limits']) {
      const resources = { requests: { storage: '1Gi' }, [field]: { storage: '1Gi', [name]: amount } }
      const { status, json } = await api.post(CLAIMS, aClaim('a', { resources }))
      expect([status, json.reason]).toEqual([400, 'BadRequest'])
      expect(json.message).toContain(`spec.resources.${field}[${name}]: `)
    }
    expect((await api.get(CLAIMS)).json.items).toEqual([])
  })

  it('ignores the status of a claim, and keeps that of a node', async () => {
    const claim = await api.post(CLAIMS, { ...aClaim('a'), status: { phase: 'Bound' } })
    expect(claim.json.status).toEqual({ phase: 'Pending' })
    const node = await api.post('/api/v1/nodes', { metadata: { name: 'n' }, status: { capacity: { cpu: '4' } } })
    expect(node.json.status.capacity).toEqual({ cpu: '4' })
  })
})
