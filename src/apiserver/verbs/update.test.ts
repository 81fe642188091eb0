import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const STORAGE = '/apis/storage.k8s.io/v1'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const createObject = async (url: string, body: unknown) => {
  const { status, json } = await api.post(url, body)
  expect(json).toMatchObject({ metadata: expect.anything() })
  expect(status).toBe(201)
  return json
}
const createConfigMap = () => createObject(MAPS, { metadata: { name: 'a' }, data: { k: '1' } })
const aClaim = (requests: Record<string, string> = { storage: '10Gi' }, spec: object = {}) => ({
  metadata: { name: 'orders' },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests }, ...spec },
})

describe('PUT', () => {
  it('replaces the object and keeps server-owned metadata', async () => {
    const old = await createConfigMap()
    await api.clock.advance(60_000)
    const metadata = { name: 'a', labels: { new: 'yes' }, creationTimestamp: '2000-01-01T00:00:00Z', generation: 9 }
    const { status, json } = await api.put(`${MAPS}/a`, { metadata, data: { other: '2' } })
    expect(status).toBe(200)
    expect(json).toEqual({
      ...old,
      metadata: {
        ...old.metadata,
        labels: { new: 'yes' },
        resourceVersion: String(api.store.revision),
        managedFields: expect.any(Array),
      },
      data: { other: '2' },
    })
  })

  it('SYS-4 returns 409 Conflict with the Kubernetes message for a stale version', async () => {
    const old = await createConfigMap()
    await api.put(`${MAPS}/a`, { ...old, data: { k: '2' } })
    expect((await api.put(`${MAPS}/a`, { ...old, data: { k: '3' } })).json).toMatchObject({
      code: 409,
      reason: 'Conflict',
      message:
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
      details: { name: 'a', kind: 'configmaps' },
    })
    expect((await api.get(`${MAPS}/a`)).json.data).toEqual({ k: '2' })
  })

  it('SYS-4 returns 409 for an unknown version and 400 for an invalid one', async () => {
    await createConfigMap()
    const put = (resourceVersion: string) => api.put(`${MAPS}/a`, { metadata: { name: 'a', resourceVersion } })
    expect((await put('999999')).status).toBe(409)
    expect((await put('abc')).status).toBe(400)
    expect((await put('-1')).status).toBe(400)
  })

  it('SYS-4 replaces the stored object if the body has no version', async () => {
    await createConfigMap()
    expect((await api.put(`${MAPS}/a`, { metadata: { name: 'a' }, data: {} })).status).toBe(200)
    expect((await api.put(`${MAPS}/a`, { metadata: { name: 'a', resourceVersion: '0' }, data: {} })).status).toBe(200)
  })

  it.each([
    ['csidrivers', `${STORAGE}/csidrivers`, { metadata: { name: 'd' }, spec: {} }],
    ['csinodes', `${STORAGE}/csinodes`, { metadata: { name: 'd' }, spec: { drivers: [] } }],
    [
      'csistoragecapacities',
      `${STORAGE}/namespaces/default/csistoragecapacities`,
      { metadata: { name: 'd' }, storageClassName: 'c' },
    ],
    [
      'volumeattachments',
      `${STORAGE}/volumeattachments`,
      {
        metadata: { name: 'd' },
        spec: { attacher: 'a.example.com', nodeName: 'n', source: { persistentVolumeName: 'v' } },
      },
    ],
    ['leases', '/apis/coordination.k8s.io/v1/namespaces/default/leases', { metadata: { name: 'd' }, spec: {} }],
  ])('SYS-4 requires a resourceVersion for %s', async (_, url, body) => {
    await createObject(url, body)
    expect((await api.put(`${url}/d`, body)).json).toMatchObject({
      code: 422,
      reason: 'Invalid',
      details: { causes: [{ field: 'metadata.resourceVersion' }] },
    })
  })

  it('SYS-4 returns 409 for another uid', async () => {
    await createConfigMap()
    expect((await api.put(`${MAPS}/a`, { metadata: { name: 'a', uid: 'other' } })).json).toMatchObject({
      code: 409,
      reason: 'Conflict',
    })
  })

  it.each([
    ['another name', { name: 'b' }],
    ['another namespace', { name: 'a', namespace: 'kube-system' }],
    ['no name', {}],
  ])('SYS-10 returns 400 for %s in the body', async (_, metadata) => {
    await createConfigMap()
    expect((await api.put(`${MAPS}/a`, { metadata })).json).toMatchObject({ code: 400, reason: 'BadRequest' })
  })

  it('returns 404 for an object that does not exist', async () => {
    expect((await api.put(`${MAPS}/a`, { metadata: { name: 'a' } })).status).toBe(404)
  })

  it.each([
    ['a lease', '/apis/coordination.k8s.io/v1/namespaces/default/leases/a', { metadata: { name: 'a' }, spec: {} }],
    ['a limit range', '/api/v1/namespaces/default/limitranges/a', { metadata: { name: 'a' }, spec: { limits: [] } }],
    [
      'an event',
      '/api/v1/namespaces/default/events/a',
      { metadata: { name: 'a' }, involvedObject: { namespace: 'default' }, type: 'Normal' },
    ],
  ])('SYS-4 creates %s that does not exist', async (_, url, body) => {
    const { status, json } = await api.put(url, body)
    expect(status).toBe(201)
    expect(json.metadata.uid).toBeTruthy()
    expect((await api.get(url)).status).toBe(200)
  })

  it('SYS-4 returns 409 instead of creating an object if the body has a uid', async () => {
    const body = { metadata: { name: 'a', uid: 'deleted' }, spec: {} }
    expect((await api.put('/apis/coordination.k8s.io/v1/namespaces/default/leases/a', body)).status).toBe(409)
  })

  it('SYS-4 keeps the resourceVersion and sends no event if nothing changes', async () => {
    const old = await createConfigMap()
    const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${api.store.revision}`)
    const unchangedResponse = await api.put(`${MAPS}/a`, old)
    expect(unchangedResponse.status).toBe(200)
    expect(unchangedResponse.json).toEqual(old)
    const {
      kind: _,
      apiVersion: __,
      ...reorderedMap
    } = { data: old.data, ...old, metadata: Object.fromEntries(Object.entries(old.metadata).reverse()) }
    expect((await api.put(`${MAPS}/a`, reorderedMap)).json).toEqual(old)
    expect((await api.patch(`${MAPS}/a`, { data: { k: '1' } })).json).toEqual(old)
    await api.post(MAPS, { metadata: { name: 'b' } })
    await watch.waitUntil((events) => events.length > 0)
    expect(watch.events).toMatchObject([{ type: 'ADDED', object: { metadata: { name: 'b' } } }])
  })

  it('SYS-4 returns the object without storing it in a dry run', async () => {
    const old = await createConfigMap()
    const { status, json } = await api.put(`${MAPS}/a?dryRun=All`, { ...old, data: { k: '2' } })
    expect(status).toBe(200)
    expect(json.data).toEqual({ k: '2' })
    expect((await api.get(`${MAPS}/a`)).json).toEqual(old)
    expect(
      (
        await api.put('/apis/coordination.k8s.io/v1/namespaces/default/leases/x?dryRun=All', {
          metadata: { name: 'x' },
          spec: {},
        })
      ).status,
    ).toBe(201)
    expect((await api.get('/apis/coordination.k8s.io/v1/namespaces/default/leases/x')).status).toBe(404)
  })

  it('SYS-4 succeeds for one of two concurrent writers and returns 409 to the other', async () => {
    const old = await createConfigMap()
    const responses = await Promise.all(['2', '3'].map((k) => api.put(`${MAPS}/a`, { ...old, data: { k } })))
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 409])
  })
})

describe('generation', () => {
  it('of a driver increases only with its spec', async () => {
    const driver = await createObject(`${STORAGE}/csidrivers`, { metadata: { name: 'd' }, spec: {} })
    const labelledDriver = (await api.patch(`${STORAGE}/csidrivers/d`, { metadata: { labels: { a: 'b' } } })).json
    expect(labelledDriver.metadata.generation).toBe(driver.metadata.generation)
    const changedDriver = (await api.patch(`${STORAGE}/csidrivers/d`, { spec: { storageCapacity: true } })).json
    expect(changedDriver.metadata.generation).toBe(driver.metadata.generation + 1)
  })
})

describe('status', () => {
  const volume = {
    metadata: { name: 'x' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver: 'd.example.com', volumeHandle: 'h' },
    },
  }
  const attachment = {
    metadata: { name: 'x' },
    spec: { attacher: 'a.example.com', nodeName: 'n', source: { persistentVolumeName: 'v' } },
  }
  const pod = { metadata: { name: 'x' }, spec: { containers: [{ name: 'c', image: 'i' }] } }

  /** For each kind: an object, a change to its spec, a change to its status, and whether /status accepts metadata. */
  const KINDS = [
    [
      'namespaces',
      '/api/v1/namespaces',
      { metadata: { name: 'x' } },
      {},
      { conditions: [{ type: 'Seen', status: 'True' }] },
      true,
    ],
    ['nodes', '/api/v1/nodes', { metadata: { name: 'x' } }, { unschedulable: true }, { phase: 'Running' }, true],
    ['pods', '/api/v1/namespaces/default/pods', pod, { activeDeadlineSeconds: 5 }, { phase: 'Running' }, true],
    [
      'persistentvolumes',
      '/api/v1/persistentvolumes',
      volume,
      { persistentVolumeReclaimPolicy: 'Delete' },
      { phase: 'Available' },
      true,
    ],
    [
      'persistentvolumeclaims',
      CLAIMS,
      { ...aClaim(), metadata: { name: 'x' } },
      { volumeName: 'v' },
      { phase: 'Lost' },
      true,
    ],
    [
      'resourcequotas',
      '/api/v1/namespaces/default/resourcequotas',
      { metadata: { name: 'x' }, spec: { hard: { pods: '5' } } },
      { hard: { pods: '6' } },
      { used: { pods: '1' } },
      true,
    ],
    [
      'csinodes',
      `${STORAGE}/csinodes`,
      { metadata: { name: 'x' }, spec: { drivers: [{ name: 'd', nodeID: 'i' }] } },
      {},
      undefined,
      false,
    ],
    ['volumeattachments', `${STORAGE}/volumeattachments`, attachment, {}, { attached: true }, false],
  ] as const
  const KINDS_WITH_STATUS = KINDS.filter(([, , , , status]) => status !== undefined)

  it.each(KINDS_WITH_STATUS)(
    'of %s is not changed by a patch of the main resource',
    async (_, url, body, spec, status) => {
      const old = await createObject(url, body)
      const { status: code, json } = await api.patch(`${url}/x`, {
        metadata: { labels: { seen: 'yes' } },
        spec,
        status,
      })
      expect(code).toBe(200)
      expect(json.status).toEqual(old.status)
      expect(json.spec).toMatchObject(spec)
      expect(json.metadata.labels.seen).toBe('yes')
    },
  )

  it.each(KINDS)(
    'of %s can be patched at /status, which does not change the spec',
    async (_, url, body, spec, status, acceptsMetadata) => {
      const old = await createObject(url, body)
      const metadata = { labels: { seen: 'yes' }, annotations: { a: 'b' } }
      const { status: code, json } = await api.patch(`${url}/x/status`, { metadata, spec, status })
      expect(code).toBe(200)
      expect(json.spec).toEqual(old.spec)
      if (status) expect(json.status).toMatchObject(status)
      expect(json.metadata.labels?.seen).toBe(acceptsMetadata ? 'yes' : undefined)
      expect(json.metadata.annotations?.a).toBe(acceptsMetadata ? 'b' : undefined)
    },
  )

  it('can be read and replaced at /status, but not created or deleted', async () => {
    const old = await createObject('/api/v1/persistentvolumes', volume)
    const url = '/api/v1/persistentvolumes/x/status'
    expect((await api.get(url)).json).toEqual(old)
    const { json } = await api.put(url, { ...old, spec: {}, status: { phase: 'Available' } })
    expect(json).toMatchObject({ spec: old.spec, status: { phase: 'Available' } })
    expect((await api.post(url, old)).status).toBe(405)
    expect((await api.delete(url)).status).toBe(405)
  })

  it.each(['storageclasses', 'csidrivers', 'volumeattributesclasses'])('of %s does not exist', async (plural) => {
    expect((await api.get(`${STORAGE}/${plural}/x/status`)).status).toBe(404)
  })
})

describe('an update of a claim', () => {
  const createBoundClaim = async (requests?: Record<string, string>) => {
    await api.post(`${STORAGE}/storageclasses`, {
      metadata: { name: 'fast' },
      provisioner: 'example.com/p',
      allowVolumeExpansion: true,
    })
    await createObject(CLAIMS, aClaim(requests, { volumeName: 'v' }))
    const status = { phase: 'Bound', capacity: { storage: '10Gi' }, accessModes: ['ReadWriteOnce'] }
    return (await api.patch(`${CLAIMS}/orders/status`, { status })).json
  }
  const requestStorage = (storage: string) =>
    api.patch(`${CLAIMS}/orders`, { spec: { resources: { requests: { storage } } } })

  it('REX-3 keeps the high-water mark, even if a PUT omits the field', async () => {
    const claim = await createBoundClaim()
    expect(claim.spec.allocatedResources).toEqual({ storage: '10Gi' })
    expect((await requestStorage('20Gi')).json.spec.allocatedResources).toEqual({ storage: '20Gi' })
    const { json } = await requestStorage('15Gi')
    expect(json.spec).toMatchObject({
      resources: { requests: { storage: '15Gi' } },
      allocatedResources: { storage: '20Gi' },
    })
    const { allocatedResources: _, ...spec } = json.spec
    const put = await api.put(`${CLAIMS}/orders`, { ...json, spec })
    expect(put.status).toBe(200)
    expect(put.json).toEqual(json)
  })

  it('REX-3 ignores a high-water mark in the body', async () => {
    const claim = await createBoundClaim()
    for (const storage of ['1Gi', '500Gi']) {
      const { json } = await api.put(`${CLAIMS}/orders`, {
        ...claim,
        metadata: { ...claim.metadata, resourceVersion: undefined },
        spec: { ...claim.spec, allocatedResources: { storage } },
      })
      if (json.kind !== 'Status') expect(json.spec.allocatedResources).toEqual({ storage: '10Gi' })
      expect((await api.get(`${CLAIMS}/orders`)).json.spec.allocatedResources).toEqual({ storage: '10Gi' })
    }
  })

  it("REX-2 can lower the request to the volume's capacity, but not below", async () => {
    await createBoundClaim()
    await requestStorage('30Gi')
    expect((await requestStorage('10Gi')).status).toBe(200)
    const { status, json } = await requestStorage('9Gi')
    expect(status).toBe(422)
    expect(json.details.causes[0]).toMatchObject({
      reason: 'FieldValueForbidden',
      field: expect.stringMatching(/^spec/),
    })
    expect((await api.get(`${CLAIMS}/orders`)).json.spec.resources.requests.storage).toBe('10Gi')
  })

  it('REX-10 cannot lower the request if the feature gate is disabled', async () => {
    await api.store.close()
    api = await createServerFixture({ gates: 'RecoverExpansionFailure=false' })
    await createBoundClaim()
    expect((await requestStorage('20Gi')).status).toBe(200)
    expect((await requestStorage('15Gi')).status).toBe(422)
  })

  it('can expand the claim only if it is bound and its class allows expansion', async () => {
    await createObject(CLAIMS, aClaim())
    expect((await requestStorage('20Gi')).json).toMatchObject({ code: 422, reason: 'Invalid' })
    await api.post(`${STORAGE}/storageclasses`, { metadata: { name: 'fast' }, provisioner: 'example.com/p' })
    await api.patch(`${CLAIMS}/orders/status`, { status: { phase: 'Bound', capacity: { storage: '10Gi' } } })
    expect((await requestStorage('20Gi')).json).toMatchObject({ code: 403, reason: 'Forbidden' })
    await api.patch(`${STORAGE}/storageclasses/fast`, { allowVolumeExpansion: true })
    expect((await requestStorage('20Gi')).status).toBe(200)
  })

  it('VAC-2 can change the attributes class only if the claim is bound', async () => {
    await createObject(CLAIMS, aClaim(undefined, { volumeAttributesClassName: 'silver' }))
    const change = () => api.patch(`${CLAIMS}/orders`, { spec: { volumeAttributesClassName: 'gold' } })
    expect((await change()).status).toBe(422)
    await api.patch(`${CLAIMS}/orders`, { spec: { volumeName: 'v' } })
    await api.patch(`${CLAIMS}/orders/status`, { status: { phase: 'Bound' } })
    expect((await change()).json.spec.volumeAttributesClassName).toBe('gold')
  })

  it('PROV-2 cannot change the storage class, by field or by the beta annotation', async () => {
    await createObject(CLAIMS, aClaim())
    expect((await api.patch(`${CLAIMS}/orders`, { spec: { storageClassName: 'slow' } })).status).toBe(422)
    const annotations = { 'volume.beta.kubernetes.io/storage-class': 'slow' }
    expect((await api.patch(`${CLAIMS}/orders`, { metadata: { annotations } })).status).toBe(422)
  })
})

describe('an update of a storage object', () => {
  it('PROV-1 can change allowVolumeExpansion of a storage class, but not its provisioner, parameters or policies', async () => {
    const url = `${STORAGE}/storageclasses`
    await createObject(url, { metadata: { name: 'fast' }, provisioner: 'example.com/p', parameters: { a: '1' } })
    for (const change of [
      { provisioner: 'q' },
      { parameters: { a: '2' } },
      { reclaimPolicy: 'Retain' },
      { volumeBindingMode: 'WaitForFirstConsumer' },
    ]) {
      expect((await api.patch(`${url}/fast`, change)).json).toMatchObject({ code: 422, reason: 'Invalid' })
    }
    expect((await api.patch(`${url}/fast`, { allowVolumeExpansion: true })).status).toBe(200)
  })

  it('VAC-1 cannot change the driver or parameters of an attributes class', async () => {
    const url = `${STORAGE}/volumeattributesclasses`
    await createObject(url, { metadata: { name: 'silver' }, driverName: 'd.example.com', parameters: { iops: '1' } })
    for (const change of [{ driverName: 'e.example.com' }, { parameters: { iops: '2' } }]) {
      expect((await api.patch(`${url}/silver`, change)).json).toMatchObject({ code: 422, reason: 'Invalid' })
    }
  })

  it('CAP-1 can change the amounts of a capacity object, but not its class or topology', async () => {
    const url = `${STORAGE}/namespaces/default/csistoragecapacities`
    await createObject(url, { metadata: { name: 'a' }, storageClassName: 'fast', nodeTopology: {}, capacity: '1Gi' })
    for (const change of [{ storageClassName: 'slow' }, { nodeTopology: { matchLabels: { zone: 'b' } } }]) {
      expect((await api.patch(`${url}/a`, change)).status).toBe(422)
    }
    expect((await api.patch(`${url}/a`, { capacity: '2Gi', maximumVolumeSize: '1Gi' })).json).toMatchObject({
      capacity: '2Gi',
    })
  })
})
