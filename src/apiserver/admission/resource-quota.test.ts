import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { NAMESPACE_LIMITS_MAX } from './namespace-limits.ts'

const QUOTAS = '/api/v1/namespaces/default/resourcequotas'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const EVENTS = '/api/v1/namespaces/default/events'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})
afterEach(() => api.store.close())

const aQuota = async (name: string, spec: object) => {
  const answer = await api.post(QUOTAS, { metadata: { name }, spec })
  expect(answer.status, answer.text).toBe(201)
}
const used = async (name: string) => (await api.get(`${QUOTAS}/${name}`)).json.status?.used
const storage = (size: string) => ({ resources: { requests: { storage: size } } })
const claim = (name: string, spec: object = {}) =>
  api.post(CLAIMS, { metadata: { name }, spec: { accessModes: ['ReadWriteOnce'], ...storage('1Gi'), ...spec } })
const created = async (name: string, spec: object = {}) => {
  const answer = await claim(name, spec)
  expect(answer.status, answer.text).toBe(201)
  return answer.json
}
const change = (name: string, spec: object) => api.patch(`${CLAIMS}/${name}`, { spec }, 'merge')
const setStatus = async (name: string, status: object) => {
  const answer = await api.patch(`${CLAIMS}/${name}/status`, { status }, 'merge')
  expect(answer.status, answer.text).toBe(200)
}
/** Removes the finalizers too, so that the claim is removed from the store. */
const remove = async (name: string) => {
  expect((await api.delete(`${CLAIMS}/${name}`)).status).toBe(200)
  expect((await api.patch(`${CLAIMS}/${name}`, { metadata: { finalizers: null } }, 'merge')).status).toBe(200)
}
const bound = async (name: string, spec: object = {}) => {
  await created(name, { storageClassName: 'grows', ...spec })
  await setStatus(name, { phase: 'Bound', capacity: { storage: '1Gi' } })
}
const growingClass = () =>
  api.post('/apis/storage.k8s.io/v1/storageclasses', {
    metadata: { name: 'grows' },
    provisioner: 'd.example.com',
    allowVolumeExpansion: true,
  })
const container = (name: string, requests?: object, limits?: object) => ({
  name,
  image: 'i',
  resources: { ...(requests ? { requests } : {}), ...(limits ? { limits } : {}) },
})
const pod = (name: string, spec: object) => api.post(PODS, { metadata: { name }, spec })

describe('quota of claims', () => {
  it('REX-4 charges a created claim, and releases it when it is removed, not when it is marked for deletion', async () => {
    await aQuota('team', { hard: { 'requests.storage': '10Gi', persistentvolumeclaims: '5' } })
    await created('a', storage('3Gi'))
    await created('b', storage('4Gi'))
    expect(await used('team')).toEqual({ 'requests.storage': '7Gi', persistentvolumeclaims: '2' })
    await api.delete(`${CLAIMS}/a`)
    expect(await used('team')).toMatchObject({ 'requests.storage': '7Gi' })
    await api.patch(`${CLAIMS}/a`, { metadata: { finalizers: null } }, 'merge')
    expect(await used('team')).toEqual({ 'requests.storage': '4Gi', persistentvolumeclaims: '1' })
  })

  it('REX-4 rejects a claim that does not fit with the message of Kubernetes, and does not charge it', async () => {
    await aQuota('team', { hard: { 'requests.storage': '100Gi', persistentvolumeclaims: '1' } })
    await created('a', storage('95Gi'))
    const { status, json } = await claim('b', storage('10Gi'))
    expect(status).toBe(403)
    expect(json).toMatchObject({
      reason: 'Forbidden',
      message:
        'persistentvolumeclaims "b" is forbidden: exceeded quota: team, ' +
        'requested: persistentvolumeclaims=1,requests.storage=10Gi, used: persistentvolumeclaims=1,requests.storage=95Gi, ' +
        'limited: persistentvolumeclaims=1,requests.storage=100Gi',
      details: { name: 'b', kind: 'persistentvolumeclaims' },
    })
    expect(await used('team')).toEqual({ 'requests.storage': '95Gi', persistentvolumeclaims: '1' })
  })

  it('REX-4 names only the exceeded resources', async () => {
    await aQuota('team', { hard: { 'requests.storage': '5Gi', persistentvolumeclaims: '10' } })
    const { json } = await claim('a', storage('6Gi'))
    expect(json.message).toContain(
      'exceeded quota: team, requested: requests.storage=6Gi, used: requests.storage=0, limited: requests.storage=5Gi',
    )
  })

  it('SYS-4 checks a dry-run create and does not charge it', async () => {
    await aQuota('team', { hard: { 'requests.storage': '5Gi' } })
    const dry = (size: string) =>
      api.post(`${CLAIMS}?dryRun=All`, {
        metadata: { name: 'dry' },
        spec: { accessModes: ['ReadWriteOnce'], ...storage(size) },
      })
    expect((await dry('5Gi')).status).toBe(201)
    const before = api.store.revision
    expect((await dry('6Gi')).json).toMatchObject({
      code: 403,
      message: expect.stringContaining('exceeded quota: team'),
    })
    expect(api.store.revision).toBe(before)
    await created('a', storage('5Gi'))
    expect((await dry('1Gi')).status).toBe(403)
  })

  it('SYS-4 (74) checks a dry-run update, and neither charges it nor records an event', async () => {
    await growingClass()
    await aQuota('team', { hard: { 'requests.storage': '5Gi' } })
    await bound('a')
    const before = api.store.revision
    const dry = (size: string) => api.patch(`${CLAIMS}/a?dryRun=All`, { spec: storage(size) }, 'merge')
    expect((await dry('5Gi')).status).toBe(200)
    expect((await dry('6Gi')).json).toMatchObject({ code: 403, message: expect.stringContaining('exceeded quota') })
    expect(api.store.revision).toBe(before)
  })

  it('SYS-4 (76) charges an apply that creates as a create', async () => {
    await aQuota('team', { hard: { persistentvolumeclaims: '1' } })
    const apply = (name: string) => {
      const spec = { accessModes: ['ReadWriteOnce'], ...storage('1Gi') }
      const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec }
      const headers = { 'content-type': 'application/apply-patch+yaml' }
      return api.call('PATCH', `${CLAIMS}/${name}?fieldManager=me`, JSON.stringify(object), headers)
    }
    expect((await apply('a')).status).toBe(201)
    expect((await apply('a')).status).toBe(200)
    expect(await used('team')).toEqual({ persistentvolumeclaims: '1' })
    expect((await apply('b')).status).toBe(403)
  })

  it('SYS-4 (76) never rejects a delete, even if the quota is exceeded', async () => {
    for (const name of ['a', 'b', 'c']) await created(name)
    await aQuota('team', { hard: { persistentvolumeclaims: '0', 'requests.storage': '0' } })
    expect((await claim('d')).status).toBe(403)
    for (const name of ['a', 'b']) await remove(name)
    expect(await used('team')).toEqual({ persistentvolumeclaims: '1', 'requests.storage': '1Gi' })
  })

  it('SYS-4 writes the quota once for creates of one group commit, while each claim has its own version', async () => {
    await aQuota('team', { hard: { persistentvolumeclaims: '30', 'requests.storage': '1Ti' } })
    await created('first')
    const seen: Json[] = []
    const watch = api.store.watch({
      prefix: 'core/resourcequotas/default/',
      afterRevision: api.store.revision,
      onEvents: (events) => seen.push(...events.map(({ entry }) => JSON.parse(Buffer.from(entry!.value).toString()))),
      onEnd: () => {},
    })
    const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => claim(`c${n}`)))
    const versions = answers.filter(({ status }) => status === 201).map(({ json }) => json.metadata.resourceVersion)
    expect(new Set(versions).size).toBe(29)
    expect(seen.at(-1).status.used).toEqual({ persistentvolumeclaims: '30', 'requests.storage': '30Gi' })
    expect(seen.length).toBeLessThan(10)
    expect(await used('team')).toEqual(seen.at(-1).status.used)
    watch.close()
    for (const version of versions) {
      const { json } = await api.get(`${CLAIMS}?resourceVersion=${version}&resourceVersionMatch=Exact`)
      expect(json.items.map(({ metadata }: Json) => metadata.resourceVersion)).toContain(version)
    }
  })

  it('SYS-4 applies an edit of the quota to the creates after it in the same group commit', async () => {
    await aQuota('team', { hard: { persistentvolumeclaims: '3' } })
    await created('first')
    const few = ['a', 'b', 'c'].map((name) => claim(name))
    const edit = api.patch(`${QUOTAS}/team`, { spec: { hard: { persistentvolumeclaims: '5' } } }, 'merge')
    const more = ['d', 'e', 'f'].map((name) => claim(name))
    const outcomes = (await Promise.all([...few, ...more])).map(({ status }) => status)
    expect((await edit).status).toBe(200)
    expect(outcomes.sort()).toEqual([201, 201, 201, 201, 403, 403])
    expect((await api.get(`${QUOTAS}/team`)).json.status).toEqual({
      hard: { persistentvolumeclaims: '5' },
      used: { persistentvolumeclaims: '5' },
    })
  })

  it('REX-4 counts existing claims in a new quota, even if they exceed it', async () => {
    for (const name of ['a', 'b', 'c']) await created(name)
    await aQuota('late', { hard: { persistentvolumeclaims: '2', 'requests.storage': '4Gi' } })
    const { json } = await claim('d')
    expect(json.message).toContain(
      'exceeded quota: late, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=3',
    )
    await remove('a')
    expect(await used('late')).toEqual({ persistentvolumeclaims: '2', 'requests.storage': '2Gi' })
    await remove('b')
    await created('e')
    expect(await used('late')).toEqual({ persistentvolumeclaims: '2', 'requests.storage': '2Gi' })
  })

  it('REX-4 rejects only additional usage after a limit is lowered below the current usage', async () => {
    await aQuota('team', { hard: { 'requests.storage': '10Gi' } })
    await created('a', storage('5Gi'))
    await api.patch(`${QUOTAS}/team`, { spec: { hard: { 'requests.storage': '2Gi' } } }, 'merge')
    expect((await api.get(`${QUOTAS}/team`)).json.status).toEqual({
      hard: { 'requests.storage': '2Gi' },
      used: { 'requests.storage': '5Gi' },
    })
    expect((await claim('b')).status).toBe(403)
    expect((await api.patch(`${CLAIMS}/a`, { metadata: { labels: { x: 'y' } } }, 'merge')).status).toBe(200)
    await remove('a')
    await created('b', storage('2Gi'))
  })

  it('REX-4 counts the usage of added or newly scoped keys when it is next needed', async () => {
    await aQuota('team', { hard: { persistentvolumeclaims: '10' } })
    await created('a', storage('5Gi'))
    await api.patch(`${QUOTAS}/team`, { spec: { hard: { 'requests.storage': '7Gi' } } }, 'merge')
    expect(await used('team')).toEqual({ persistentvolumeclaims: '1' })
    expect((await claim('b', storage('3Gi'))).json.message).toContain('used: requests.storage=5Gi')
    await created('b', storage('2Gi'))
    expect(await used('team')).toEqual({ persistentvolumeclaims: '2', 'requests.storage': '7Gi' })

    const matchExpressions = [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }]
    await api.patch(`${QUOTAS}/team`, { spec: { scopeSelector: { matchExpressions } } }, 'merge')
    expect(await used('team')).toEqual({})
    await created('c', { volumeAttributesClassName: 'gold', ...storage('7Gi') })
    expect(await used('team')).toEqual({ persistentvolumeclaims: '1', 'requests.storage': '7Gi' })
  })

  it('REX-4 (68) charges the largest of request and both allocated sizes, in whole bytes', async () => {
    await growingClass()
    await aQuota('team', { hard: { 'requests.storage': '1Ti' } })
    await bound('a')
    expect((await change('a', storage('10Gi'))).status).toBe(200)
    expect((await change('a', storage('2Gi'))).status).toBe(200)
    expect(await used('team')).toEqual({ 'requests.storage': '10Gi' })
    await setStatus('a', { allocatedResources: { storage: '20Gi' } })
    expect(await used('team')).toEqual({ 'requests.storage': '20Gi' })
    await remove('a')
    await created('tiny', storage('1001m'))
    expect(await used('team')).toEqual({ 'requests.storage': '2' })
  })

  it('REX-4 (69) charges the difference of an expansion, and does not write the quota when a request is lowered', async () => {
    await growingClass()
    await aQuota('team', { hard: { 'requests.storage': '15Gi', persistentvolumeclaims: '1' } })
    await bound('a', storage('10Gi'))
    expect((await change('a', storage('16Gi'))).json.message).toContain(
      'exceeded quota: team, requested: requests.storage=6Gi, used: requests.storage=10Gi, limited: requests.storage=15Gi',
    )
    expect((await change('a', storage('15Gi'))).status).toBe(200)
    expect(await used('team')).toEqual({ 'requests.storage': '15Gi', persistentvolumeclaims: '1' })
    const { resourceVersion } = (await api.get(`${QUOTAS}/team`)).json.metadata
    expect((await change('a', storage('12Gi'))).status).toBe(200)
    expect((await api.get(`${QUOTAS}/team`)).json.metadata.resourceVersion).toBe(resourceVersion)
  })

  it('REX-4 records one Warning event on the claim for a burst of rejected updates', async () => {
    await growingClass()
    await aQuota('team', { hard: { 'requests.storage': '2Gi' } })
    await bound('a')
    for (let n = 0; n < 3; n++) expect((await change('a', storage('3Gi'))).status).toBe(403)
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
    await change('a', storage('3Gi'))
    expect((await api.get(EVENTS)).json.items).toMatchObject([{ count: 2 }])
    await api.patch(`${CLAIMS}/a?dryRun=All`, { spec: storage('9Gi') }, 'merge')
    await claim('b', storage('9Gi'))
    expect((await api.get(EVENTS)).json.items).toHaveLength(1)
  })

  it('REX-4 counts by storage class, also with the annotation', async () => {
    await aQuota('classes', {
      hard: {
        'gold.storageclass.storage.k8s.io/requests.storage': '5Gi',
        'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '2',
        'requests.storage': '100Gi',
      },
    })
    await created('a', { storageClassName: 'gold', ...storage('3Gi') })
    await created('b', { storageClassName: 'silver', ...storage('50Gi') })
    const annotations = { 'volume.beta.kubernetes.io/storage-class': 'gold' }
    const spec = { accessModes: ['ReadWriteOnce'], ...storage('1Gi') }
    expect((await api.post(CLAIMS, { metadata: { name: 'c', annotations }, spec })).status).toBe(201)
    expect(await used('classes')).toEqual({
      'gold.storageclass.storage.k8s.io/requests.storage': '4Gi',
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '2',
      'requests.storage': '54Gi',
    })
    expect((await claim('d', { storageClassName: 'gold' })).status).toBe(403)
    await created('e', { storageClassName: 'bronze' })
  })

  it('SYS-4 charges several quotas together or not at all, each with its own version', async () => {
    await aQuota('a', { hard: { persistentvolumeclaims: '5' } })
    await aQuota('b', { hard: { 'requests.storage': '5Gi' } })
    await aQuota('c', { hard: { pods: '5' } })
    const watch = await api.watch(`${QUOTAS}?watch=1&resourceVersion=${api.store.revision}`)
    await created('one')
    expect((await claim('two', storage('5Gi'))).status).toBe(403)
    await created('three', storage('4Gi'))
    await watch.until((events) => events.length >= 4)
    expect(watch.events.map(({ object }) => `${object.metadata.name} ${Object.values(object.status.used)}`)).toEqual([
      'a 1',
      'b 1Gi',
      'a 2',
      'b 5Gi',
    ])
    expect(new Set(watch.events.map(({ object }) => object.metadata.resourceVersion)).size).toBe(4)
  })

  it('SYS-4 does not charge an update that changes no usage, or a kind without a quota key', async () => {
    await aQuota('team', { hard: { persistentvolumeclaims: '1' } })
    await created('a')
    const { resourceVersion } = (await api.get(`${QUOTAS}/team`)).json.metadata
    await api.patch(`${CLAIMS}/a`, { metadata: { labels: { x: 'y' } } }, 'merge')
    await api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'm' } })
    expect((await api.get(`${QUOTAS}/team`)).json.metadata.resourceVersion).toBe(resourceVersion)
  })

  it('SYS-4 does not apply quotas of another namespace', async () => {
    await api.post('/api/v1/namespaces', { metadata: { name: 'other' } })
    await api.post('/api/v1/namespaces/other/resourcequotas', {
      metadata: { name: 'none' },
      spec: { hard: { persistentvolumeclaims: '0' } },
    })
    await created('a')
    await aQuota('short', { hard: { persistentvolumeclaims: '1' } })
    expect((await claim('b')).status).toBe(403)
    expect((await api.delete(`${QUOTAS}/short`)).status).toBe(200)
    await created('b')
    expect((await api.store.get('stowage.dev/namespacelimits/default'))?.key).toBeUndefined()
  })

  it('SYS-4 charges the writes of a commit in order', async () => {
    await aQuota('team', { hard: { persistentvolumeclaims: '2' } })
    const create = (name: string) => ({
      verb: 'create',
      apiVersion: 'v1',
      resource: 'persistentvolumeclaims',
      namespace: 'default',
      body: { metadata: { name }, spec: { accessModes: ['ReadWriteOnce'], ...storage('1Gi') } },
    })
    const commit = (...names: string[]) =>
      api.post('/apis/stowage.dev/v1/commits', { writes: names.map((name) => create(name)) })
    const { status, json } = await commit('a', 'b', 'c')
    expect(status).toBe(403)
    expect(json.details.causes).toMatchObject([{ field: 'writes[2]' }])
    expect(await used('team')).toBeUndefined()
    expect((await commit('a', 'b')).status).toBe(200)
    expect(await used('team')).toEqual({ persistentvolumeclaims: '2' })
  })

  it('SYS-4 limits the number of quotas of a namespace', async () => {
    for (let n = 0; n < NAMESPACE_LIMITS_MAX; n++) await aQuota(`q${n}`, { hard: { persistentvolumeclaims: '10' } })
    const { status, json } = await api.post(QUOTAS, { metadata: { name: 'more' }, spec: {} })
    expect(status).toBe(403)
    expect(json.message).toContain('the namespace already has 100 resourcequotas, the maximum')
    await created('a')
    expect(await used('q99')).toEqual({ persistentvolumeclaims: '1' })
  })
})

describe('quota by attributes class', () => {
  const byClass = (...values: string[]) => ({
    hard: { persistentvolumeclaims: '1', 'requests.storage': '10Gi' },
    scopeSelector: { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'In', values }] },
  })
  const counts = async (...names: string[]) =>
    Promise.all(names.map(async (name) => (await used(name))?.persistentvolumeclaims ?? '0'))

  beforeEach(async () => {
    await growingClass()
    for (const name of ['gold', 'silver', 'copper']) await aQuota(name, byClass(name))
  })

  it('VAC-10 (70) counts a claim in the quota of its class only', async () => {
    await created('a', { volumeAttributesClassName: 'gold' })
    expect(await used('gold')).toEqual({ persistentvolumeclaims: '1', 'requests.storage': '1Gi' })
    expect(await counts('gold', 'silver', 'copper')).toEqual(['1', '0', '0'])
    expect((await claim('b', { volumeAttributesClassName: 'gold' })).json.message).toContain('exceeded quota: gold')
  })

  it('VAC-10 (71) (75) counts a claim in both classes while its class changes', async () => {
    await bound('a')
    expect((await change('a', { volumeAttributesClassName: 'gold' })).status).toBe(200)
    await setStatus('a', { currentVolumeAttributesClassName: 'gold' })
    expect(await counts('gold', 'silver')).toEqual(['1', '0'])
    expect((await change('a', { volumeAttributesClassName: 'silver' })).status).toBe(200)
    expect(await counts('gold', 'silver')).toEqual(['1', '1'])
    await setStatus('a', {
      modifyVolumeStatus: { targetVolumeAttributesClassName: 'silver', status: 'InProgress' },
    })
    expect(await counts('gold', 'silver')).toEqual(['1', '1'])
    await setStatus('a', { currentVolumeAttributesClassName: 'silver', modifyVolumeStatus: null })
    expect(await counts('gold', 'silver')).toEqual(['0', '1'])
    await created('b', { volumeAttributesClassName: 'gold' })
  })

  it('VAC-10 (71) charges each newly requested class in full, and writes no quota for one that is charged already', async () => {
    const versions = async () =>
      (await api.get(QUOTAS)).json.items.map(({ metadata }: Json) => metadata.resourceVersion)
    await bound('a', storage('3Gi'))
    await setStatus('a', { currentVolumeAttributesClassName: 'bronze' })
    for (const name of ['gold', 'silver', 'copper']) {
      expect((await change('a', { volumeAttributesClassName: name })).status).toBe(200)
      expect(await used(name)).toEqual({ persistentvolumeclaims: '1', 'requests.storage': '3Gi' })
      const before = await versions()
      await setStatus('a', { modifyVolumeStatus: { targetVolumeAttributesClassName: name, status: 'InProgress' } })
      expect(await versions(), name).toEqual(before)
      await setStatus('a', { currentVolumeAttributesClassName: name, modifyVolumeStatus: null })
    }
    expect(await counts('gold', 'silver', 'copper')).toEqual(['0', '0', '1'])
  })

  it('VAC-10 PIO-7 bounds iops and throughput of the claims of a class', async () => {
    const { scopeSelector } = byClass('gold')
    await aQuota('io', { hard: { 'limits.iops': '1000', 'requests.throughput': '50Mi' }, scopeSelector })
    const asking = (requests: object, volumeAttributesClassName: string) => ({
      volumeAttributesClassName,
      resources: { requests: { storage: '1Gi', ...requests } },
    })
    await created('a', asking({ iops: '900', throughput: '40Mi' }, 'gold'))
    await created('b', asking({ iops: '900' }, 'silver'))
    expect(await used('io')).toEqual({ 'limits.iops': '900', 'requests.throughput': '40Mi' })
    await api.delete(`${QUOTAS}/gold`)
    expect((await claim('c', asking({ iops: '200' }, 'gold'))).json.message).toContain(
      'exceeded quota: io, requested: limits.iops=200, used: limits.iops=900, limited: limits.iops=1k',
    )
  })

  it('PIO-7 does not charge the iops parameters of a class, which belong to the driver', async () => {
    await aQuota('io', { hard: { 'limits.iops': '1000', 'requests.iops': '1000' } })
    await api.post('/apis/storage.k8s.io/v1/volumeattributesclasses', {
      metadata: { name: 'gold' },
      driverName: 'd.example.com',
      parameters: { iops: '5000' },
    })
    await created('a', { volumeAttributesClassName: 'gold' })
    await created('b', { resources: { requests: { storage: '1Gi', iops: '10' } } })
    expect(await used('io')).toEqual({ 'limits.iops': '10', 'requests.iops': '10' })
  })

  it('VAC-10 PIO-7 records an event on a claim whose change of class or iops is rejected', async () => {
    await aQuota('io', { hard: { 'requests.iops': '100' } })
    await created('other', { volumeAttributesClassName: 'gold' })
    await bound('a')
    expect((await change('a', { volumeAttributesClassName: 'gold' })).status).toBe(403)
    expect((await change('a', { resources: { requests: { iops: '101' } } })).status).toBe(403)
    const { items } = (await api.get(EVENTS)).json
    const about = items.map(({ type, reason, message, involvedObject }: Json) => [
      type,
      reason,
      message.slice(0, message.indexOf(',')),
      involvedObject.name,
    ])
    expect(about.sort()).toEqual([
      ['Warning', 'ExceededQuota', 'exceeded quota: gold', 'a'],
      ['Warning', 'ExceededQuota', 'exceeded quota: io', 'a'],
    ])
  })

  it('VAC-10 (72) charges a status update without rejecting it; a spec update can be rejected', async () => {
    await created('other', { volumeAttributesClassName: 'silver', ...storage('10Gi') })
    await bound('a')
    expect((await change('a', { volumeAttributesClassName: 'silver' })).status).toBe(403)
    await setStatus('a', { currentVolumeAttributesClassName: 'silver' })
    expect(await used('silver')).toEqual({ persistentvolumeclaims: '2', 'requests.storage': '11Gi' })
  })
})

describe('quota of iops and throughput', () => {
  const io = (requests: object) => ({ resources: { requests: { storage: '1Gi', ...requests } } })

  it('PIO-7 applies limits.* to the sum and requests.* to each claim, and does not charge claims without either', async () => {
    await aQuota('io', {
      hard: { 'limits.iops': '3k', 'requests.iops': '2k', 'limits.throughput': '100', 'requests.throughput': '60' },
    })
    await created('plain')
    await created('a', io({ iops: '1500', throughput: '50' }))
    expect(await used('io')).toEqual({
      'limits.iops': '1500',
      'requests.iops': '1500',
      'limits.throughput': '50Mi',
      'requests.throughput': '50Mi',
    })
    expect((await claim('b', io({ iops: '2001' }))).json.message).toContain(
      'exceeded quota: io, requested: limits.iops=2001,requests.iops=2001, used: limits.iops=1500,requests.iops=1500, limited: limits.iops=3k,requests.iops=2k',
    )
    expect((await claim('b', io({ iops: '1501' }))).json.message).toContain('requested: limits.iops=1501, used')
    await created('b', io({ iops: '1500' }))
    expect(await used('io')).toMatchObject({ 'limits.iops': '3k', 'requests.iops': '1500' })
  })

  it('PIO-7 recomputes the maximum when the largest claim is deleted', async () => {
    await aQuota('io', { hard: { 'requests.iops': '2k' } })
    for (const [name, iops] of Object.entries({ a: '100', b: '700', c: '500' })) await created(name, io({ iops }))
    expect(await used('io')).toEqual({ 'requests.iops': '700' })
    await remove('b')
    expect(await used('io')).toEqual({ 'requests.iops': '500' })
    await remove('a')
    await remove('c')
    expect(await used('io')).toEqual({ 'requests.iops': '0' })
  })

  it('PIO-7 charges requested iops until the request is lowered', async () => {
    await aQuota('io', { hard: { 'limits.iops': '1k' } })
    await bound('a', io({ iops: '800' }))
    await setStatus('a', { allocatedResources: { iops: '800' } })
    expect((await change('a', io({ iops: '100' }))).status).toBe(200)
    expect(await used('io')).toEqual({ 'limits.iops': '800' })
    await setStatus('a', { allocatedResources: { iops: '100' } })
    expect(await used('io')).toEqual({ 'limits.iops': '100' })
  })

  it('PIO-7 keeps charging the amounts of the volume after the request is removed, until a class sets them', async () => {
    await aQuota('io', { hard: { 'limits.iops': '1k', 'requests.iops': '1k' } })
    await bound('a', io({ iops: '800' }))
    await setStatus('a', { capacity: { iops: '800' } })
    expect((await change('a', io({ iops: null }))).status).toBe(200)
    expect(await used('io')).toEqual({ 'limits.iops': '800', 'requests.iops': '800' })
    expect((await claim('b', io({ iops: '300' }))).status).toBe(403)
    await setStatus('a', { capacity: { iops: null }, currentVolumeAttributesClassName: 'gold' })
    expect(await used('io')).toEqual({ 'limits.iops': '0', 'requests.iops': '0' })
    await created('b', io({ iops: '300' }))
  })
})

describe('quota of other objects', () => {
  it('SYS-4 counts objects of any kind, by count/ and by the older key names', async () => {
    await aQuota('objects', {
      hard: {
        'count/configmaps': '1',
        configmaps: '5',
        'count/leases.coordination.k8s.io': '1',
        resourcequotas: '2',
        secrets: '0',
        'count/deployments.apps': '0',
      },
    })
    const maps = '/api/v1/namespaces/default/configmaps'
    expect((await api.post(maps, { metadata: { name: 'a' } })).status).toBe(201)
    expect((await api.post(maps, { metadata: { name: 'b' } })).json.message).toBe(
      'configmaps "b" is forbidden: exceeded quota: objects, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1',
    )
    const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
    expect((await api.post(leases, { metadata: { name: 'a' }, spec: {} })).status).toBe(201)
    expect((await api.post(leases, { metadata: { name: 'b' }, spec: {} })).status).toBe(403)
    expect((await api.post('/api/v1/namespaces/default/secrets', { metadata: { name: 's' } })).status).toBe(403)
    await aQuota('second', { hard: {} })
    expect((await api.post(QUOTAS, { metadata: { name: 'third' }, spec: {} })).status).toBe(403)
    expect(await used('objects')).toEqual({
      'count/configmaps': '1',
      configmaps: '1',
      'count/leases.coordination.k8s.io': '1',
      resourcequotas: '2',
      secrets: '0',
      'count/deployments.apps': '0',
    })
    expect((await api.delete(`${maps}/a`)).status).toBe(200)
    expect((await api.post(maps, { metadata: { name: 'b' } })).status).toBe(201)
    expect((await api.delete(`${QUOTAS}/objects`)).status).toBe(200)
  })

  it('SYS-4 charges pods the requests of their containers until they terminate', async () => {
    await aQuota('compute', { hard: { pods: '2', 'requests.cpu': '1', 'limits.memory': '1Gi', 'count/pods': '5' } })
    const asks = (cpu: string, memory: string) => ({ containers: [container('c', { cpu }, { memory })] })
    expect((await pod('a', asks('600m', '500Mi'))).status).toBe(201)
    expect(await used('compute')).toEqual({
      pods: '1',
      'requests.cpu': '600m',
      'limits.memory': '500Mi',
      'count/pods': '1',
    })
    expect((await pod('b', asks('600m', '500Mi'))).json.message).toContain(
      'exceeded quota: compute, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1',
    )
    expect((await api.patch(`${PODS}/a/status`, { status: { phase: 'Succeeded' } }, 'merge')).status).toBe(200)
    expect(await used('compute')).toEqual({ pods: '0', 'requests.cpu': '0', 'limits.memory': '0', 'count/pods': '1' })
    expect((await pod('b', asks('1', '1Gi'))).status).toBe(201)
    await api.delete(`${PODS}/a`, { gracePeriodSeconds: 0 })
    expect(await used('compute')).toMatchObject({ 'count/pods': '1', 'requests.cpu': '1' })
  })

  it('SYS-4 requires containers to specify cpu or memory that a quota limits', async () => {
    await aQuota('compute', {
      hard: { 'limits.cpu': '4', 'requests.memory': '4Gi', 'requests.ephemeral-storage': '1Gi' },
    })
    const { status, json } = await pod('a', {
      containers: [container('one', { memory: '1Mi' }), container('two')],
      initContainers: [container('zero', {}, { cpu: '1' })],
    })
    expect(status).toBe(403)
    expect(json.message).toBe(
      'pods "a" is forbidden: failed quota: compute: must specify limits.cpu for: one,two; requests.memory for: two,zero',
    )
  })

  it('SYS-4 counts only pods, or only claims, in a quota with a scope', async () => {
    await aQuota('besteffort', { hard: { pods: '1', 'count/configmaps': '0' }, scopes: ['BestEffort'] })
    await aQuota('short', { hard: { pods: '1' }, scopes: ['Terminating', 'NotBestEffort'] })
    const matchExpressions = [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }]
    await aQuota('urgent', { hard: { pods: '0' }, scopeSelector: { matchExpressions } })
    await created('claim')
    expect((await api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'm' } })).status).toBe(201)
    expect((await pod('a', { containers: [container('c')] })).status).toBe(201)
    expect((await pod('b', { containers: [container('c')] })).json.message).toContain('exceeded quota: besteffort')
    const busy = { containers: [container('c', { cpu: '1' })], activeDeadlineSeconds: 60 }
    expect((await pod('c', busy)).status).toBe(201)
    expect((await pod('d', busy)).json.message).toContain('exceeded quota: short')
    const urgent = { containers: [container('c', { cpu: '1' })], priorityClassName: 'high' }
    expect((await pod('e', urgent)).json.message).toContain('exceeded quota: urgent')
  })
})
