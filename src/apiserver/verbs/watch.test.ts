import { afterEach, describe, expect, it } from 'vitest'
import { startTrial, type TrialServer } from '../server.fixture.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' }
const METADATA = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }

let trial: TrialServer
afterEach(() => trial?.store.close())

const create = async (name: string, labels: Record<string, string> = {}) =>
  (await trial.post(MAPS, { metadata: { name, labels }, data: {} })).json
const version = (object: any): number => Number(object.metadata.resourceVersion)
const told = (events: readonly { type: string; object: any }[]) =>
  events.map(({ type, object }) => `${type} ${object.metadata.name} ${object.metadata.resourceVersion}`)

describe('a watch', () => {
  it('SYS-3 from a version replays every later change, and only those, in order', async () => {
    trial = await startTrial()
    const a = await create('a')
    const b = await create('b')
    const changed = (await trial.patch(`${MAPS}/a`, { data: { k: 'v' } })).json
    await trial.delete(`${MAPS}/b`)
    const watch = await trial.watch(`${MAPS}?watch=1&resourceVersion=${version(a)}`)
    await watch.until((events) => events.length === 3)
    expect(told(watch.events)).toEqual([
      `ADDED b ${version(b)}`,
      `MODIFIED a ${version(changed)}`,
      `DELETED b ${version(changed) + 1}`,
    ])
    const c = await create('c')
    await watch.until((events) => events.length === 4)
    expect(told(watch.events).at(-1)).toBe(`ADDED c ${version(c)}`)
  })

  it('SYS-3 resumed at the last version seen shows neither a gap nor a repeat', async () => {
    trial = await startTrial()
    const start = trial.store.revision
    const seen: string[] = []
    let last = start
    for (let round = 0; round < 20; round++) {
      const watch = await trial.watch(`${MAPS}?watch=1&resourceVersion=${last}`)
      await create(`round-${round}`)
      await watch.until((events) => events.length > 0)
      watch.close()
      await trial.patch(`${MAPS}/round-${round}`, { data: { unseen: 'by the closed watch' } })
      seen.push(...watch.events.map(({ object }) => object.metadata.resourceVersion))
      last = Number(seen.at(-1))
    }
    const rest = await trial.watch(`${MAPS}?watch=1&resourceVersion=${last}`)
    await rest.until((events) => events.length > 0)
    seen.push(...rest.events.map(({ object }) => object.metadata.resourceVersion))
    expect(seen).toEqual(Array.from({ length: 40 }, (_, index) => String(start + 1 + index)))
  })

  it.each(['', '&resourceVersion=0', '&resourceVersion='])(
    'without a version (%j) begins with the state as it is',
    async (query) => {
      trial = await startTrial()
      await create('b')
      await create('a')
      const watch = await trial.watch(`${MAPS}?watch=1${query}`)
      await watch.until((events) => events.length === 2)
      expect(watch.events.map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual(['ADDED a', 'ADDED b'])
      await create('c')
      await watch.until((events) => events.length === 3)
    },
  )

  it('carries kind and apiVersion in every object, and the last state in a deletion', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}?watch=true&resourceVersion=${trial.store.revision}`)
    const a = await create('a', { kept: 'yes' })
    await trial.delete(`${MAPS}/a`)
    await watch.until((events) => events.length === 2)
    expect(watch.events).toMatchObject([
      { type: 'ADDED', object: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { uid: a.metadata.uid } } },
      { type: 'DELETED', object: { kind: 'ConfigMap', metadata: { uid: a.metadata.uid, labels: { kept: 'yes' } } } },
    ])
  })

  it('SYS-3 too far back is told so in the stream, with 410 Expired, and ended', async () => {
    trial = await startTrial({ history: { keepMs: 60_000 } })
    const a = await create('a')
    await trial.patch(`${MAPS}/a`, { data: { n: '1' } })
    await trial.patch(`${MAPS}/a`, { data: { n: '2' } })
    await trial.clock.advance(10 * 60_000)
    const watch = await trial.watch(`${MAPS}?watch=1&resourceVersion=${version(a)}`)
    await watch.until((events) => events.length === 1)
    expect(watch.events).toMatchObject([
      { type: 'ERROR', object: { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired' } },
    ])
    expect(watch.ended).toBe(true)
  })

  it('from a version that does not exist yet waits three seconds, then asks to come back', async () => {
    trial = await startTrial()
    const startedMs = trial.clock.nowMs()
    const answer = await trial.whileTimePasses(trial.get(`${MAPS}?watch=1&resourceVersion=${trial.store.revision + 9}`))
    expect(trial.clock.nowMs() - startedMs).toBeGreaterThanOrEqual(3_000)
    expect(answer.json).toMatchObject({
      code: 504,
      reason: 'Timeout',
      details: { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 1 },
    })
  })

  it('of one object by its path shows that one only', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}/a?watch=1&resourceVersion=${trial.store.revision}`)
    await create('ab')
    await create('a')
    await watch.until((events) => events.length === 1)
    expect(watch.events[0]!.object.metadata.name).toBe('a')
  })

  it('of a namespace does not show its neighbours; of all namespaces shows all', async () => {
    trial = await startTrial()
    const from = trial.store.revision
    const one = await trial.watch(`${MAPS}?watch=1&resourceVersion=${from}`)
    const all = await trial.watch(`/api/v1/configmaps?watch=1&resourceVersion=${from}`)
    await trial.post('/api/v1/namespaces/kube-system/configmaps', { metadata: { name: 'other' } })
    await create('mine')
    await all.until((events) => events.length === 2)
    await one.until((events) => events.length === 1)
    expect(one.events[0]!.object.metadata.name).toBe('mine')
  })

  it('ends after timeoutSeconds', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}?watch=1&timeoutSeconds=5&resourceVersion=${trial.store.revision}`)
    await trial.clock.advance(4_900)
    expect(watch.ended).toBe(false)
    await trial.clock.advance(200)
    expect(watch.ended).toBe(true)
    expect(watch.events).toEqual([])
  })

  it('says nothing after its end, though the connection takes a while to close', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}?watch=1&timeoutSeconds=5&resourceVersion=${trial.store.revision}`)
    const advanced = trial.clock.advance(5_000)
    await Promise.all([advanced, create('a'), trial.store.close()]) // a late event, and a late end of the store
    expect(watch.events.filter(({ object }) => object.code === 503)).toEqual([])
    expect(watch.ended).toBe(true)
  })

  it('without timeoutSeconds ends between 30 and 60 minutes later', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}?watch=1&resourceVersion=${trial.store.revision}`)
    await trial.clock.advance(30 * 60_000 - 1)
    expect(watch.ended).toBe(false)
    await trial.clock.advance(30 * 60_000)
    expect(watch.ended).toBe(true)
  })
})

describe('a watch with a selector', () => {
  it('SYS-3 shows an object that starts to match as ADDED and one that stops as DELETED, with its old state', async () => {
    trial = await startTrial()
    await create('a', { colour: 'red' })
    const watch = await trial.watch(
      `${MAPS}?watch=1&labelSelector=colour%3Dblue&resourceVersion=${trial.store.revision}`,
    )
    const blue = (await trial.patch(`${MAPS}/a`, { metadata: { labels: { colour: 'blue' } } })).json
    const still = (await trial.patch(`${MAPS}/a`, { data: { k: 'v' } })).json
    const red = (await trial.patch(`${MAPS}/a`, { metadata: { labels: { colour: 'red' } } })).json
    await trial.delete(`${MAPS}/a`) // nobody saw it any more
    const last = await create('b', { colour: 'blue' })
    await watch.until((events) => events.length === 4)
    expect(told(watch.events)).toEqual([
      `ADDED a ${version(blue)}`,
      `MODIFIED a ${version(still)}`,
      `DELETED a ${version(red)}`,
      `ADDED b ${version(last)}`,
    ])
    expect(watch.events[2]!.object.metadata.labels).toEqual({ colour: 'blue' })
  })

  it('selects by field as well', async () => {
    trial = await startTrial()
    const pods = '/api/v1/namespaces/default/pods'
    const pod = (name: string) => ({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }] } })
    const selector = encodeURIComponent('spec.nodeName=node-1')
    const watch = await trial.watch(`${pods}?watch=1&fieldSelector=${selector}&resourceVersion=${trial.store.revision}`)
    await trial.post(pods, pod('p'))
    await trial.post(`${pods}/p/binding`, { metadata: { name: 'p' }, target: { kind: 'Node', name: 'node-1' } })
    await watch.until((events) => events.length === 1)
    expect(watch.events).toMatchObject([{ type: 'ADDED', object: { spec: { nodeName: 'node-1' } } }])
  })
})

describe('bookmarks', () => {
  const bookmarks = (events: readonly { type: string; object: any }[]) =>
    events.filter(({ type }) => type === 'BOOKMARK')

  it('come every minute when asked for, of the watched kind, with the newest version alone', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion=${trial.store.revision}`)
    await trial.post('/api/v1/namespaces', { metadata: { name: 'elsewhere' } })
    await trial.clock.advance(60_000)
    expect(watch.events).toEqual([
      {
        type: 'BOOKMARK',
        object: {
          kind: 'ConfigMap',
          apiVersion: 'v1',
          metadata: { resourceVersion: String(trial.store.revision), creationTimestamp: null },
        },
      },
    ])
    await trial.clock.advance(60_000)
    expect(watch.events).toHaveLength(2)
  })

  it('do not come unasked', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}?watch=1&resourceVersion=${trial.store.revision}`)
    await trial.clock.advance(10 * 60_000)
    expect(watch.events).toEqual([])
  })

  it('SYS-3 never run ahead of events: what follows a bookmark is newer than it', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion=${trial.store.revision}`)
    for (let round = 0; round < 10; round++) {
      await create(`n${round}`)
      await trial.clock.advance(30_000)
    }
    const versions = watch.events.map(({ object }) => version(object))
    expect(versions).toEqual([...versions].sort((a, b) => a - b))
    expect(bookmarks(watch.events)).toHaveLength(5)
  })

  it('come once more two seconds before the end', async () => {
    trial = await startTrial()
    const from = trial.store.revision
    const watch = await trial.watch(`${MAPS}?watch=1&allowWatchBookmarks=1&timeoutSeconds=10&resourceVersion=${from}`)
    await trial.clock.advance(8_000)
    expect(bookmarks(watch.events)).toHaveLength(1)
    expect(watch.ended).toBe(false)
  })

  it('mark the end of the initial state for clients that stream instead of listing', async () => {
    trial = await startTrial()
    await create('a')
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const watch = await trial.watch(`${MAPS}?watch=1&${query}`)
    await watch.until((events) => events.length === 2)
    expect(watch.events).toMatchObject([
      { type: 'ADDED', object: { metadata: { name: 'a' } } },
      {
        type: 'BOOKMARK',
        object: {
          kind: 'ConfigMap',
          metadata: {
            resourceVersion: String(trial.store.revision),
            annotations: { 'k8s.io/initial-events-end': 'true' },
          },
        },
      },
    ])
  })

  it('mark it in an empty collection too', async () => {
    trial = await startTrial()
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0'
    const watch = await trial.watch(`${MAPS}?watch=1&${query}`)
    await watch.until((events) => events.length === 1)
    expect(watch.events[0]!.object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' })
  })

  it('are no substitute for the state when only changes are wanted', async () => {
    trial = await startTrial()
    await create('a')
    const query = `sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=${trial.store.revision}`
    const watch = await trial.watch(`${MAPS}?watch=1&${query}`)
    await create('b')
    await watch.until((events) => events.length === 1)
    expect(watch.events[0]!.object.metadata.name).toBe('b')
  })
})

describe('forms of a watch', () => {
  it('SYS-2 rows: each event is a table of one row, columns with the first only', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}?watch=1&resourceVersion=${trial.store.revision}`, TABLE)
    await create('a')
    await trial.patch(`${MAPS}/a`, { data: { k: 'v' } })
    await trial.delete(`${MAPS}/a`)
    await watch.until((events) => events.length === 3)
    expect(watch.events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
    const [first, second] = watch.events.map(({ object }) => object)
    expect(first).toMatchObject({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      rows: [{ cells: ['a', 0, '0s'], object: { kind: 'PartialObjectMetadata', metadata: { name: 'a' } } }],
    })
    expect(first.columnDefinitions.map(({ name }: any) => name)).toEqual(['Name', 'Data', 'Age'])
    expect(second.columnDefinitions).toBeNull()
    expect(second.rows[0].cells).toEqual(['a', 1, '0s'])
  })

  it('metadata alone', async () => {
    trial = await startTrial()
    const watch = await trial.watch(`${MAPS}?watch=1&resourceVersion=${trial.store.revision}`, METADATA)
    await create('a')
    await watch.until((events) => events.length === 1)
    const { object } = watch.events[0]!
    expect(Object.keys(object).sort()).toEqual(['apiVersion', 'kind', 'metadata'])
    expect(object).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'a' },
    })
  })

  it('an error stays a Status whatever the form', async () => {
    trial = await startTrial({ history: { keepMs: 60_000 } })
    const a = await create('a')
    await trial.patch(`${MAPS}/a`, { data: { n: '1' } })
    await trial.patch(`${MAPS}/a`, { data: { n: '2' } })
    await trial.clock.advance(10 * 60_000)
    const watch = await trial.watch(`${MAPS}?watch=1&resourceVersion=${version(a)}`, TABLE)
    await watch.until((events) => events.length === 1)
    expect(watch.events[0]!.object).toMatchObject({ kind: 'Status', code: 410 })
  })

  it('two streams of different versions and forms get the same event, each in its own form', async () => {
    trial = await startTrial()
    const from = trial.store.revision
    const urls = ['v1', 'v1beta1'].map(
      (v) => `/apis/storage.k8s.io/${v}/storageclasses?watch=1&resourceVersion=${from}`,
    )
    const watches = await Promise.all([trial.watch(urls[0]!), trial.watch(urls[1]!), trial.watch(urls[0]!, METADATA)])
    await trial.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'fast' },
      provisioner: 'example.com/p',
    })
    await Promise.all(watches.map((watch) => watch.until((events) => events.length === 1)))
    expect(watches.map(({ events }) => `${events[0]!.object.apiVersion} ${events[0]!.object.kind}`)).toEqual([
      'storage.k8s.io/v1 StorageClass',
      'storage.k8s.io/v1beta1 StorageClass',
      'meta.k8s.io/v1 PartialObjectMetadata',
    ])
  })
})

describe('a client that never reads', () => {
  it('SYS-10 is cut off once its backlog is too large, and its watch on the store is let go', async () => {
    const { server, post, store } = await startTrial()
    const before = store.stats().watchers
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
    let ended: string | undefined
    stream?.({
      write: (chunk) => {
        pendingBytes += chunk.length
      },
      get pendingBytes() {
        return pendingBytes
      },
      onDrain: () => {},
      end: () => {
        ended ??= 'end'
      },
      cut: () => {
        ended ??= 'cut'
      },
      onClose: () => {},
    })
    const data = { blob: 'x'.repeat(900_000) }
    for (let i = 0; i < 25 && !ended; i++) {
      await post('/api/v1/namespaces/default/configmaps', { metadata: { name: `c${i}` }, data })
      await new Promise((resolve) => setImmediate(resolve)) // the watch gets its turn
    }
    expect(ended).toBe('cut')
    expect(pendingBytes).toBeLessThan(18 * 1024 * 1024)
    expect(store.stats().watchers).toBe(before)
  })

  it('SYS-10 sets the pace of the state it asked for, however large that is', async () => {
    const client = await openState()
    while (!client.lines().some((line) => line.includes('initial-events-end'))) {
      expect(client.ended).toBeUndefined()
      expect(client.pendingBytes).toBeLessThan(3 * 1024 * 1024)
      client.take()
      await nextTurn()
    }
    expect(client.lines().filter((line) => line.includes('"ADDED"') && line.includes('"blob"'))).toHaveLength(25)
  })

  it('SYS-10 is cut off when it takes nothing of the state for a minute', async () => {
    const client = await openState()
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    await trial.clock.advance(59_000)
    expect(client.ended).toBeUndefined()
    await trial.clock.advance(2_000)
    expect(client.ended).toBe('cut')
    expect(client.pendingBytes).toBeLessThan(3 * 1024 * 1024)
  })
})

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** Asks for a state of 22 MB by watch; nothing is taken from the stream until take() is called. */
async function openState() {
  trial = await startTrial()
  const data = { blob: 'x'.repeat(900_000) }
  for (let i = 0; i < 25; i++) await trial.post(MAPS, { metadata: { name: `c${i}` }, data })
  const { stream } = await trial.server.handle({
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
  let ended: string | undefined
  let waiting: (() => void)[] = []
  stream?.({
    write(chunk) {
      chunks.push(chunk)
      pendingBytes += chunk.length
    },
    get pendingBytes() {
      return pendingBytes
    },
    onDrain: (run) => void waiting.push(run),
    end: () => {
      ended ??= 'end'
    },
    cut: () => {
      ended ??= 'cut'
    },
    onClose: () => {},
  })
  return {
    lines: () => Buffer.concat(chunks).toString('utf8').split('\n'),
    get pendingBytes() {
      return pendingBytes
    },
    get ended() {
      return ended
    },
    take() {
      pendingBytes = 0
      const drained = waiting
      waiting = []
      for (const run of drained) run()
    },
  }
}
