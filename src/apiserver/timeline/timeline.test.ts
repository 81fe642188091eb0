import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const CLAIMS = '/api/v1/namespaces/shop/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'
const ATTACHMENTS = '/apis/storage.k8s.io/v1/volumeattachments'
const PODS = '/api/v1/namespaces/shop/pods'
const REVIEWS = '/apis/stowage.dev/v1/timelinereviews'

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture({ journal: 'own', usesRbac: true, answers: 'stowage' })
  await api.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
})
afterEach(() => api.store.close())

async function createClaim(name: string): Promise<string> {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'fast' }
  return (await api.post(CLAIMS, { metadata: { name }, spec })).json.metadata.uid
}

/** Provisions, binds, attaches and mounts a claim, as the components do. Each step takes 100 ms. */
async function useClaim(name: string): Promise<{ uid: string; volume: string }> {
  const uid = await createClaim(name)
  const volume = `pvc-${uid}`
  await api.clock.advance(100)
  api.journal!.addActivities('provisioner@a', [aCall('CreateVolume', volume, 'ResourceExhausted')])
  const csi = { driver: 'disk.example', volumeHandle: `handle-${name}` }
  const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'shop', name, uid }
  await api.post(VOLUMES, {
    metadata: { name: volume },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], csi, claimRef, storageClassName: 'fast' },
  })
  await api.clock.advance(100)
  await api.patch(`${CLAIMS}/${name}`, { spec: { volumeName: volume } })
  await api.patch(`${CLAIMS}/${name}/status`, { status: { phase: 'Bound' } }, 'merge')
  await api.clock.advance(100)
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: name } }]
  const containers = [{ name: 'a', image: 'b' }]
  await api.post(PODS, { metadata: { name: `pod-${name}` }, spec: { containers, volumes, nodeName: 'n1' } })
  await api.clock.advance(100)
  await api.post(ATTACHMENTS, {
    metadata: { name: `att-${name}` },
    spec: { attacher: 'disk.example', nodeName: 'n1', source: { persistentVolumeName: volume } },
  })
  await api.patch(`${ATTACHMENTS}/att-${name}/status`, { status: { attached: true } }, 'merge')
  await api.clock.advance(100)
  api.journal!.addActivities('agent@n1', [aCall('NodePublishVolume', `handle-${name}`, 'OK')])
  return { uid, volume }
}

const aCall = (method: string, volume: string, result: string) => ({
  start: new Date(api.clock.nowMs() - 20).toISOString().replace('Z', '000Z'),
  durationMs: 20,
  result,
  driver: 'disk.example',
  method,
  volume,
})

async function requestTimeline(spec: object): Promise<Json> {
  const { status, json } = await api.post(REVIEWS, { spec })
  expect(status).toBe(201)
  return json.status
}
const claimRequest = (name: string, uid?: string) => ({ kind: 'PersistentVolumeClaim', namespace: 'shop', name, uid })
const actionsOf = ({ entries }: Json): string[] =>
  entries.map(({ action, object, result }: Json) => [action, object?.kind, result].filter(Boolean).join(' '))

describe('the timeline', () => {
  it('PLUS-6 contains exactly the changes and calls of a claim and its volume, attachment and pod', async () => {
    await useClaim('carts')
    const { uid } = await useClaim('orders')
    const timeline = await requestTimeline(claimRequest('orders'))
    expect(timeline).toMatchObject({ uid, otherUids: [] })
    expect(actionsOf(timeline)).toEqual([
      'create PersistentVolumeClaim',
      'CreateVolume ResourceExhausted',
      'create PersistentVolume',
      'update PersistentVolumeClaim',
      'update PersistentVolumeClaim',
      'create Pod',
      'create VolumeAttachment',
      'update VolumeAttachment',
      'NodePublishVolume OK',
    ])
    expect(JSON.stringify(timeline)).not.toContain('carts')
  })

  it('PLUS-6 has the steps with their times', async () => {
    const startMs = api.clock.nowMs()
    await useClaim('orders')
    const { steps } = await requestTimeline(claimRequest('orders'))
    expect(steps.map(({ name, time }: Json) => [name, Date.parse(time) - startMs])).toEqual([
      ['Created', 0],
      ['Provisioned', 100],
      ['Bound', 200],
      ['Scheduled', 300],
      ['Attached', 400],
      ['Published', 500],
    ])
  })

  it('PLUS-6 for a volume includes the changes to its claim', async () => {
    const { volume } = await useClaim('orders')
    const timeline = await requestTimeline({ kind: 'PersistentVolume', name: volume })
    expect(actionsOf(timeline)).toContain('create PersistentVolumeClaim')
    expect(actionsOf(timeline)).toContain('NodePublishVolume OK')
  })

  it('PLUS-6 finds a provisioned volume by its name in the record of its claim', async () => {
    const uid = await createClaim('orders')
    const volume = `pvc-${uid}`
    const csi = { driver: 'disk.example', volumeHandle: 'disk-1' }
    const spec = {
      ...{ capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], csi, storageClassName: 'fast' },
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'orders', uid },
    }
    const writes = [
      { verb: 'create', apiVersion: 'v1', resource: 'persistentvolumes', body: { metadata: { name: volume }, spec } },
      {
        ...{ verb: 'patch', apiVersion: 'v1', resource: 'persistentvolumeclaims', namespace: 'shop', name: 'orders' },
        ...{ patchType: 'merge', body: { spec: { volumeName: volume } } },
      },
    ]
    expect((await api.post('/apis/stowage.dev/v1/commits', { writes })).status).toBe(200)
    const actions = ['create PersistentVolumeClaim', 'create PersistentVolume', 'update PersistentVolumeClaim']
    const ofVolume = await requestTimeline({ kind: 'PersistentVolume', name: volume })
    expect(actionsOf(ofVolume)).toEqual(actions)
    expect(ofVolume.entries[2].changes).toEqual([`volume ${volume}`])
    expect(actionsOf(await requestTimeline(claimRequest('orders')))).toEqual(actions)
  })

  it('PLUS-6 remains after the objects are deleted, and lists the uids of other objects with the same name', async () => {
    const { uid } = await useClaim('orders')
    await api.delete(`${PODS}/pod-orders`, { gracePeriodSeconds: 0 })
    await api.delete(`${CLAIMS}/orders`)
    await api.patch(`${CLAIMS}/orders`, { metadata: { finalizers: null } }, 'merge')
    expect((await api.get(`${CLAIMS}/orders`)).status).toBe(404)
    expect(actionsOf(await requestTimeline(claimRequest('orders'))).at(-1)).toBe('delete PersistentVolumeClaim')
    await api.clock.advance(1_000)
    const { volume: _, method: __, driver: ___, ...attempt } = aCall('', '', 'Done')
    const object = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'orders' }
    api.journal!.addActivities('binder@a', [{ ...attempt, component: 'binding', operation: 'Bind', object }])
    expect(actionsOf(await requestTimeline(claimRequest('orders'))).at(-1)).toBe('Bind PersistentVolumeClaim Done')
    const newUid = await createClaim('orders')
    expect(await requestTimeline(claimRequest('orders'))).toMatchObject({
      uid: newUid,
      otherUids: [uid],
      entries: [{}],
    })
    expect(await requestTimeline(claimRequest('orders', uid))).toMatchObject({ uid, otherUids: [newUid] })
    expect(await requestTimeline(claimRequest('orders', 'unknown'))).toEqual({ otherUids: [newUid, uid] })
  })

  it('PLUS-6 requires permission to get the claim', async () => {
    await useClaim('orders')
    await api.post('/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings', {
      metadata: { name: 'ann' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
    })
    const as = (name: string) => ({ 'impersonate-user': name, 'impersonate-group': 'system:authenticated' })
    const requestStatusAs = async (name: string, spec: object) => (await api.post(REVIEWS, { spec }, as(name))).status
    await api.waitUntil(
      async () => (await requestStatusAs('ann', claimRequest('orders'))) === 201,
      'the role binding to be watched',
    )
    expect(await requestStatusAs('bob', claimRequest('orders'))).toBe(403)
    expect(await requestStatusAs('ann', { ...claimRequest('orders'), namespace: 'bank' })).toBe(403)
    expect(await requestStatusAs('ann', { kind: 'PersistentVolume', name: 'v' })).toBe(403)
  })

  it.each<[string, object]>([
    ['spec.kind', { kind: 'Pod', name: 'a' }],
    ['spec.name', { kind: 'PersistentVolume', name: '' }],
    ['spec.namespace', { kind: 'PersistentVolumeClaim', name: 'a' }],
    ['spec.namespace', { kind: 'PersistentVolume', namespace: 'shop', name: 'a' }],
  ])('PLUS-6 rejects a request with an invalid %s', async (field, spec) => {
    const { status, json } = await api.post(REVIEWS, { spec })
    expect(status).toBe(422)
    expect(json.message).toContain(field)
  })

  it('PLUS-6 includes the activities that another process reports', async () => {
    const { uid, volume } = await useClaim('orders')
    const object = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'orders', uid }
    const { method: _, driver: __, volume: ___, ...attempt } = aCall('', volume, 'Retry')
    const activity = { ...attempt, object, component: 'expander', operation: 'ExpandController', message: 'full' }
    const spec = { process: 'sidecar@b', isComplete: true, activities: [activity] }
    await api.post('/apis/stowage.dev/v1/operationreports', { spec })
    const { entries } = await requestTimeline(claimRequest('orders'))
    expect(entries.at(-1)).toMatchObject({
      ...{ type: 'Attempt', action: 'ExpandController', component: 'expander', process: 'sidecar@b' },
      ...{ result: 'Retry', message: 'full' },
    })
  })
})

describe('the metrics of steps', () => {
  it('PLUS-6 have exemplars with the claim, only for scrapers that accept OpenMetrics', async () => {
    await useClaim('orders')
    const plain = await api.get('/metrics')
    expect(plain.text).toContain('stowage_claim_step_duration_seconds_bucket{le="0.1",step="provisioned"} 1\n')
    const series = 'stowage_claim_time_to_step_seconds'
    const published = plain.text.split('\n').filter((line: string) => /\{.*step="published"/.test(line))
    const buckets = [...'000000', ...'1111111111'].map((count, bucket) => {
      const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, '+Inf']
      return `${series}_bucket{le="${bounds[bucket]}",step="published"} ${count}`
    })
    expect(published.filter((line: string) => line.startsWith(series))).toEqual([
      ...buckets,
      `${series}_sum{step="published"} 0.5`,
      `${series}_count{step="published"} 1`,
    ])
    expect(plain.text).toContain(`# TYPE ${series} histogram\n`)
    expect(plain.text).not.toContain('# {')
    const { text, headers } = await api.get('/metrics', {
      accept: 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1',
    })
    expect(headers['content-type']).toMatch(/^application\/openmetrics-text/)
    expect(text).toMatch(
      /stowage_claim_step_duration_seconds_bucket\{le="0.1",step="provisioned"\} 1 # \{namespace="shop",persistentvolumeclaim="orders"\} 0.1 \d/,
    )
    expect(text).toContain('# TYPE apiserver_request counter\n')
    expect(text).toMatch(/\napiserver_request_total\{/)
    expect(text.endsWith('\n# EOF\n')).toBe(true)
  })
})
