import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { NAMESPACE_LIMITS_MAX } from './namespace-limits.ts'

const RANGES = '/api/v1/namespaces/default/limitranges'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const createRange = async (name: string, ...limits: object[]) => {
  const response = await api.post(RANGES, { metadata: { name }, spec: { limits } })
  expect(response.status, response.text).toBe(201)
}
const claimLimit = (item: object) => ({ type: 'PersistentVolumeClaim', ...item })
const createClaim = (name: string, requests: object, spec: object = {}) =>
  api.post(CLAIMS, { metadata: { name }, spec: { accessModes: ['ReadWriteOnce'], resources: { requests }, ...spec } })
const readResources = async (response: ReturnType<typeof createClaim>) => {
  const { status, text, json } = await response
  expect(status, text).toBe(201)
  return json.spec.resources
}
const createPod = (name: string, ...containers: object[]) =>
  api.post(PODS, {
    metadata: { name },
    spec: { containers: containers.map((container, index) => ({ name: `c${index}`, image: 'i', ...container })) },
  })

describe('the LimitRanger admission plugin for claims', () => {
  it('accepts values from min to max, and rejects others with the Kubernetes messages', async () => {
    await createRange('sizes', claimLimit({ min: { storage: '1Gi' }, max: { storage: '10Gi' } }))
    expect((await createClaim('a', { storage: '1Gi' })).status).toBe(201)
    expect((await createClaim('b', { storage: '10Gi' })).status).toBe(201)
    const tooSmall = await createClaim('c', { storage: '1023Mi' })
    expect(tooSmall.status).toBe(403)
    expect(tooSmall.json.message).toBe(
      'persistentvolumeclaims "c" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1023Mi',
    )
    expect((await createClaim('c', { storage: '11Gi' })).json.message).toContain(
      'maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi',
    )
  })

  it('applies the min and max of different ranges', async () => {
    await createRange('least', claimLimit({ min: { storage: '2Gi' } }))
    await createRange('most', claimLimit({ max: { storage: '5Gi' } }))
    expect((await createClaim('a', { storage: '1Gi' })).status).toBe(403)
    expect((await createClaim('a', { storage: '6Gi' })).status).toBe(403)
    expect((await createClaim('a', { storage: '3Gi' })).status).toBe(201)
  })

  it('PIO-7 reports all violations of a range together', async () => {
    await createRange(
      'io',
      claimLimit({ max: { storage: '5Gi', iops: '1500', throughput: '10' }, min: { iops: '10' } }),
    )
    expect((await createClaim('a', { storage: '6Gi', iops: '5', throughput: '20' })).json.message).toBe(
      'persistentvolumeclaims "a" is forbidden: [minimum iops usage per PersistentVolumeClaim is 10, but request is 5, ' +
        'maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi, ' +
        'maximum throughput usage per PersistentVolumeClaim is 10Mi, but request is 20Mi]',
    )
  })

  it('PIO-7 accepts a claim without iops despite a bound, and sets the default if there is one', async () => {
    await createRange('bounds', claimLimit({ min: { iops: '10' }, max: { iops: '1500' } }))
    expect(await readResources(createClaim('a', { storage: '1Gi' }))).toEqual({ requests: { storage: '1Gi' } })
    await createRange(
      'defaults',
      claimLimit({ default: { iops: '500', throughput: '5' }, defaultRequest: { iops: '100' }, max: { iops: '1500' } }),
    )
    expect(await readResources(createClaim('b', { storage: '1Gi' }))).toEqual({
      requests: { storage: '1Gi', iops: '100', throughput: '5Mi' },
      limits: { iops: '500', throughput: '5Mi' },
    })
    expect(await readResources(createClaim('c', { storage: '1Gi', iops: '50' }))).toMatchObject({
      requests: { iops: '50' },
      limits: { iops: '500' },
    })
    expect((await readResources(createClaim('d', { storage: '1Gi', iops: '1k' }))).limits).toEqual({
      throughput: '5Mi',
    })
  })

  it('PIO-7 sets no limit for a request above the default limit, in MiB/s or bytes/s', async () => {
    await createRange('defaults', claimLimit({ default: { throughput: '50Mi' }, max: { throughput: '200' } }))
    for (const throughput of ['100', '100Mi']) {
      const resources = await readResources(
        createClaim(`asks-${throughput.toLowerCase()}`, { storage: '1Gi', throughput }),
      )
      expect(resources).toEqual({ requests: { storage: '1Gi', throughput: '100Mi' } })
    }
  })

  it("PIO-7 sets no default for an amount that the claim's attributes class sets", async () => {
    await api.post('/apis/storage.k8s.io/v1/volumeattributesclasses', {
      metadata: { name: 'gold' },
      driverName: 'd.example.com',
      parameters: { iops: '9000' },
    })
    await createRange('defaults', claimLimit({ default: { iops: '500', throughput: '5' }, max: { iops: '1500' } }))
    const spec = { volumeAttributesClassName: 'gold' }
    expect((await readResources(createClaim('a', { storage: '1Gi' }, spec))).requests).toEqual({
      storage: '1Gi',
      throughput: '5Mi',
    })
  })

  it('PIO-7 applies a Container item with only iops and throughput to claims, not to pods', async () => {
    await createRange('seed', {
      type: 'Container',
      max: { iops: '1500', throughput: '100' },
      min: { iops: '10', throughput: '1' },
      default: { iops: '100', throughput: '20' },
      defaultRequest: { iops: '100', throughput: '5' },
    })
    expect((await readResources(createClaim('a', { storage: '1Gi' }))).requests).toEqual({
      storage: '1Gi',
      iops: '100',
      throughput: '5Mi',
    })
    expect((await createClaim('b', { storage: '1Gi', iops: '2k' })).json.message).toContain(
      'maximum iops usage per PersistentVolumeClaim is 1500, but request is 2k',
    )
    expect((await createPod('p', {})).status).toBe(201)
  })

  it('PIO-7 bounds the ratio of limit to request if both are set', async () => {
    await createRange('ratio', claimLimit({ maxLimitRequestRatio: { iops: '2' } }))
    const iopsSpec = (request: string, limit?: string) => ({
      resources: { requests: { storage: '1Gi', iops: request }, ...(limit ? { limits: { iops: limit } } : {}) },
    })
    expect((await createClaim('a', {}, iopsSpec('100', '200'))).status).toBe(201)
    expect((await createClaim('b', {}, iopsSpec('100'))).status).toBe(201)
    expect((await createClaim('c', {}, iopsSpec('100', '250'))).json.message).toContain(
      'iops max limit to request ratio per PersistentVolumeClaim is 2, but provided ratio is 2.500000',
    )
  })

  it('sets the default size if the claim has none', async () => {
    await createRange('sizes', claimLimit({ defaultRequest: { storage: '5Gi' }, max: { storage: '10Gi' } }))
    expect(await readResources(createClaim('a', {}))).toEqual({ requests: { storage: '5Gi' } })
  })

  it('REX-2 accepts a change towards a bound that the claim already violates, and rejects a change away from it', async () => {
    const spec = { storageClassName: 'expandable' }
    await api.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'expandable' },
      provisioner: 'd.example.com',
      allowVolumeExpansion: true,
    })
    await createClaim('a', { storage: '5Gi', iops: '50' }, spec)
    await api.patch(`${CLAIMS}/a/status`, { status: { phase: 'Bound', capacity: { storage: '5Gi' } } }, 'merge')
    const patchResources = async (resources: object) =>
      (await api.patch(`${CLAIMS}/a`, { spec: { resources } }, 'merge')).json.message
    expect(await patchResources({ requests: { storage: '300Gi' } })).toBeUndefined()
    const item = { max: { storage: '4Gi' }, min: { iops: '100' }, maxLimitRequestRatio: { iops: '2' } }
    await createRange('late', claimLimit(item))
    expect(await patchResources({ requests: { storage: '301Gi', iops: '49' } })).toBe(
      'persistentvolumeclaims "a" is forbidden: [minimum iops usage per PersistentVolumeClaim is 100, but request is 49, ' +
        'maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 301Gi]',
    )
    expect(await patchResources({ requests: { storage: '5Gi' } })).toBeUndefined()
    expect(await patchResources({ requests: { iops: '60' } })).toBeUndefined()
    expect(await patchResources({ limits: { iops: '121' } })).toContain('iops max limit to request ratio per')
    expect(await patchResources({ limits: { iops: '120' } })).toBeUndefined()
  })

  it('checks an existing claim only when its requests change', async () => {
    await api.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'expandable' },
      provisioner: 'd.example.com',
      allowVolumeExpansion: true,
    })
    await createClaim('a', { storage: '5Gi' }, { storageClassName: 'expandable' })
    await api.patch(`${CLAIMS}/a/status`, { status: { phase: 'Bound', capacity: { storage: '5Gi' } } }, 'merge')
    await createRange('late', claimLimit({ max: { storage: '4Gi' } }))
    const patchClaim = (body: object) => api.patch(`${CLAIMS}/a`, body, 'merge')
    expect((await patchClaim({ metadata: { labels: { x: 'y' } } })).status).toBe(200)
    expect((await patchClaim({ spec: { resources: { requests: { storage: '6Gi' } } } })).status).toBe(403)
    expect((await patchClaim({ spec: { resources: { requests: { iops: '100' } } } })).status, 'the same size').toBe(200)
    await api.delete(`${CLAIMS}/a`)
    expect((await patchClaim({ metadata: { finalizers: null } })).status).toBe(200)
    expect((await api.get(`${CLAIMS}/a`)).status).toBe(404)
  })

  it('applies a range from its creation until its deletion, including changes', async () => {
    const max = (storage: string) => ({ spec: { limits: [claimLimit({ max: { storage } })] } })
    await createRange('sizes', claimLimit({ max: { storage: '1Gi' } }))
    expect((await createClaim('a', { storage: '2Gi' })).status).toBe(403)
    await api.patch(`${RANGES}/sizes`, max('2Gi'), 'merge')
    expect((await createClaim('a', { storage: '2Gi' })).status).toBe(201)
    await api.delete(`${RANGES}/sizes`)
    expect((await createClaim('b', { storage: '9Gi' })).status).toBe(201)
    expect(await api.store.get('stowage.dev/namespacelimits/default')).toBeUndefined()
  })

  it('limits the number of ranges of a namespace', async () => {
    for (let n = 0; n < NAMESPACE_LIMITS_MAX; n++) await createRange(`r${n}`, claimLimit({ max: { storage: '1Ti' } }))
    const { status, json } = await api.post(RANGES, { metadata: { name: 'more' }, spec: { limits: [] } })
    expect(status).toBe(403)
    expect(json.message).toContain('the namespace already has 100 limitranges, the maximum')
  })

  it('rejects a default above its max and reports both values', async () => {
    const limits = [claimLimit({ default: { iops: '2k' }, max: { iops: '1k' } })]
    const { status, json } = await api.post(RANGES, { metadata: { name: 'wrong' }, spec: { limits } })
    expect(status).toBe(422)
    expect(json.message).toContain('default value 2k is greater than max value 1k')
  })
})

describe('the LimitRanger admission plugin for pods', () => {
  const aContainer = (requests: object, limits: object = {}) => ({ resources: { requests, limits } })

  it('sets defaults on containers and an annotation on the pod', async () => {
    await createRange('usual', {
      type: 'Container',
      default: { cpu: '500m', memory: '512Mi' },
      defaultRequest: { cpu: '100m', memory: '256Mi' },
    })
    const { json } = await createPod('a', {}, aContainer({ cpu: '200m' }, { cpu: '400m' }))
    expect(json.spec.containers.map(({ resources }: Json) => resources)).toEqual([
      { limits: { cpu: '500m', memory: '512Mi' }, requests: { cpu: '100m', memory: '256Mi' } },
      { limits: { cpu: '400m', memory: '512Mi' }, requests: { cpu: '200m', memory: '256Mi' } },
    ])
    expect(json.metadata.annotations['kubernetes.io/limit-ranger']).toBe(
      'LimitRanger plugin set: cpu, memory request for container c0; cpu, memory limit for container c0; ' +
        'memory request for container c1; memory limit for container c1',
    )
  })

  it('bounds each container', async () => {
    await createRange('each', { type: 'Container', min: { cpu: '100m' }, max: { cpu: '1', memory: '1Gi' } })
    expect((await createPod('a', aContainer({ cpu: '100m' }, { cpu: '1', memory: '1Gi' }))).status).toBe(201)
    const { status, json } = await createPod('b', aContainer({ cpu: '50m' }, { cpu: '2', memory: '1Gi' }))
    expect(status).toBe(403)
    expect(json.message).toBe(
      'pods "b" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, ' +
        'maximum cpu usage per Container is 1, but limit is 2]',
    )
  })

  it("bounds the sum over a pod's containers, and the ratio of limit to request", async () => {
    await createRange('whole', { type: 'Pod', max: { cpu: '2' }, maxLimitRequestRatio: { cpu: '3' } })
    expect(
      (await createPod('a', aContainer({ cpu: '1' }, { cpu: '1' }), aContainer({ cpu: '1' }, { cpu: '1' }))).status,
    ).toBe(201)
    expect(
      (await createPod('b', aContainer({ cpu: '1' }, { cpu: '2' }), aContainer({ cpu: '1' }, { cpu: '1' }))).json
        .message,
    ).toContain('maximum cpu usage per Pod is 2, but limit is 3')
    expect((await createPod('c', aContainer({ cpu: '500m' }, { cpu: '2' }))).json.message).toContain(
      'cpu max limit to request ratio per Pod is 3, but provided ratio is 4.000000',
    )
    expect((await createPod('d', {})).json.message).toContain('maximum cpu usage per Pod is 2.  No limit is specified')
  })

  it('sets defaults before the constraints of a quota are checked', async () => {
    await api.post('/api/v1/namespaces/default/resourcequotas', {
      metadata: { name: 'compute' },
      spec: { hard: { 'limits.cpu': '1' } },
    })
    expect((await createPod('a', {})).json.message).toContain('must specify limits.cpu for: c0')
    await createRange('usual', { type: 'Container', default: { cpu: '600m' } })
    expect((await createPod('a', {})).status).toBe(201)
    expect((await createPod('b', {})).json.message).toContain('exceeded quota: compute, requested: limits.cpu=600m')
  })
})
