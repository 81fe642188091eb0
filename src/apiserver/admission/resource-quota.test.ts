import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { memoryMedium } from '../../store/index.ts'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { NAMESPACE_LIMITS_MAX } from './namespace-limits.ts'

const QUOTAS = '/api/v1/namespaces/default/resourcequotas'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const EVENTS = '/api/v1/namespaces/default/events'
/** Turns of the event loop after which a request has reached the store. */
const REQUEST_TURNS = 20

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const createQuota = async (name: string, spec: object) => {
  const response = await api.post(QUOTAS, { metadata: { name }, spec })
  expect(response.status, response.text).toBe(201)
}
const getUsage = async (name: string) => (await api.get(`${QUOTAS}/${name}`)).json.status?.used
const storageRequest = (size: string) => ({ resources: { requests: { storage: size } } })
const postClaim = (name: string, spec: object = {}) =>
  api.post(CLAIMS, { metadata: { name }, spec: { accessModes: ['ReadWriteOnce'], ...storageRequest('1Gi'), ...spec } })
const createClaim = async (name: string, spec: object = {}) => {
  const response = await postClaim(name, spec)
  expect(response.status, response.text).toBe(201)
  return response.json
}
const patchSpec = (name: string, spec: object) => api.patch(`${CLAIMS}/${name}`, { spec }, 'merge')
const setStatus = async (name: string, status: object) => {
  const response = await api.patch(`${CLAIMS}/${name}/status`, { status }, 'merge')
  expect(response.status, response.text).toBe(200)
}
/** Removes the finalizers too, so that the claim is removed from the store. */
const deleteClaim = async (name: string) => {
  expect((await api.delete(`${CLAIMS}/${name}`)).status).toBe(200)
  expect((await api.patch(`${CLAIMS}/${name}`, { metadata: { finalizers: null } }, 'merge')).status).toBe(200)
}
const createBoundClaim = async (name: string, spec: object = {}) => {
  await createClaim(name, { storageClassName: 'expandable', ...spec })
  await setStatus(name, { phase: 'Bound', capacity: { storage: '1Gi' } })
}
const createExpandableClass = () =>
  api.post('/apis/storage.k8s.io/v1/storageclasses', {
    metadata: { name: 'expandable' },
    provisioner: 'd.example.com',
    allowVolumeExpansion: true,
  })
const aContainer = (name: string, requests?: object, limits?: object) => ({
  name,
  image: 'i',
  resources: { ...(requests ? { requests } : {}), ...(limits ? { limits } : {}) },
})
const postPod = (name: string, spec: object) => api.post(PODS, { metadata: { name }, spec })

describe('a quota of claims', () => {
  it('charges a claim from its creation until its removal from the store', async () => {
    await createQuota('team', { hard: { 'requests.storage': '10Gi', persistentvolumeclaims: '5' } })
    await createClaim('a', storageRequest('3Gi'))
    await createClaim('b', storageRequest('4Gi'))
    expect(await getUsage('team')).toEqual({ 'requests.storage': '7Gi', persistentvolumeclaims: '2' })
    await api.delete(`${CLAIMS}/a`)
    expect(await getUsage('team')).toMatchObject({ 'requests.storage': '7Gi' })
    await api.patch(`${CLAIMS}/a`, { metadata: { finalizers: null } }, 'merge')
    expect(await getUsage('team')).toEqual({ 'requests.storage': '4Gi', persistentvolumeclaims: '1' })
  })

  it('rejects a claim that exceeds it with the Kubernetes message, and does not charge the claim', async () => {
    await createQuota('team', { hard: { 'requests.storage': '100Gi', persistentvolumeclaims: '1' } })
    await createClaim('a', storageRequest('95Gi'))
    const { status, json } = await postClaim('b', storageRequest('10Gi'))
    expect(status).toBe(403)
    expect(json).toMatchObject({
      reason: 'Forbidden',
      message:
        'persistentvolumeclaims "b" is forbidden: exceeded quota: team, ' +
        'requested: persistentvolumeclaims=1,requests.storage=10Gi, used: persistentvolumeclaims=1,requests.storage=95Gi, ' +
        'limited: persistentvolumeclaims=1,requests.storage=100Gi',
      details: { name: 'b', kind: 'persistentvolumeclaims' },
    })
    expect(await getUsage('team')).toEqual({ 'requests.storage': '95Gi', persistentvolumeclaims: '1' })
  })

  it('names only the exceeded resources in the message', async () => {
    await createQuota('team', { hard: { 'requests.storage': '5Gi', persistentvolumeclaims: '10' } })
    const { json } = await postClaim('a', storageRequest('6Gi'))
    expect(json.message).toContain(
      'exceeded quota: team, requested: requests.storage=6Gi, used: requests.storage=0, limited: requests.storage=5Gi',
    )
  })

  it('SYS-4 checks a dry-run create and does not charge it', async () => {
    await createQuota('team', { hard: { 'requests.storage': '5Gi' } })
    const dryRun = (size: string) =>
      api.post(`${CLAIMS}?dryRun=All`, {
        metadata: { name: 'dry' },
        spec: { accessModes: ['ReadWriteOnce'], ...storageRequest(size) },
      })
    expect((await dryRun('5Gi')).status).toBe(201)
    const previous = api.store.revision
    expect((await dryRun('6Gi')).json).toMatchObject({
      code: 403,
      message: expect.stringContaining('exceeded quota: team'),
    })
    expect(api.store.revision).toBe(previous)
    await createClaim('a', storageRequest('5Gi'))
    expect((await dryRun('1Gi')).status).toBe(403)
  })

  it('SYS-4 checks a dry-run update, and neither charges it nor records an event', async () => {
    await createExpandableClass()
    await createQuota('team', { hard: { 'requests.storage': '5Gi' } })
    await createBoundClaim('a')
    const previous = api.store.revision
    const dryRun = (size: string) => api.patch(`${CLAIMS}/a?dryRun=All`, { spec: storageRequest(size) }, 'merge')
    expect((await dryRun('5Gi')).status).toBe(200)
    expect((await dryRun('6Gi')).json).toMatchObject({ code: 403, message: expect.stringContaining('exceeded quota') })
    expect(api.store.revision).toBe(previous)
  })

  it('charges an apply that creates a claim like a create', async () => {
    await createQuota('team', { hard: { persistentvolumeclaims: '1' } })
    const apply = (name: string) => {
      const spec = { accessModes: ['ReadWriteOnce'], ...storageRequest('1Gi') }
      const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec }
      const headers = { 'content-type': 'application/apply-patch+yaml' }
      return api.call('PATCH', `${CLAIMS}/${name}?fieldManager=me`, JSON.stringify(object), headers)
    }
    expect((await apply('a')).status).toBe(201)
    expect((await apply('a')).status).toBe(200)
    expect(await getUsage('team')).toEqual({ persistentvolumeclaims: '1' })
    expect((await apply('b')).status).toBe(403)
  })

  it('allows the deletion of claims while the quota is exceeded', async () => {
    for (const name of ['a', 'b', 'c']) await createClaim(name)
    await createQuota('team', { hard: { persistentvolumeclaims: '0', 'requests.storage': '0' } })
    expect((await postClaim('d')).status).toBe(403)
    for (const name of ['a', 'b']) await deleteClaim(name)
    expect(await getUsage('team')).toEqual({ persistentvolumeclaims: '1', 'requests.storage': '1Gi' })
  })

  it('is written fewer times than there are concurrent creates, although each claim has a version of its own', async () => {
    await createQuota('team', { hard: { persistentvolumeclaims: '30', 'requests.storage': '1Ti' } })
    await createClaim('first')
    const events: Json[] = []
    const watch = api.store.watch({
      prefix: 'core/resourcequotas/default/',
      afterRevision: api.store.revision,
      onEvents: (batch) => events.push(...batch.map(({ entry }) => JSON.parse(Buffer.from(entry!.value).toString()))),
      onEnd: () => {},
    })
    const responses = await Promise.all(Array.from({ length: 40 }, (_, n) => postClaim(`c${n}`)))
    const versions = responses.filter(({ status }) => status === 201).map(({ json }) => json.metadata.resourceVersion)
    expect(new Set(versions).size).toBe(29)
    expect(events.at(-1).status.used).toEqual({ persistentvolumeclaims: '30', 'requests.storage': '30Gi' })
    expect(events.length).toBeLessThan(10)
    expect(await getUsage('team')).toEqual(events.at(-1).status.used)
    watch.close()
    for (const version of versions) {
      const { json } = await api.get(`${CLAIMS}?resourceVersion=${version}&resourceVersionMatch=Exact`)
      expect(json.items.map(({ metadata }: Json) => metadata.resourceVersion)).toContain(version)
    }
  })

  it('applies a new limit to the later creates of the same group commit', async () => {
    const medium = memoryMedium()
    api = await createServerFixture({ medium })
    await createQuota('team', { hard: { persistentvolumeclaims: '3' } })
    await createClaim('first')
    let release = () => {}
    const releasePromise = new Promise<void>((resolve) => {
      release = resolve
    })
    const write = medium.write.bind(medium)
    medium.write = async (batch) => {
      await releasePromise
      return write(batch)
    }
    /** Sends requests that wait in the store for the write before them. */
    const send = async <T>(requests: () => T): Promise<T> => {
      const responses = requests()
      for (let turn = 0; turn < REQUEST_TURNS; turn++) await api.clock.nextTurn()
      return responses
    }
    const blockingRequests = await send(() => [
      api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'x' } }),
    ])
    const firstCreates = await send(() => ['a', 'b', 'c'].map((name) => postClaim(name)))
    const quota = { metadata: { name: 'team' }, spec: { hard: { persistentvolumeclaims: '5' } } }
    const edits = await send(() => [api.put(`${QUOTAS}/team`, quota)])
    const laterCreates = await send(() => ['d', 'e', 'f'].map((name) => postClaim(name)))
    release()
    const statuses = async (requests: typeof edits) => (await Promise.all(requests)).map(({ status }) => status)
    expect(await statuses([...blockingRequests, ...edits])).toEqual([201, 200])
    expect(await statuses(firstCreates)).toEqual([201, 201, 403])
    expect(await statuses(laterCreates)).toEqual([201, 201, 403])
    expect((await api.get(`${QUOTAS}/team`)).json.status).toEqual({
      hard: { persistentvolumeclaims: '5' },
      used: { persistentvolumeclaims: '5' },
    })
  })

  it('counts the existing claims after its creation, even if they exceed it', async () => {
    for (const name of ['a', 'b', 'c']) await createClaim(name)
    await createQuota('late', { hard: { persistentvolumeclaims: '2', 'requests.storage': '4Gi' } })
    const { json } = await postClaim('d')
    expect(json.message).toContain(
      'exceeded quota: late, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=3',
    )
    await deleteClaim('a')
    expect(await getUsage('late')).toEqual({ persistentvolumeclaims: '2', 'requests.storage': '2Gi' })
    await deleteClaim('b')
    await createClaim('e')
    expect(await getUsage('late')).toEqual({ persistentvolumeclaims: '2', 'requests.storage': '2Gi' })
  })

  it('rejects only additional usage after a limit is lowered below the current usage', async () => {
    await createQuota('team', { hard: { 'requests.storage': '10Gi' } })
    await createClaim('a', storageRequest('5Gi'))
    await api.patch(`${QUOTAS}/team`, { spec: { hard: { 'requests.storage': '2Gi' } } }, 'merge')
    expect((await api.get(`${QUOTAS}/team`)).json.status).toEqual({
      hard: { 'requests.storage': '2Gi' },
      used: { 'requests.storage': '5Gi' },
    })
    expect((await postClaim('b')).status).toBe(403)
    expect((await api.patch(`${CLAIMS}/a`, { metadata: { labels: { x: 'y' } } }, 'merge')).status).toBe(200)
    await deleteClaim('a')
    await createClaim('b', storageRequest('2Gi'))
  })

  it('counts the usage of added or newly scoped keys with the next charge', async () => {
    await createQuota('team', { hard: { persistentvolumeclaims: '10' } })
    await createClaim('a', storageRequest('5Gi'))
    await api.patch(`${QUOTAS}/team`, { spec: { hard: { 'requests.storage': '7Gi' } } }, 'merge')
    expect(await getUsage('team')).toEqual({ persistentvolumeclaims: '1' })
    expect((await postClaim('b', storageRequest('3Gi'))).json.message).toContain('used: requests.storage=5Gi')
    await createClaim('b', storageRequest('2Gi'))
    expect(await getUsage('team')).toEqual({ persistentvolumeclaims: '2', 'requests.storage': '7Gi' })

    const matchExpressions = [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }]
    await api.patch(`${QUOTAS}/team`, { spec: { scopeSelector: { matchExpressions } } }, 'merge')
    expect(await getUsage('team')).toEqual({})
    await createClaim('c', { volumeAttributesClassName: 'gold', ...storageRequest('7Gi') })
    expect(await getUsage('team')).toEqual({ persistentvolumeclaims: '1', 'requests.storage': '7Gi' })
  })

  it('REX-4 charges the largest of the request and both allocated sizes, rounded up to whole bytes', async () => {
    await createExpandableClass()
    await createQuota('team', { hard: { 'requests.storage': '1Ti' } })
    await createBoundClaim('a')
    expect((await patchSpec('a', storageRequest('10Gi'))).status).toBe(200)
    expect((await patchSpec('a', storageRequest('2Gi'))).status).toBe(200)
    expect(await getUsage('team')).toEqual({ 'requests.storage': '10Gi' })
    await setStatus('a', { allocatedResources: { storage: '20Gi' } })
    expect(await getUsage('team')).toEqual({ 'requests.storage': '20Gi' })
    await deleteClaim('a')
    await createClaim('tiny', storageRequest('1001m'))
    expect(await getUsage('team')).toEqual({ 'requests.storage': '2' })
  })

  it('REX-4 charges the difference of an expansion, and is not written when a request is lowered', async () => {
    await createExpandableClass()
    await createQuota('team', { hard: { 'requests.storage': '15Gi', persistentvolumeclaims: '1' } })
    await createBoundClaim('a', storageRequest('10Gi'))
    expect((await patchSpec('a', storageRequest('16Gi'))).json.message).toContain(
      'exceeded quota: team, requested: requests.storage=6Gi, used: requests.storage=10Gi, limited: requests.storage=15Gi',
    )
    expect((await patchSpec('a', storageRequest('15Gi'))).status).toBe(200)
    expect(await getUsage('team')).toEqual({ 'requests.storage': '15Gi', persistentvolumeclaims: '1' })
    const { resourceVersion } = (await api.get(`${QUOTAS}/team`)).json.metadata
    expect((await patchSpec('a', storageRequest('12Gi'))).status).toBe(200)
    expect((await api.get(`${QUOTAS}/team`)).json.metadata.resourceVersion).toBe(resourceVersion)
  })

  it('records one Warning event on the claim for a burst of rejected updates, but none for a dry run or a create', async () => {
    await createExpandableClass()
    await createQuota('team', { hard: { 'requests.storage': '2Gi' } })
    await createBoundClaim('a')
    for (let n = 0; n < 3; n++) expect((await patchSpec('a', storageRequest('3Gi'))).status).toBe(403)
    const { items } = (await api.get(EVENTS)).json
    const { uid } = (await api.get(`${CLAIMS}/a`)).json.metadata
    expect(items).toHaveLength(1)
    expect(items[0]).toMatchObject({
      type: 'Warning',
      reason: 'ExceededQuota',
      message:
        'exceeded quota: team, requested: requests.storage=2Gi, used: requests.storage=1Gi, limited: requests.storage=2Gi',
      count: 1,
      involvedObject: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'default', name: 'a', uid },
    })
    await api.clock.advance(11_000)
    await patchSpec('a', storageRequest('3Gi'))
    expect((await api.get(EVENTS)).json.items).toMatchObject([{ count: 2 }])
    await api.patch(`${CLAIMS}/a?dryRun=All`, { spec: storageRequest('9Gi') }, 'merge')
    await postClaim('b', storageRequest('9Gi'))
    expect((await api.get(EVENTS)).json.items).toHaveLength(1)
  })

  it('counts claims by storage class, from the field or the beta annotation', async () => {
    await createQuota('classes', {
      hard: {
        'gold.storageclass.storage.k8s.io/requests.storage': '5Gi',
        'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '2',
        'requests.storage': '100Gi',
      },
    })
    await createClaim('a', { storageClassName: 'gold', ...storageRequest('3Gi') })
    await createClaim('b', { storageClassName: 'silver', ...storageRequest('50Gi') })
    const annotations = { 'volume.beta.kubernetes.io/storage-class': 'gold' }
    const spec = { accessModes: ['ReadWriteOnce'], ...storageRequest('1Gi') }
    expect((await api.post(CLAIMS, { metadata: { name: 'c', annotations }, spec })).status).toBe(201)
    expect(await getUsage('classes')).toEqual({
      'gold.storageclass.storage.k8s.io/requests.storage': '4Gi',
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '2',
      'requests.storage': '54Gi',
    })
    expect((await postClaim('d', { storageClassName: 'gold' })).status).toBe(403)
    await createClaim('e', { storageClassName: 'bronze' })
  })

  it('is charged together with all other matching quotas or not at all', async () => {
    await createQuota('a', { hard: { persistentvolumeclaims: '5' } })
    await createQuota('b', { hard: { 'requests.storage': '5Gi' } })
    await createQuota('c', { hard: { pods: '5' } })
    const watch = await api.watch(`${QUOTAS}?watch=1&resourceVersion=${api.store.revision}`)
    await createClaim('one')
    expect((await postClaim('two', storageRequest('5Gi'))).status).toBe(403)
    await createClaim('three', storageRequest('4Gi'))
    await watch.waitUntil((events) => events.length >= 4)
    expect(watch.events.map(({ object }) => `${object.metadata.name} ${Object.values(object.status.used)}`)).toEqual([
      'a 1',
      'b 1Gi',
      'a 2',
      'b 5Gi',
    ])
    expect(new Set(watch.events.map(({ object }) => object.metadata.resourceVersion)).size).toBe(4)
  })

  it('does not charge an update that does not change the usage, or a kind without a quota key', async () => {
    await createQuota('team', { hard: { persistentvolumeclaims: '1' } })
    await createClaim('a')
    const { resourceVersion } = (await api.get(`${QUOTAS}/team`)).json.metadata
    await api.patch(`${CLAIMS}/a`, { metadata: { labels: { x: 'y' } } }, 'merge')
    await api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'm' } })
    expect((await api.get(`${QUOTAS}/team`)).json.metadata.resourceVersion).toBe(resourceVersion)
  })

  it('does not apply to another namespace, or after its deletion', async () => {
    await api.post('/api/v1/namespaces', { metadata: { name: 'other' } })
    await api.post('/api/v1/namespaces/other/resourcequotas', {
      metadata: { name: 'none' },
      spec: { hard: { persistentvolumeclaims: '0' } },
    })
    await createClaim('a')
    await createQuota('short', { hard: { persistentvolumeclaims: '1' } })
    expect((await postClaim('b')).status).toBe(403)
    expect((await api.delete(`${QUOTAS}/short`)).status).toBe(200)
    await createClaim('b')
    expect((await api.store.get('stowage.dev/namespacelimits/default'))?.key).toBeUndefined()
  })

  it('charges the writes of a commit in order', async () => {
    await createQuota('team', { hard: { persistentvolumeclaims: '2' } })
    const create = (name: string) => ({
      verb: 'create',
      apiVersion: 'v1',
      resource: 'persistentvolumeclaims',
      namespace: 'default',
      body: { metadata: { name }, spec: { accessModes: ['ReadWriteOnce'], ...storageRequest('1Gi') } },
    })
    const commit = (...names: string[]) =>
      api.post('/apis/stowage.dev/v1/commits', { writes: names.map((name) => create(name)) })
    const { status, json } = await commit('a', 'b', 'c')
    expect(status).toBe(403)
    expect(json.details.causes).toMatchObject([{ field: 'writes[2]' }])
    expect(await getUsage('team')).toBeUndefined()
    expect((await commit('a', 'b')).status).toBe(200)
    expect(await getUsage('team')).toEqual({ persistentvolumeclaims: '2' })
  })

  it('is rejected if the namespace already has the maximum number of quotas', async () => {
    for (let n = 0; n < NAMESPACE_LIMITS_MAX; n++)
      await createQuota(`q${n}`, { hard: { persistentvolumeclaims: '10' } })
    const { status, json } = await api.post(QUOTAS, { metadata: { name: 'more' }, spec: {} })
    expect(status).toBe(403)
    expect(json.message).toContain('the namespace already has 100 resourcequotas, the maximum')
    await createClaim('a')
    expect(await getUsage('q99')).toEqual({ persistentvolumeclaims: '1' })
  })
})

describe('a quota scoped to an attributes class', () => {
  const quotaByClass = (...values: string[]) => ({
    hard: { persistentvolumeclaims: '1', 'requests.storage': '10Gi' },
    scopeSelector: { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'In', values }] },
  })
  const getClaimCounts = async (...names: string[]) =>
    Promise.all(names.map(async (name) => (await getUsage(name))?.persistentvolumeclaims ?? '0'))

  beforeEach(async () => {
    await createExpandableClass()
    for (const name of ['gold', 'silver', 'copper']) await createQuota(name, quotaByClass(name))
  })

  it("VAC-10 counts only its class's claims", async () => {
    await createClaim('a', { volumeAttributesClassName: 'gold' })
    expect(await getUsage('gold')).toEqual({ persistentvolumeclaims: '1', 'requests.storage': '1Gi' })
    expect(await getClaimCounts('gold', 'silver', 'copper')).toEqual(['1', '0', '0'])
    expect((await postClaim('b', { volumeAttributesClassName: 'gold' })).json.message).toContain('exceeded quota: gold')
  })

  it('VAC-10 counts a claim in both classes while its class changes', async () => {
    await createBoundClaim('a')
    expect((await patchSpec('a', { volumeAttributesClassName: 'gold' })).status).toBe(200)
    await setStatus('a', { currentVolumeAttributesClassName: 'gold' })
    expect(await getClaimCounts('gold', 'silver')).toEqual(['1', '0'])
    expect((await patchSpec('a', { volumeAttributesClassName: 'silver' })).status).toBe(200)
    expect(await getClaimCounts('gold', 'silver')).toEqual(['1', '1'])
    await setStatus('a', {
      modifyVolumeStatus: { targetVolumeAttributesClassName: 'silver', status: 'InProgress' },
    })
    expect(await getClaimCounts('gold', 'silver')).toEqual(['1', '1'])
    await setStatus('a', { currentVolumeAttributesClassName: 'silver', modifyVolumeStatus: null })
    expect(await getClaimCounts('gold', 'silver')).toEqual(['0', '1'])
    await createClaim('b', { volumeAttributesClassName: 'gold' })
  })

  it('VAC-10 is charged in full when a claim requests its class, and is not written again during the modification', async () => {
    const getVersions = async () =>
      (await api.get(QUOTAS)).json.items.map(({ metadata }: Json) => metadata.resourceVersion)
    await createBoundClaim('a', storageRequest('3Gi'))
    await setStatus('a', { currentVolumeAttributesClassName: 'bronze' })
    for (const name of ['gold', 'silver', 'copper']) {
      expect((await patchSpec('a', { volumeAttributesClassName: name })).status).toBe(200)
      expect(await getUsage(name)).toEqual({ persistentvolumeclaims: '1', 'requests.storage': '3Gi' })
      const previous = await getVersions()
      await setStatus('a', { modifyVolumeStatus: { targetVolumeAttributesClassName: name, status: 'InProgress' } })
      expect(await getVersions(), name).toEqual(previous)
      await setStatus('a', { currentVolumeAttributesClassName: name, modifyVolumeStatus: null })
    }
    expect(await getClaimCounts('gold', 'silver', 'copper')).toEqual(['0', '0', '1'])
  })

  it("VAC-10 PIO-7 limits iops and throughput of its class's claims", async () => {
    const { scopeSelector } = quotaByClass('gold')
    await createQuota('io', { hard: { 'limits.iops': '1000', 'requests.throughput': '50Mi' }, scopeSelector })
    const claimSpec = (requests: object, volumeAttributesClassName: string) => ({
      volumeAttributesClassName,
      resources: { requests: { storage: '1Gi', ...requests } },
    })
    await createClaim('a', claimSpec({ iops: '900', throughput: '40Mi' }, 'gold'))
    await createClaim('b', claimSpec({ iops: '900' }, 'silver'))
    expect(await getUsage('io')).toEqual({ 'limits.iops': '900', 'requests.throughput': '40Mi' })
    await api.delete(`${QUOTAS}/gold`)
    expect((await postClaim('c', claimSpec({ iops: '200' }, 'gold'))).json.message).toContain(
      'exceeded quota: io, requested: limits.iops=200, used: limits.iops=900, limited: limits.iops=1k',
    )
  })

  it('PIO-7 does not charge the iops parameter of a class, which only the driver interprets', async () => {
    await createQuota('io', { hard: { 'limits.iops': '1000', 'requests.iops': '1000' } })
    await api.post('/apis/storage.k8s.io/v1/volumeattributesclasses', {
      metadata: { name: 'gold' },
      driverName: 'd.example.com',
      parameters: { iops: '5000' },
    })
    await createClaim('a', { volumeAttributesClassName: 'gold' })
    await createClaim('b', { resources: { requests: { storage: '1Gi', iops: '10' } } })
    expect(await getUsage('io')).toEqual({ 'limits.iops': '10', 'requests.iops': '10' })
  })

  it('VAC-10 PIO-7 records an event on a claim whose change of class or iops is rejected', async () => {
    await createQuota('io', { hard: { 'requests.iops': '100' } })
    await createClaim('other', { volumeAttributesClassName: 'gold' })
    await createBoundClaim('a')
    expect((await patchSpec('a', { volumeAttributesClassName: 'gold' })).status).toBe(403)
    expect((await patchSpec('a', { resources: { requests: { iops: '101' } } })).status).toBe(403)
    const { items } = (await api.get(EVENTS)).json
    const events = items.map(({ type, reason, message, involvedObject }: Json) => [
      type,
      reason,
      message.slice(0, message.indexOf(',')),
      involvedObject.name,
    ])
    expect(events.sort()).toEqual([
      ['Warning', 'ExceededQuota', 'exceeded quota: gold', 'a'],
      ['Warning', 'ExceededQuota', 'exceeded quota: io', 'a'],
    ])
  })

  it('VAC-10 is charged for a status update even if exceeded, but rejects a spec update', async () => {
    await createClaim('other', { volumeAttributesClassName: 'silver', ...storageRequest('10Gi') })
    await createBoundClaim('a')
    expect((await patchSpec('a', { volumeAttributesClassName: 'silver' })).status).toBe(403)
    await setStatus('a', { currentVolumeAttributesClassName: 'silver' })
    expect(await getUsage('silver')).toEqual({ persistentvolumeclaims: '2', 'requests.storage': '11Gi' })
  })
})

describe('a quota of iops and throughput', () => {
  const ioRequests = (requests: object) => ({ resources: { requests: { storage: '1Gi', ...requests } } })

  it('PIO-7 applies limits.* to the sum and requests.* to each claim, and does not charge claims without either', async () => {
    await createQuota('io', {
      hard: { 'limits.iops': '3k', 'requests.iops': '2k', 'limits.throughput': '100', 'requests.throughput': '60' },
    })
    await createClaim('plain')
    await createClaim('a', ioRequests({ iops: '1500', throughput: '50' }))
    expect(await getUsage('io')).toEqual({
      'limits.iops': '1500',
      'requests.iops': '1500',
      'limits.throughput': '50Mi',
      'requests.throughput': '50Mi',
    })
    expect((await postClaim('b', ioRequests({ iops: '2001' }))).json.message).toContain(
      'exceeded quota: io, requested: limits.iops=2001,requests.iops=2001, used: limits.iops=1500,requests.iops=1500, limited: limits.iops=3k,requests.iops=2k',
    )
    expect((await postClaim('b', ioRequests({ iops: '1501' }))).json.message).toContain(
      'requested: limits.iops=1501, used',
    )
    await createClaim('b', ioRequests({ iops: '1500' }))
    expect(await getUsage('io')).toMatchObject({ 'limits.iops': '3k', 'requests.iops': '1500' })
  })

  it('PIO-7 recomputes the maximum when the largest claim is deleted', async () => {
    await createQuota('io', { hard: { 'requests.iops': '2k' } })
    for (const [name, iops] of Object.entries({ a: '100', b: '700', c: '500' }))
      await createClaim(name, ioRequests({ iops }))
    expect(await getUsage('io')).toEqual({ 'requests.iops': '700' })
    await deleteClaim('b')
    expect(await getUsage('io')).toEqual({ 'requests.iops': '500' })
    await deleteClaim('a')
    await deleteClaim('c')
    expect(await getUsage('io')).toEqual({ 'requests.iops': '0' })
  })

  it('PIO-7 charges allocated iops until the allocation is lowered, not only the request', async () => {
    await createQuota('io', { hard: { 'limits.iops': '1k' } })
    await createBoundClaim('a', ioRequests({ iops: '800' }))
    await setStatus('a', { allocatedResources: { iops: '800' } })
    expect((await patchSpec('a', ioRequests({ iops: '100' }))).status).toBe(200)
    expect(await getUsage('io')).toEqual({ 'limits.iops': '800' })
    await setStatus('a', { allocatedResources: { iops: '100' } })
    expect(await getUsage('io')).toEqual({ 'limits.iops': '100' })
  })

  it('PIO-7 charges the amounts of the volume after the request is removed, until a class sets them', async () => {
    await createQuota('io', { hard: { 'limits.iops': '1k', 'requests.iops': '1k' } })
    await createBoundClaim('a', ioRequests({ iops: '800' }))
    await setStatus('a', { capacity: { iops: '800' } })
    expect((await patchSpec('a', ioRequests({ iops: null }))).status).toBe(200)
    expect(await getUsage('io')).toEqual({ 'limits.iops': '800', 'requests.iops': '800' })
    expect((await postClaim('b', ioRequests({ iops: '300' }))).status).toBe(403)
    await setStatus('a', { capacity: { iops: null }, currentVolumeAttributesClassName: 'gold' })
    expect(await getUsage('io')).toEqual({ 'limits.iops': '0', 'requests.iops': '0' })
    await createClaim('b', ioRequests({ iops: '300' }))
  })
})

describe('a quota of other objects', () => {
  it('counts objects by count/ keys and by the older key names', async () => {
    await createQuota('objects', {
      hard: {
        'count/configmaps': '1',
        configmaps: '5',
        'count/leases.coordination.k8s.io': '1',
        resourcequotas: '2',
        secrets: '0',
        'count/deployments.apps': '0',
      },
    })
    const configMaps = '/api/v1/namespaces/default/configmaps'
    expect((await api.post(configMaps, { metadata: { name: 'a' } })).status).toBe(201)
    expect((await api.post(configMaps, { metadata: { name: 'b' } })).json.message).toBe(
      'configmaps "b" is forbidden: exceeded quota: objects, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1',
    )
    const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
    expect((await api.post(leases, { metadata: { name: 'a' }, spec: {} })).status).toBe(201)
    expect((await api.post(leases, { metadata: { name: 'b' }, spec: {} })).status).toBe(403)
    expect((await api.post('/api/v1/namespaces/default/secrets', { metadata: { name: 's' } })).status).toBe(403)
    await createQuota('second', { hard: {} })
    expect((await api.post(QUOTAS, { metadata: { name: 'third' }, spec: {} })).status).toBe(403)
    expect(await getUsage('objects')).toEqual({
      'count/configmaps': '1',
      configmaps: '1',
      'count/leases.coordination.k8s.io': '1',
      resourcequotas: '2',
      secrets: '0',
      'count/deployments.apps': '0',
    })
    expect((await api.delete(`${configMaps}/a`)).status).toBe(200)
    expect((await api.post(configMaps, { metadata: { name: 'b' } })).status).toBe(201)
    expect((await api.delete(`${QUOTAS}/objects`)).status).toBe(200)
  })

  it("charges the requests and limits of a pod's containers until the pod terminates", async () => {
    await createQuota('compute', {
      hard: { pods: '2', 'requests.cpu': '1', 'limits.memory': '1Gi', 'count/pods': '5' },
    })
    const podSpec = (cpu: string, memory: string) => ({ containers: [aContainer('c', { cpu }, { memory })] })
    expect((await postPod('a', podSpec('600m', '500Mi'))).status).toBe(201)
    expect(await getUsage('compute')).toEqual({
      pods: '1',
      'requests.cpu': '600m',
      'limits.memory': '500Mi',
      'count/pods': '1',
    })
    expect((await postPod('b', podSpec('600m', '500Mi'))).json.message).toContain(
      'exceeded quota: compute, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1',
    )
    expect((await api.patch(`${PODS}/a/status`, { status: { phase: 'Succeeded' } }, 'merge')).status).toBe(200)
    expect(await getUsage('compute')).toEqual({
      pods: '0',
      'requests.cpu': '0',
      'limits.memory': '0',
      'count/pods': '1',
    })
    expect((await postPod('b', podSpec('1', '1Gi'))).status).toBe(201)
    await api.delete(`${PODS}/a`, { gracePeriodSeconds: 0 })
    expect(await getUsage('compute')).toMatchObject({ 'count/pods': '1', 'requests.cpu': '1' })
  })

  it('requires containers to specify the cpu and memory that it limits', async () => {
    await createQuota('compute', {
      hard: { 'limits.cpu': '4', 'requests.memory': '4Gi', 'requests.ephemeral-storage': '1Gi' },
    })
    const { status, json } = await postPod('a', {
      containers: [aContainer('one', { memory: '1Mi' }), aContainer('two')],
      initContainers: [aContainer('zero', {}, { cpu: '1' })],
    })
    expect(status).toBe(403)
    expect(json.message).toBe(
      'pods "a" is forbidden: failed quota: compute: must specify limits.cpu for: one,two; requests.memory for: two,zero',
    )
  })

  it('with a scope counts only the pods that match it', async () => {
    await createQuota('besteffort', { hard: { pods: '1', 'count/configmaps': '0' }, scopes: ['BestEffort'] })
    await createQuota('short', { hard: { pods: '1' }, scopes: ['Terminating', 'NotBestEffort'] })
    const matchExpressions = [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }]
    await createQuota('urgent', { hard: { pods: '0' }, scopeSelector: { matchExpressions } })
    await createClaim('claim')
    expect((await api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'm' } })).status).toBe(201)
    expect((await postPod('a', { containers: [aContainer('c')] })).status).toBe(201)
    expect((await postPod('b', { containers: [aContainer('c')] })).json.message).toContain('exceeded quota: besteffort')
    const terminatingSpec = { containers: [aContainer('c', { cpu: '1' })], activeDeadlineSeconds: 60 }
    expect((await postPod('c', terminatingSpec)).status).toBe(201)
    expect((await postPod('d', terminatingSpec)).json.message).toContain('exceeded quota: short')
    await api.post('/apis/scheduling.k8s.io/v1/priorityclasses', { metadata: { name: 'high' }, value: 1000 })
    const urgentSpec = { containers: [aContainer('c', { cpu: '1' })], priorityClassName: 'high' }
    expect((await postPod('e', urgentSpec)).json.message).toContain('exceeded quota: urgent')
  })
})
