import { beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type Json, type ServerFixture } from './server.fixture.ts'
import { COMMIT_WRITES_MAX } from './verbs/commit.ts'

const COMMITS = '/apis/stowage.dev/v1/commits'
const create = (name: string) => ({
  verb: 'create',
  apiVersion: 'v1',
  resource: 'configmaps',
  namespace: 'default',
  body: { metadata: { name } },
})
const get = (name: string) => api.get(`/api/v1/namespaces/default/configmaps/${name}`)

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture()
})

describe('POST commits', () => {
  it('performs all writes in one transaction and returns the objects', async () => {
    await api.post('/api/v1/namespaces/default/secrets', { metadata: { name: 'old' } })
    const { status, json } = await api.post(COMMITS, {
      writes: [
        create('a'),
        {
          verb: 'patch',
          apiVersion: 'v1',
          resource: 'configmaps',
          namespace: 'default',
          name: 'a',
          patchType: 'json',
          body: [{ op: 'add', path: '/data', value: { k: 'v' } }],
        },
        { verb: 'delete', apiVersion: 'v1', resource: 'secrets', namespace: 'default', name: 'old' },
        {
          verb: 'create',
          apiVersion: 'storage.k8s.io/v1',
          resource: 'storageclasses',
          body: { metadata: { name: 'fast' }, provisioner: 'example.com/p' },
        },
      ],
    })
    expect(status).toBe(200)
    expect(json.results).toMatchObject([
      { kind: 'ConfigMap', data: { k: 'v' } },
      { data: { k: 'v' } },
      null,
      { kind: 'StorageClass' },
    ])
    const newestRevision = api.store.revision // the delete has the revision before it
    expect(json.results[0].metadata.resourceVersion).toBe(String(newestRevision - 2))
    expect(json.results[3].metadata.resourceVersion).toBe(String(newestRevision))
    expect((await api.get('/api/v1/namespaces/default/secrets/old')).status).toBe(404)
  })

  it.each([
    ['a subresource that the kind lacks', { ...create('a'), verb: 'update', name: 'a', subresource: 'status' }, 404],
    [
      'a subresource that does not exist',
      { ...create('a'), verb: 'patch', patchType: 'merge', name: 'a', subresource: 'x' },
      404,
    ],
    [
      'a verb that the subresource lacks',
      { ...create('a'), resource: 'pods', verb: 'delete', name: 'a', subresource: 'status' },
      405,
    ],
    [
      'a review kind, which is not stored',
      {
        verb: 'create',
        apiVersion: 'authorization.k8s.io/v1',
        resource: 'selfsubjectaccessreviews',
        body: { metadata: {}, spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } },
      },
      405,
    ],
  ])('SYS-10 responds to %s with the status code of a single request, and writes nothing', async (_, write, code) => {
    const { revision } = api.store
    const { status, json } = await api.post(COMMITS, { writes: [create('b'), write] })
    expect(status).toBe(code)
    expect(json.details.causes).toMatchObject([{ reason: 'CommitWriteFailed', field: 'writes[1]' }])
    expect(api.store.revision).toBe(revision)
  })

  it('writes nothing if one write fails, and returns its Status with its index', async () => {
    const { status, json } = await api.post(COMMITS, {
      writes: [create('a'), { ...create('b'), resource: 'secrets' }, create('a')],
    })
    expect(status).toBe(409)
    expect(json).toMatchObject({
      reason: 'AlreadyExists',
      details: { causes: [{ reason: 'CommitWriteFailed', field: 'writes[2]' }] },
    })
    expect((await get('a')).status).toBe(404)
    expect((await api.get('/api/v1/namespaces/default/secrets/b')).status).toBe(404)
  })

  it.each([
    ['writes that are not a list', { writes: 7 }, 400],
    ['a write that is not an object', { writes: [null] }, 400],
    ['an unknown verb', { writes: [{ ...create('a'), verb: 'watch' }] }, 400],
    ['an unknown resource', { writes: [{ ...create('a'), resource: 'widgets' }] }, 404],
    ['a missing namespace', { writes: [{ ...create('a'), namespace: undefined }] }, 400],
    ['a missing name', { writes: [{ ...create('a'), verb: 'delete' }] }, 400],
    ['an unknown patch type', { writes: [{ ...create('a'), verb: 'patch', name: 'a', patchType: 'x' }] }, 400],
    ['a body of the wrong kind', { writes: [{ ...create('a'), body: { kind: 'Secret', metadata: {} } }] }, 400],
    ['too many writes', { writes: Array.from({ length: COMMIT_WRITES_MAX + 1 }, (_, i) => create(`m${i}`)) }, 400],
    [
      'a namespace that does not match',
      { writes: [{ ...create('a'), body: { metadata: { name: 'a', namespace: 'x' } } }] },
      400,
    ],
  ])('rejects %s', async (_description, body, code) => {
    const previousRevision = api.store.revision
    expect((await api.post(COMMITS, body)).status).toBe(code)
    expect(api.store.revision).toBe(previousRevision)
  })

  it('supports neither list nor dry run', async () => {
    expect((await api.get(COMMITS)).status).toBe(404)
    expect((await api.post(`${COMMITS}?dryRun=All`, { writes: [create('a')] })).status).toBe(400)
    expect((await get('a')).status).toBe(404)
  })

  it('authorizes every write with its own verb, and writes nothing if one is forbidden', async () => {
    const authorizedRequests: string[] = []
    api = await createServerFixture({
      authorizer: {
        authorize: (attributes: Json) => {
          authorizedRequests.push(
            `${attributes.verb} ${attributes.resource}${attributes.name ? `/${attributes.name}` : ''}`,
          )
          return { allowed: attributes.verb !== 'delete' }
        },
      },
    })
    await api.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'old' } })
    authorizedRequests.length = 0
    const deleteOld = { verb: 'delete', apiVersion: 'v1', resource: 'configmaps', namespace: 'default', name: 'old' }
    const { status, json } = await api.post(COMMITS, { writes: [create('a'), deleteOld] })
    expect(status).toBe(403)
    expect(json.details.causes).toMatchObject([{ field: 'writes[1]' }])
    expect(authorizedRequests).toEqual(['create commits', 'create configmaps', 'delete configmaps/old'])
    expect((await get('a')).status).toBe(404)
  })

  it('is listed by discovery', async () => {
    const list = (await api.get('/apis/stowage.dev/v1')).json
    expect(list.resources).toContainEqual(
      expect.objectContaining({ name: 'commits', kind: 'Commit', namespaced: false, verbs: ['create'] }),
    )
    const groups = (await api.get('/apis')).json.groups.map(({ name }: { name: string }) => name)
    expect(groups).toContain('stowage.dev')
  })
})
