import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Seats, StreamSink } from '../http/messages.ts'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' }
const METADATA = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }

let api: ServerFixture
afterEach(() => api?.store.close())

const create = async (name: string, labels: Record<string, string> = {}) =>
  (await api.post(MAPS, { metadata: { name, labels }, data: {} })).json
const versionOf = (object: Json): number => Number(object.metadata.resourceVersion)
const summaryOf = (events: readonly { type: string; object: Json }[]) =>
  events.map(({ type, object }) => `${type} ${object.metadata.name} ${object.metadata.resourceVersion}`)

describe('a watch', () => {
  it('SYS-3 from a version replays all later changes in order', async () => {
    api = await createServerFixture()
    const a = await create('a')
    const b = await create('b')
    const changedMap = (await api.patch(`${MAPS}/a`, { data: { k: 'v' } })).json
    await api.delete(`${MAPS}/b`)
    const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${versionOf(a)}`)
    await watch.waitUntil((events) => events.length === 3)
    expect(summaryOf(watch.events)).toEqual([
      `ADDED b ${versionOf(b)}`,
      `MODIFIED a ${versionOf(changedMap)}`,
      `DELETED b ${versionOf(changedMap) + 1}`,
    ])
    const c = await create('c')
    await watch.waitUntil((events) => events.length === 4)
    expect(summaryOf(watch.events).at(-1)).toBe(`ADDED c ${versionOf(c)}`)
  })

  it('SYS-3 resumes at the last received version without gaps or duplicates', async () => {
    api = await createServerFixture()
    const start = api.store.revision
    const observedVersions: string[] = []
    let last = start
    for (let round = 0; round < 20; round++) {
      const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${last}`)
      await create(`round-${round}`)
      await watch.waitUntil((events) => events.length > 0)
      watch.close()
      await api.patch(`${MAPS}/round-${round}`, { data: { changed: 'after the watch was closed' } })
      observedVersions.push(...watch.events.map(({ object }) => object.metadata.resourceVersion))
      last = Number(observedVersions.at(-1))
    }
    const resumedWatch = await api.watch(`${MAPS}?watch=1&resourceVersion=${last}`)
    await resumedWatch.waitUntil((events) => events.length > 0)
    observedVersions.push(...resumedWatch.events.map(({ object }) => object.metadata.resourceVersion))
    expect(observedVersions).toEqual(Array.from({ length: 40 }, (_, index) => String(start + 1 + index)))
  })

  it.each(['', '&resourceVersion=0', '&resourceVersion='])(
    'without a version (%j) starts with the current state',
    async (query) => {
      api = await createServerFixture()
      await create('b')
      await create('a')
      const watch = await api.watch(`${MAPS}?watch=1${query}`)
      await watch.waitUntil((events) => events.length === 2)
      expect(watch.events.map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual(['ADDED a', 'ADDED b'])
      await create('c')
      await watch.waitUntil((events) => events.length === 3)
    },
  )

  it('sends objects with kind and apiVersion, and the last state of a deleted object', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=true&resourceVersion=${api.store.revision}`)
    const a = await create('a', { kept: 'yes' })
    await api.delete(`${MAPS}/a`)
    await watch.waitUntil((events) => events.length === 2)
    expect(watch.events).toMatchObject([
      { type: 'ADDED', object: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { uid: a.metadata.uid } } },
      { type: 'DELETED', object: { kind: 'ConfigMap', metadata: { uid: a.metadata.uid, labels: { kept: 'yes' } } } },
    ])
  })

  it('SYS-3 from a compacted version sends 410 Expired and ends', async () => {
    api = await createServerFixture({ history: { keepMs: 60_000 } })
    const a = await create('a')
    await api.patch(`${MAPS}/a`, { data: { n: '1' } })
    await api.patch(`${MAPS}/a`, { data: { n: '2' } })
    await api.clock.advance(10 * 60_000)
    const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${versionOf(a)}`)
    await watch.waitUntil((events) => events.length === 1)
    expect(watch.events).toMatchObject([
      { type: 'ERROR', object: { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired' } },
    ])
    expect(watch.isEnded).toBe(true)
  })

  it('from a future version waits three seconds, then fails with Retry-After', async () => {
    api = await createServerFixture()
    const startedMs = api.clock.nowMs()
    const response = await api.advanceUntilSettled(api.get(`${MAPS}?watch=1&resourceVersion=${api.store.revision + 9}`))
    expect(api.clock.nowMs() - startedMs).toBeGreaterThanOrEqual(3_000)
    expect(response.json).toMatchObject({
      code: 504,
      reason: 'Timeout',
      details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
    })
  })

  it("on the path of one object sends only that object's events", async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}/a?watch=1&resourceVersion=${api.store.revision}`)
    await create('ab')
    await create('a')
    await watch.waitUntil((events) => events.length === 1)
    expect(watch.events[0]!.object.metadata.name).toBe('a')
  })

  it('sends the events of one namespace, or of all namespaces if the path has none', async () => {
    api = await createServerFixture()
    const startRevision = api.store.revision
    const namespaceWatch = await api.watch(`${MAPS}?watch=1&resourceVersion=${startRevision}`)
    const clusterWatch = await api.watch(`/api/v1/configmaps?watch=1&resourceVersion=${startRevision}`)
    await api.post('/api/v1/namespaces/kube-system/configmaps', { metadata: { name: 'other' } })
    await create('own')
    await clusterWatch.waitUntil((events) => events.length === 2)
    await namespaceWatch.waitUntil((events) => events.length === 1)
    expect(namespaceWatch.events[0]!.object.metadata.name).toBe('own')
  })

  it('ends after timeoutSeconds', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=1&timeoutSeconds=5&resourceVersion=${api.store.revision}`)
    await api.clock.advance(4_900)
    expect(watch.isEnded).toBe(false)
    await api.clock.advance(200)
    expect(watch.isEnded).toBe(true)
    expect(watch.events).toEqual([])
  })

  it('sends nothing after its end, even before the connection is closed', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=1&timeoutSeconds=5&resourceVersion=${api.store.revision}`)
    const clockAdvance = api.clock.advance(5_000)
    await Promise.all([clockAdvance, create('a'), api.store.close()]) // a late event, and a late end of the store
    expect(watch.events.filter(({ object }) => object.code === 503)).toEqual([])
    expect(watch.isEnded).toBe(true)
  })

  it('ends after 30 to 60 minutes without timeoutSeconds', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${api.store.revision}`)
    await api.clock.advance(30 * 60_000 - 1)
    expect(watch.isEnded).toBe(false)
    await api.clock.advance(30 * 60_000)
    expect(watch.isEnded).toBe(true)
  })
})

describe('a watch with a selector', () => {
  it('SYS-3 sends ADDED when an object starts to match, and DELETED with its old state when it stops matching', async () => {
    api = await createServerFixture()
    await create('a', { colour: 'red' })
    const watch = await api.watch(`${MAPS}?watch=1&labelSelector=colour%3Dblue&resourceVersion=${api.store.revision}`)
    const blue = (await api.patch(`${MAPS}/a`, { metadata: { labels: { colour: 'blue' } } })).json
    const modifiedMap = (await api.patch(`${MAPS}/a`, { data: { k: 'v' } })).json
    const red = (await api.patch(`${MAPS}/a`, { metadata: { labels: { colour: 'red' } } })).json
    await api.delete(`${MAPS}/a`) // the object no longer matches
    const last = await create('b', { colour: 'blue' })
    await watch.waitUntil((events) => events.length === 4)
    expect(summaryOf(watch.events)).toEqual([
      `ADDED a ${versionOf(blue)}`,
      `MODIFIED a ${versionOf(modifiedMap)}`,
      `DELETED a ${versionOf(red)}`,
      `ADDED b ${versionOf(last)}`,
    ])
    expect(watch.events[2]!.object.metadata.labels).toEqual({ colour: 'blue' })
  })

  it('supports field selectors', async () => {
    api = await createServerFixture()
    const pods = '/api/v1/namespaces/default/pods'
    const pod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }] } })
    const selector = encodeURIComponent('spec.nodeName=node-1')
    const watch = await api.watch(`${pods}?watch=1&fieldSelector=${selector}&resourceVersion=${api.store.revision}`)
    await api.post(pods, pod('p'))
    await api.post(`${pods}/p/binding`, { metadata: { name: 'p' }, target: { kind: 'Node', name: 'node-1' } })
    await watch.waitUntil((events) => events.length === 1)
    expect(watch.events).toMatchObject([{ type: 'ADDED', object: { spec: { nodeName: 'node-1' } } }])
  })
})

describe('bookmarks', () => {
  const bookmarksOf = (events: readonly { type: string; object: Json }[]) =>
    events.filter(({ type }) => type === 'BOOKMARK')

  it('are sent every minute on request, with the newest resourceVersion', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion=${api.store.revision}`)
    await api.post('/api/v1/namespaces', { metadata: { name: 'other' } })
    await api.clock.advance(60_000)
    expect(watch.events).toEqual([
      {
        type: 'BOOKMARK',
        object: {
          kind: 'ConfigMap',
          apiVersion: 'v1',
          metadata: { resourceVersion: String(api.store.revision), creationTimestamp: null },
        },
      },
    ])
    await api.clock.advance(60_000)
    expect(watch.events).toHaveLength(2)
  })

  it('are not sent without a request', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${api.store.revision}`)
    await api.clock.advance(10 * 60_000)
    expect(watch.events).toEqual([])
  })

  it('SYS-3 are not newer than the events that follow', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion=${api.store.revision}`)
    for (let round = 0; round < 10; round++) {
      await create(`n${round}`)
      await api.clock.advance(30_000)
    }
    const versions = watch.events.map(({ object }) => versionOf(object))
    expect(versions).toEqual([...versions].sort((a, b) => a - b))
    expect(bookmarksOf(watch.events)).toHaveLength(5)
  })

  it('are sent two seconds before the end of the watch', async () => {
    api = await createServerFixture()
    const startRevision = api.store.revision
    const watch = await api.watch(
      `${MAPS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=10&resourceVersion=${startRevision}`,
    )
    await api.clock.advance(8_000)
    expect(bookmarksOf(watch.events)).toHaveLength(1)
    expect(watch.isEnded).toBe(false)
  })

  it('are sent every minute and before the end with a single timer at a time', async () => {
    api = await createServerFixture()
    const setTimer = vi.spyOn(api.clock, 'after')
    const watch = await api.watch(
      `${MAPS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=150&resourceVersion=${api.store.revision}`,
    )
    const delays = () => setTimer.mock.calls.map(([ms]) => ms)
    expect(delays()).toEqual([60_000])
    await api.clock.advance(149_999)
    expect(bookmarksOf(watch.events)).toHaveLength(3)
    expect(delays()).toEqual(expect.arrayContaining([60_000, 60_000, 28_000, 2_000]))
    expect(watch.isEnded).toBe(false)
    await api.clock.advance(1)
    expect(watch.isEnded).toBe(true)
    expect(bookmarksOf(watch.events)).toHaveLength(3)
  })

  it('are not sent before the end of a very short watch', async () => {
    api = await createServerFixture()
    const watch = await api.watch(
      `${MAPS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=4&resourceVersion=${api.store.revision}`,
    )
    await api.clock.advance(4_000)
    expect(watch.isEnded).toBe(true)
    expect(watch.events).toEqual([])
  })

  it('mark the end of the initial events', async () => {
    api = await createServerFixture()
    await create('a')
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const watch = await api.watch(`${MAPS}?watch=1&${query}`)
    await watch.waitUntil((events) => events.length === 2)
    expect(watch.events).toMatchObject([
      { type: 'ADDED', object: { metadata: { name: 'a' } } },
      {
        type: 'BOOKMARK',
        object: {
          kind: 'ConfigMap',
          metadata: {
            resourceVersion: String(api.store.revision),
            annotations: { 'k8s.io/initial-events-end': 'true' },
          },
        },
      },
    ])
  })

  it('mark the end of the initial events of an empty collection', async () => {
    api = await createServerFixture()
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0'
    const watch = await api.watch(`${MAPS}?watch=1&${query}`)
    await watch.waitUntil((events) => events.length === 1)
    expect(watch.events[0]!.object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' })
  })

  it('do not mark initial events if sendInitialEvents is false', async () => {
    api = await createServerFixture()
    await create('a')
    const query = `sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=${api.store.revision}`
    const watch = await api.watch(`${MAPS}?watch=1&${query}`)
    await create('b')
    await watch.waitUntil((events) => events.length === 1)
    expect(watch.events[0]!.object.metadata.name).toBe('b')
  })
})

describe('content negotiation of a watch', () => {
  it('SYS-2 sends each event as a table of one row, with columns only in the first event', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${api.store.revision}`, TABLE)
    await create('a')
    await api.patch(`${MAPS}/a`, { data: { k: 'v' } })
    await api.delete(`${MAPS}/a`)
    await watch.waitUntil((events) => events.length === 3)
    expect(watch.events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
    const [first, second] = watch.events.map(({ object }) => object)
    expect(first).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      rows: [{ cells: ['a', 0, '0s'], object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } } }],
    })
    expect(first.columnDefinitions.map(({ name }: Json) => name)).toEqual(['Name', 'Data', 'Age'])
    expect(second.columnDefinitions).toBeNull()
    expect(second.rows[0].cells).toEqual(['a', 1, '0s'])
  })

  it('sends only metadata', async () => {
    api = await createServerFixture()
    const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${api.store.revision}`, METADATA)
    await create('a')
    await watch.waitUntil((events) => events.length === 1)
    const { object } = watch.events[0]!
    expect(Object.keys(object).sort()).toEqual(['apiVersion', 'kind', 'metadata'])
    expect(object).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'a' },
    })
  })

  it('SYS-2 sends a bookmark as a table of one row with its annotation, for every kind', async () => {
    api = await createServerFixture()
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    for (const { kind, apiVersion, plural } of api.server.resources.all) {
      if (kind.isReview) continue
      const { store } = kind.isVolatile ? api.operations : api
      const path = `${apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`}/${plural}`
      const watch = await api.watch(`${path}?watch=1&${query}`, TABLE)
      await watch.waitUntil((events) => events.some(({ type }) => type === 'BOOKMARK'))
      const { object } = watch.events.find(({ type }) => type === 'BOOKMARK')!
      expect(object, path).toMatchObject({
        kind: 'Table',
        metadata: { resourceVersion: String(store.revision) },
        rows: [
          {
            cells: { length: kind.columns.length },
            object: {
              kind: 'PartialObjectMetadata',
              metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
            },
          },
        ],
      })
      expect(watch.events[0]!.object.columnDefinitions, path).toHaveLength(kind.columns.length)
      watch.close()
    }
  })

  it('sends an error as a Status even if tables are requested', async () => {
    api = await createServerFixture({ history: { keepMs: 60_000 } })
    const a = await create('a')
    await api.patch(`${MAPS}/a`, { data: { n: '1' } })
    await api.patch(`${MAPS}/a`, { data: { n: '2' } })
    await api.clock.advance(10 * 60_000)
    const watch = await api.watch(`${MAPS}?watch=1&resourceVersion=${versionOf(a)}`, TABLE)
    await watch.waitUntil((events) => events.length === 1)
    expect(watch.events[0]!.object).toMatchObject({ kind: 'Status', code: 410 })
  })

  it('sends the same event to streams of different versions and forms, each in its own form', async () => {
    api = await createServerFixture()
    const startRevision = api.store.revision
    const urls = ['v1', 'v1beta1'].map(
      (servedVersion) =>
        `/apis/storage.k8s.io/${servedVersion}/storageclasses?watch=1&resourceVersion=${startRevision}`,
    )
    const watches = await Promise.all([api.watch(urls[0]!), api.watch(urls[1]!), api.watch(urls[0]!, METADATA)])
    await api.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'fast' },
      provisioner: 'example.com/p',
    })
    await Promise.all(watches.map((watch) => watch.waitUntil((events) => events.length === 1)))
    expect(watches.map(({ events }) => `${events[0]!.object.apiVersion} ${events[0]!.object.kind}`)).toEqual([
      'storage.k8s.io/v1 StorageClass',
      'storage.k8s.io/v1beta1 StorageClass',
      'meta.k8s.io/v1 PartialObjectMetadata',
    ])
  })
})

describe('a slow client', () => {
  it('SYS-19 is disconnected if its backlog is too large, and its store watch is closed', async () => {
    const { server, post, store } = await createServerFixture()
    const previousWatchers = store.stats().watchers
    const { stream } = await server.handle({
      method: 'GET',
      path: '/api/v1/configmaps',
      query: new URLSearchParams('watch=1&resourceVersion=1'),
      headers: {},
      headerNames: () => [],
      headerValues: () => [],
      readBody: async () => new Uint8Array(),
    })
    let pendingBytes = 0
    let endReason: string | undefined
    stream?.({
      write: (chunk) => {
        pendingBytes += chunk.length
      },
      get pendingBytes() {
        return pendingBytes
      },
      onDrain: () => {},
      end: () => {
        endReason ??= 'end'
      },
      cut: () => {
        endReason ??= 'cut'
      },
      onClose: () => {},
    })
    const data = { blob: 'x'.repeat(900_000) }
    for (let i = 0; i < 25 && !endReason; i++) {
      await post('/api/v1/namespaces/default/configmaps', { metadata: { name: `c${i}` }, data })
      await new Promise((resolve) => setImmediate(resolve)) // lets the watch run
    }
    expect(endReason).toBe('cut')
    expect(pendingBytes).toBeLessThan(18 * 1024 * 1024)
    expect(store.stats().watchers).toBe(previousWatchers)
  })

  it('SYS-19 receives the initial events of a large collection as fast as it reads them', async () => {
    const client = await openUnreadWatch()
    while (!client.lines().some((line) => line.includes('initial-events-end'))) {
      expect(client.endReason).toBeUndefined()
      expect(client.pendingBytes).toBeLessThan(3 * 1024 * 1024)
      client.read()
      await nextTick()
    }
    expect(client.lines().filter((line) => line.includes('"ADDED"') && line.includes('"blob"'))).toHaveLength(25)
  })

  it('SYS-19 is disconnected if it does not read the initial events for a minute', async () => {
    const client = await openUnreadWatch()
    for (let tick = 0; tick < 20; tick++) await nextTick()
    await api.clock.advance(59_000)
    expect(client.endReason).toBeUndefined()
    await api.clock.advance(2_000)
    expect(client.endReason).toBe('cut')
    expect(client.pendingBytes).toBeLessThan(3 * 1024 * 1024)
  })

  it('SYS-19 is disconnected after 5 s if other requests wait for it to read the initial events', async () => {
    let isReleased = false
    const client = await openUnreadWatch({ hasWaiters: true, release: () => (isReleased = true) })
    for (let tick = 0; tick < 20; tick++) await nextTick()
    expect(isReleased).toBe(false)
    await api.clock.advance(5_000)
    expect(client.endReason).toBe('cut')
    await nextTick()
    expect(isReleased).toBe(true)
  })
})

describe('a client that accepts YAML', () => {
  it('shares the encoded events of a watch with other clients', async () => {
    api = await createServerFixture()
    const chunks: Uint8Array[] = []
    for (const accept of ['application/json', 'application/yaml']) {
      const { stream } = await api.server.handle({
        method: 'GET',
        path: MAPS,
        query: new URLSearchParams(`watch=1&resourceVersion=${api.store.revision}`),
        headers: { accept },
        headerNames: () => [],
        headerValues: () => [],
        readBody: async () => new Uint8Array(),
      })
      stream!({
        write: (chunk) => void chunks.push(chunk),
        pendingBytes: 0,
        onDrain: () => {},
        end: () => {},
        cut: () => {},
        onClose: () => {},
      })
    }
    await api.post(MAPS, { metadata: { name: 'a' } })
    expect(chunks).toHaveLength(2)
    expect(chunks[1]).toBe(chunks[0])
  })
})

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

/** Opens a watch with 22 MB of initial events. The client reads only when read() is called. */
async function openUnreadWatch(seats?: Seats) {
  api = await createServerFixture()
  const data = { blob: 'x'.repeat(900_000) }
  for (let i = 0; i < 25; i++) await api.post(MAPS, { metadata: { name: `c${i}` }, data })
  const { stream } = await api.server.handle({
    method: 'GET',
    path: MAPS,
    query: new URLSearchParams(
      'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
    ),
    headers: {},
    headerNames: () => [],
    headerValues: () => [],
    readBody: async () => new Uint8Array(),
  })
  const chunks: Uint8Array[] = []
  let pendingBytes = 0
  let endReason: string | undefined
  let drainCallbacks: (() => void)[] = []
  const sink: StreamSink = {
    write(chunk) {
      chunks.push(chunk)
      pendingBytes += chunk.length
    },
    get pendingBytes() {
      return pendingBytes
    },
    onDrain: (run) => void drainCallbacks.push(run),
    end: () => {
      endReason ??= 'end'
    },
    cut: () => {
      endReason ??= 'cut'
    },
    onClose: () => {},
  }
  stream?.(sink, seats)
  return {
    lines: () => Buffer.concat(chunks).toString('utf8').split('\n'),
    get pendingBytes() {
      return pendingBytes
    },
    get endReason() {
      return endReason
    },
    read() {
      pendingBytes = 0
      const callbacks = drainCallbacks
      drainCallbacks = []
      for (const run of callbacks) run()
    },
  }
}
