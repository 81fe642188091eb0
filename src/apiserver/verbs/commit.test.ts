import { beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const COMMITS = '/apis/stowage.dev/v1/commits'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'

const aClaim = (name: string) => ({
  metadata: { name, annotations: { owner: 'ann' } },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
})
const aVolume = (name: string) => ({
  metadata: { name },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: '/data' },
    persistentVolumeReclaimPolicy: 'Retain',
  },
})
const patchClaim = (name: string, body: object, subresource?: string) => ({
  verb: 'patch',
  apiVersion: 'v1',
  resource: 'persistentvolumeclaims',
  namespace: 'default',
  name,
  patchType: 'merge',
  body,
  ...(subresource ? { subresource } : {}),
})
const BIND = { metadata: { annotations: { bound: 'yes' } }, spec: { volumeName: 'v' } }
const BOUND = { status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] } }

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})

const commit = (...writes: object[]) => api.post(COMMITS, { writes })
const claim = async (name: string): Promise<Json> => (await api.get(`${CLAIMS}/${name}`)).json

/** The claim without what differs between two claims with the same writes. */
async function comparable(name: string): Promise<Json> {
  const { name: _, uid: __, resourceVersion: ___, ...metadata } = (await claim(name)).metadata
  return { ...(await claim(name)), metadata }
}

describe('a commit with several writes of one object', () => {
  beforeEach(async () => {
    for (const name of ['a', 'b']) expect((await api.post(CLAIMS, aClaim(name))).status).toBe(201)
  })

  it('has the result of single writes in that order, and one revision', async () => {
    const { revision } = api.store
    const { status, json } = await commit(patchClaim('a', BIND), patchClaim('a', BOUND, 'status'))
    expect(status).toBe(200)
    expect(api.store.revision).toBe(revision + 1)
    expect(json.results[0]).toEqual(json.results[1])
    expect(json.results[1]).toEqual(await claim('a'))
    for (const [path, body] of [
      ['b', BIND],
      ['b/status', BOUND],
    ] as const) {
      const headers = { 'content-type': 'application/merge-patch+json' }
      expect((await api.call('PATCH', `${CLAIMS}/${path}`, JSON.stringify(body), headers)).status).toBe(200)
    }
    expect(await comparable('a')).toEqual(await comparable('b'))
    expect((await claim('a')).metadata.managedFields.map(({ subresource }: Json) => subresource)).toContain('status')
  })

  it('updates the status of an object that it creates', async () => {
    const create = { verb: 'create', apiVersion: 'v1', resource: 'persistentvolumes', body: aVolume('v') }
    const { namespace: _, ...setPhase } = {
      ...patchClaim('v', { status: { phase: 'Bound' } }, 'status'),
      resource: 'persistentvolumes',
    }
    const { revision } = api.store
    const { json } = await commit(create, setPhase)
    expect(api.store.revision).toBe(revision + 1)
    expect(json.results[0].status.phase).toBe('Bound')
    expect(json.results[0]).toEqual((await api.get(`${VOLUMES}/v`)).json)
  })

  it('writes nothing if all of them change nothing', async () => {
    await commit(patchClaim('a', BIND), patchClaim('a', BOUND, 'status'))
    const [{ revision }, before] = [api.store, await claim('a')]
    await api.clock.advance(60_000)
    const { json } = await commit(patchClaim('a', BIND), patchClaim('a', BOUND, 'status'))
    expect(api.store.revision).toBe(revision)
    expect(json.results).toEqual([before, before])
  })

  it('stores the change of one write if the other one changes nothing', async () => {
    await commit(patchClaim('a', BIND), patchClaim('a', {}, 'status'))
    expect((await claim('a')).spec.volumeName).toBe('v')
    await commit(patchClaim('a', {}), patchClaim('a', BOUND, 'status'))
    expect((await claim('a')).status.phase).toBe('Bound')
  })

  it('stores the last of many', async () => {
    const label = (value: string) => patchClaim('a', { metadata: { labels: { value } } })
    const { json } = await commit(label('1'), label('2'), patchClaim('a', BOUND, 'status'), label('3'))
    expect(json.results.map(({ metadata }: Json) => metadata.labels.value)).toEqual(['3', '3', '3', '3'])
    expect(await claim('a')).toMatchObject({ metadata: { labels: { value: '3' } }, status: { phase: 'Bound' } })
  })

  it('changes nothing if the second one is rejected, and names it', async () => {
    const { revision } = api.store
    const invalidStatus = { status: { allocatedResourceStatuses: { storage: 'Unknown' } } }
    const { status, json } = await commit(patchClaim('a', BIND), patchClaim('a', invalidStatus, 'status'))
    expect(status).toBe(422)
    expect(json.details.causes).toContainEqual(expect.objectContaining({ field: 'writes[1]' }))
    expect(api.store.revision).toBe(revision)
  })

  it('returns an object once if distinct results are requested, and no objects if none are', async () => {
    const writes = [patchClaim('a', BIND), patchClaim('a', BOUND, 'status'), patchClaim('b', BIND)]
    const { json } = await api.post(COMMITS, { writes, results: 'distinct' })
    expect(json.results).toEqual([1, await claim('a'), await claim('b')])
    const { status, json: withoutObjects } = await api.post(COMMITS, { writes, results: 'none' })
    expect(status).toBe(200)
    expect(withoutObjects.results).toEqual([])
    const { revision } = api.store
    expect((await api.post(COMMITS, { writes: [patchClaim('a', { spec: {} })], results: 'some' })).status).toBe(400)
    expect(api.store.revision).toBe(revision)
  })

  it('removes an object with its last finalizer', async () => {
    await api.call('DELETE', `${CLAIMS}/a`)
    const { json } = await commit(patchClaim('a', BOUND, 'status'), patchClaim('a', { metadata: { finalizers: null } }))
    expect(json.results).toEqual([null, null])
    expect((await api.get(`${CLAIMS}/a`)).status).toBe(404)
  })
})

describe('a write of a status', () => {
  it('leaves the metadata and the spec of the stored object as they are', async () => {
    await api.post(CLAIMS, aClaim('a'))
    const before = await claim('a')
    await commit(patchClaim('a', { ...BOUND, spec: { volumeName: 'other' } }, 'status'))
    const { metadata, spec, status } = await claim('a')
    expect(spec).toEqual(before.spec)
    expect(metadata.annotations).toEqual(before.metadata.annotations)
    expect(status).toEqual(BOUND.status)
  })

  it('validates metadata that it changes', async () => {
    await api.post(CLAIMS, aClaim('a'))
    const { status } = await commit(patchClaim('a', { ...BOUND, metadata: { labels: { '-': 'x' } } }, 'status'))
    expect(status).toBe(422)
  })
})
