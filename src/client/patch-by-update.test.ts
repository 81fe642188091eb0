import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { secretKind } from '../api/kinds/secret/secret.ts'
import { isConflict } from '../api/status-error.ts'
import { createServerFixture, type ServerFixture } from '../apiserver/server.fixture.ts'
import { type Client, failedWriteIndex } from './client.ts'
import { patchByUpdate } from './patch-by-update.ts'
import { asStock, type StockRequest } from './stock-server.fixture.ts'

const ref = { namespace: 'default', name: 'settings' }
const aPatch = (value: string, metadata = {}) => ({ type: 'merge' as const, body: { metadata, data: { value } } })

describe('a client that may not patch', () => {
  let server: ServerFixture
  let client: Client
  let verbs: string[]
  let deniedVerbs: readonly string[]
  beforeEach(async () => {
    server = await createServerFixture()
    verbs = []
    deniedVerbs = ['patch']
    await server.client().create(configMapKind, { metadata: ref, data: { kept: 'yes' } })
    const stockClient = asStock(server.client(), {
      allows: ({ verb }: StockRequest) => !deniedVerbs.includes(verb),
      onRequest: ({ verb }) => void verbs.push(verb),
    })
    client = patchByUpdate(stockClient)
  })
  afterEach(() => server.store.close())

  it('SYS-29 reads and updates instead of patching, and does not try to patch again', async () => {
    const patchedMap = await client.patch(configMapKind, ref, aPatch('1'))
    expect(patchedMap.data).toEqual({ kept: 'yes', value: '1' })
    await client.patch(configMapKind, ref, { type: 'json', body: [{ op: 'remove', path: '/data/kept' }] })
    await client.patch(configMapKind, ref, {
      type: 'strategic',
      body: { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] }, data: { more: '2' } },
    })
    expect((await client.get(configMapKind, ref)).data).toEqual({ value: '1', more: '2' })
    expect(verbs).toEqual(['patch', 'get', 'update', 'get', 'update', 'get', 'update', 'get'])
  })

  it('SYS-29 updates instead of patching in a commit', async () => {
    await client.commit([{ do: 'patch', kind: configMapKind, ref, patch: aPatch('1') }])
    expect((await client.get(configMapKind, ref)).data).toEqual({ kept: 'yes', value: '1' })
  })

  it('fails with a conflict if the version in the patch is outdated', async () => {
    const { resourceVersion } = (await client.get(configMapKind, ref)).metadata
    await server.client().patch(configMapKind, ref, aPatch('other'))
    const error = await client.patch(configMapKind, ref, aPatch('1', { resourceVersion })).catch((failure) => failure)
    expect(isConflict(error)).toBe(true)
    expect((await client.get(configMapKind, ref)).data?.value).toBe('other')
  })

  it('repeats the update if another client has changed the object since it was read', async () => {
    const directClient = server.client()
    let changes = 0
    const racingClient = patchByUpdate<Client>({
      ...asStock(directClient, { allows: ({ verb }) => verb !== 'patch' }),
      async update(kind, object, options) {
        if (changes++ === 0)
          await directClient.patch(configMapKind, ref, { type: 'merge', body: { data: { other: '1' } } })
        return directClient.update(kind, object, options)
      },
    })
    const patchedMap = await racingClient.patch(configMapKind, ref, aPatch('1'))
    expect(patchedMap.data).toEqual({ kept: 'yes', other: '1', value: '1' })
  })

  it('fails with the 403 of the patch if it may not update either', async () => {
    deniedVerbs = ['patch', 'update']
    await expect(client.patch(configMapKind, ref, aPatch('1'))).rejects.toThrow(/cannot patch resource "configmaps"/)
  })

  it('patches again when the role grants patch instead of update', async () => {
    await client.patch(configMapKind, ref, aPatch('1'))
    deniedVerbs = ['update']
    expect((await client.patch(configMapKind, ref, aPatch('2'))).data?.value).toBe('2')
  })
})

describe('a commit of a client that may not patch some resources', () => {
  let server: ServerFixture
  let directClient: Client
  let requests: string[]
  let isDenied: (request: StockRequest) => boolean
  let client: Client

  beforeEach(async () => {
    server = await createServerFixture({ answers: 'stowage' })
    directClient = server.client()
    requests = []
    isDenied = ({ verb, kind }) => verb === 'patch' && kind === configMapKind
    await directClient.create(configMapKind, { metadata: ref, data: { kept: 'yes' } })
    await directClient.create(secretKind, { metadata: ref })
    client = patchByUpdate(
      asStock(directClient, {
        hasCommits: true,
        allows: (request) => !isDenied(request),
        onRequest: ({ verb, kind }) => void requests.push(`${verb} ${kind.plural}`),
      }),
    )
  })
  afterEach(() => server.store.close())

  const patchOf = (kind: typeof configMapKind | typeof secretKind, body: object) =>
    ({ do: 'patch', kind, ref, patch: { type: 'merge', body } }) as const
  const annotationBody = (value: string) => ({ metadata: { annotations: { value } } })

  it('SYS-29 stays one transaction, with an update for each patch that the role denies', async () => {
    const revisionBefore = server.store.revision
    const objects = await client.commit([
      patchOf(secretKind, annotationBody('1')),
      patchOf(configMapKind, { data: { value: '1' } }),
    ])
    expect(server.store.revision).toBe(revisionBefore + 2)
    expect(objects.map((object) => object?.metadata.name)).toEqual(['settings', 'settings'])
    expect((await directClient.get(configMapKind, ref)).data).toEqual({ kept: 'yes', value: '1' })
    const create = { do: 'create', kind: configMapKind, object: { metadata: { ...ref, name: 'settings' } } } as const
    const failingCommit = client.commit([patchOf(configMapKind, { data: { value: '2' } }), create])
    expect(failedWriteIndex(await failingCommit.catch((error) => error))).toBe(1)
    expect((await directClient.get(configMapKind, ref)).data?.value, 'nothing is written if a write fails').toBe('1')
  })

  it('SYS-29 is sent unchanged if it has no write that the role denies', async () => {
    await client.patch(configMapKind, ref, aPatch('1'))
    requests = []
    await client.commit([patchOf(secretKind, annotationBody('1')), patchOf(secretKind, annotationBody('2'))])
    expect(requests).toEqual(['patch secrets', 'patch secrets'])
    expect((await directClient.get(secretKind, ref)).metadata.annotations).toEqual({ value: '2' })
  })

  it('SYS-29 replaces several patches of an object and of its status', async () => {
    const pod = { metadata: { namespace: 'default', name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    await directClient.create(podKind, pod)
    isDenied = ({ verb }) => verb === 'patch'
    const patchPod = (body: object, subresource?: string) =>
      ({ do: 'patch', kind: podKind, ref: pod.metadata, patch: { type: 'merge', body }, subresource }) as const
    const writes = (message: string) => [
      patchPod({ metadata: { labels: { first: message } } }),
      patchPod({ status: { message } }, 'status'),
      patchPod({ metadata: { labels: { second: message } } }),
    ]
    await client.commit(writes('starting')) // the client records which patches the role denies
    requests = []
    await client.commit(writes('started'))
    expect(requests).toEqual(['get pods', 'update pods', 'update pods', 'update pods'])
    const { metadata, status } = await directClient.get(podKind, pod.metadata)
    expect(metadata.labels).toEqual({ first: 'started', second: 'started' })
    expect(status?.message).toBe('started')
  })

  it('reads the object again if another client has changed it', async () => {
    let isChanged = false
    const stockClient = asStock(directClient, { hasCommits: true, allows: (request) => !isDenied(request) })
    const racingClient = patchByUpdate<Client>({
      ...stockClient,
      async commit(writes, options) {
        if (!isChanged && writes[0]?.do === 'update') {
          isChanged = true
          await directClient.patch(configMapKind, ref, { type: 'merge', body: { data: { other: '1' } } })
        }
        return stockClient.commit(writes, options)
      },
    })
    await racingClient.commit([patchOf(configMapKind, { data: { value: '1' } })])
    expect((await directClient.get(configMapKind, ref)).data).toEqual({ kept: 'yes', other: '1', value: '1' })
  })

  it('fails with the 403 of the patch if the role does not grant update either', async () => {
    isDenied = ({ verb, kind }) => kind === configMapKind && verb !== 'get'
    const error = await client.commit([patchOf(configMapKind, aPatch('1').body)]).catch((failure) => failure)
    expect(error.message).toMatch(/cannot patch resource "configmaps"/)
    expect(failedWriteIndex(error)).toBe(0)
  })
})
