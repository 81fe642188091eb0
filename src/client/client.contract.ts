// The contract test of the client interface, which its implementations run.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { namespaceKind } from '../api/kinds/namespace/namespace.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { secretKind } from '../api/kinds/secret/secret.ts'
import { serviceAccountKind } from '../api/kinds/service-account/service-account.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { ApiError, isLeaseLost } from '../api/status-error.ts'
import type { Json, ServerFixture } from '../apiserver/server.fixture.ts'
import { type Client, failedWriteIndex, type WatchEvent, type WatchRequest } from './client.ts'

export interface ClientFixture {
  readonly client: Client
  readonly api: ServerFixture
  stop(): Promise<void>
}

const inDefault = (name: string) => ({ namespace: 'default', name })
const aConfigMap = (name: string, data: Record<string, string> = {}, metadata = {}) => ({
  metadata: { namespace: 'default', name, ...metadata },
  data,
})
const aClaim = (name: string) => ({
  metadata: { namespace: 'default', name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
})

export function clientContract(open: () => Promise<ClientFixture>): void {
  let client: Client
  let api: ServerFixture
  let stop: () => Promise<void>
  beforeEach(async () => {
    ;({ client, api, stop } = await open())
  })
  afterEach(() => stop())

  const captureError = async (work: Promise<unknown>): Promise<ApiError> => {
    const error = await work.then(
      () => undefined,
      (reason) => reason,
    )
    expect(error).toBeInstanceOf(ApiError)
    return error as ApiError
  }

  describe('the client', () => {
    it.each([
      ['a missing object', 404, 'NotFound', () => client.get(configMapKind, inDefault('no'))],
      ['a taken name', 409, 'AlreadyExists', () => client.create(namespaceKind, { metadata: { name: 'default' } })],
      ['an invalid object', 422, 'Invalid', () => client.create(configMapKind, aConfigMap('Not A Name'))],
      ['an unknown field selector', 400, 'BadRequest', () => client.list(configMapKind, { fieldSelector: 'data=1' })],
    ])('throws an ApiError with the code and reason of the server for %s', async (_case, code, reason, run) => {
      expect(await captureError(run())).toMatchObject({ code, reason })
    })

    it('binds a pod to a node, once, through the binding subresource', async () => {
      const pod = { metadata: { namespace: 'default', name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }] } }
      await client.create(podKind, pod as Json)
      const binding = { metadata: { namespace: 'default', name: 'p' }, target: { kind: 'Node', name: 'n1' } }
      await client.create(podKind, binding as Json, { subresource: 'binding' })
      expect((await client.get(podKind, inDefault('p'))).spec?.nodeName).toBe('n1')
      expect(await captureError(client.create(podKind, binding as Json, { subresource: 'binding' }))).toMatchObject({
        code: 409,
      })
    })

    it('reports whether the server serves a kind', async () => {
      expect(await client.serves(configMapKind)).toBe(true)
      expect(await client.serves({ ...configMapKind, group: 'example.com', versions: ['v1'] })).toBe(false)
    })
  })

  describe('objects', () => {
    it('are returned frozen, without kind or apiVersion, with resourceVersion and uid', async () => {
      const createdMap = await client.create(configMapKind, aConfigMap('a', { k: 'v' }))
      const readMap = await client.get(configMapKind, inDefault('a'))
      expect(readMap).toEqual(createdMap)
      expect(Object.keys(readMap).sort()).toEqual(['data', 'metadata'])
      expect(readMap.metadata.resourceVersion).toBe(String(api.store.revision))
      expect(readMap.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
      expect(Object.isFrozen(readMap) && Object.isFrozen(readMap.metadata) && Object.isFrozen(readMap.data)).toBe(true)
    })

    it('of cluster-scoped kinds need no namespace', async () => {
      await client.create(storageClassKind, { metadata: { name: 'fast' }, provisioner: 'example.com/p' } as Json)
      const { items } = await client.list(storageClassKind)
      expect(items.map(({ metadata }) => metadata.name)).toEqual(['fast'])
      expect((await client.get(storageClassKind, { name: 'fast' })).provisioner).toBe('example.com/p')
    })

    it('receive a generated name if they have generateName', async () => {
      const createdMap = await client.create(configMapKind, { metadata: { namespace: 'default', generateName: 'm-' } })
      expect(createdMap.metadata.name).toMatch(/^m-.{5}$/)
      expect((await client.get(configMapKind, inDefault(createdMap.metadata.name!))).metadata.uid).toBe(
        createdMap.metadata.uid,
      )
    })

    it('SYS-4 are updated only if they have not changed since they were read', async () => {
      const createdMap = await client.create(configMapKind, aConfigMap('a', { k: '1' }))
      const updatedMap = await client.update(configMapKind, { ...createdMap, data: { k: '2' } })
      expect(updatedMap.data).toEqual({ k: '2' })
      expect(await captureError(client.update(configMapKind, { ...createdMap, data: { k: '3' } }))).toMatchObject({
        code: 409,
        reason: 'Conflict',
      })
      expect((await client.get(configMapKind, inDefault('a'))).data).toEqual({ k: '2' })
    })

    it('are updated and patched in their status subresource', async () => {
      const createdClaim = await client.create(persistentVolumeClaimKind, aClaim('c') as Json)
      const status = { phase: 'Bound' }
      const updatedClaim = await client.update(persistentVolumeClaimKind, { ...createdClaim, status } as Json, {
        subresource: 'status',
      })
      expect(updatedClaim.status?.phase).toBe('Bound')
      const patchedClaim = await client.patch(
        persistentVolumeClaimKind,
        inDefault('c'),
        { type: 'merge', body: { status: { phase: 'Lost' }, metadata: { labels: { a: 'b' } } } },
        { subresource: 'status' },
      )
      expect(patchedClaim.status?.phase).toBe('Lost')
    })

    it.each([
      ['merge', { type: 'merge', body: { data: { b: '2', a: null } } }],
      ['strategic', { type: 'strategic', body: { data: { b: '2', a: null } } }],
      [
        'json',
        {
          type: 'json',
          body: [
            { op: 'remove', path: '/data/a' },
            { op: 'add', path: '/data/b', value: '2' },
          ],
        },
      ],
    ] as const)('are changed by a %s patch', async (_type, patch) => {
      await client.create(configMapKind, aConfigMap('a', { a: '1', c: '3' }))
      expect((await client.patch(configMapKind, inDefault('a'), patch)).data).toEqual({ b: '2', c: '3' })
    })

    it('are removed by a delete, or marked for deletion while they have a finalizer', async () => {
      await client.create(configMapKind, aConfigMap('plain'))
      await client.create(configMapKind, aConfigMap('finalized', {}, { finalizers: ['example.com/hold'] }))
      expect(await client.delete(configMapKind, inDefault('plain'))).toBeUndefined()
      const markedMap = await client.delete(configMapKind, inDefault('finalized'))
      expect(markedMap?.metadata.deletionTimestamp).toBeDefined()
      expect(await captureError(client.delete(configMapKind, inDefault('plain')))).toMatchObject({ code: 404 })
    })

    it('are not deleted if a precondition fails', async () => {
      const { metadata } = await client.create(configMapKind, aConfigMap('a'))
      expect(await captureError(client.delete(configMapKind, inDefault('a'), { uid: 'another' }))).toMatchObject({
        code: 409,
      })
      expect(await captureError(client.delete(configMapKind, inDefault('a'), { resourceVersion: '1' }))).toMatchObject({
        code: 409,
      })
      expect(await client.delete(configMapKind, inDefault('a'), { uid: metadata.uid })).toBeUndefined()
    })

    it('SYS-4 do not change in a dry run', async () => {
      const revisionBefore = api.store.revision
      const dryRunResult = await client.create(configMapKind, aConfigMap('a', { k: 'v' }), { dryRun: true })
      expect(dryRunResult.data).toEqual({ k: 'v' })
      expect(api.store.revision).toBe(revisionBefore)
      await client.create(configMapKind, aConfigMap('a', { k: '1' }))
      const patch = { type: 'merge', body: { data: { k: '2' } } } as const
      expect((await client.patch(configMapKind, inDefault('a'), patch, { dryRun: true })).data).toEqual({ k: '2' })
      expect((await client.get(configMapKind, inDefault('a'))).data).toEqual({ k: '1' })
    })
  })

  describe('a list', () => {
    it('selects objects by namespace, labels and fields', async () => {
      await client.create(namespaceKind, { metadata: { name: 'shop' } })
      await client.create(configMapKind, aConfigMap('a', {}, { labels: { tier: 'web' } }))
      await client.create(configMapKind, aConfigMap('b', {}, { labels: { tier: 'db' } }))
      await client.create(configMapKind, aConfigMap('c', {}, { namespace: 'shop' }))
      const listNames = async (request: object) =>
        (await client.list(configMapKind, request)).items.map(({ metadata }) => metadata.name)
      expect(await listNames({})).toEqual(['a', 'b', 'c'])
      expect(await listNames({ namespace: 'shop' })).toEqual(['c'])
      expect(await listNames({ labelSelector: 'tier in (web)' })).toEqual(['a'])
      expect(await listNames({ namespace: 'default', fieldSelector: 'metadata.name=b' })).toEqual(['b'])
    })

    it('returns all pages from one snapshot', async () => {
      for (const name of ['a', 'b', 'c']) await client.create(configMapKind, aConfigMap(name))
      const firstPage = await client.list(configMapKind, { limit: 2 })
      await client.delete(configMapKind, inDefault('c'))
      const secondPage = await client.list(configMapKind, { limit: 2, continueToken: firstPage.continueToken })
      expect([...firstPage.items, ...secondPage.items].map(({ metadata }) => metadata.name)).toEqual(['a', 'b', 'c'])
      expect(secondPage.resourceVersion).toBe(firstPage.resourceVersion)
      expect(secondPage.continueToken).toBeUndefined()
    })
  })

  describe('a watch', () => {
    const events: WatchEvent<Json>[] = []
    let watchAbort: AbortController
    beforeEach(() => {
      events.length = 0
      watchAbort = new AbortController()
    })
    afterEach(() => watchAbort.abort())

    /** Reads events until isDone() returns true; `act` runs while the watch is open. */
    const followWatch = async (request: Omit<WatchRequest, 'signal'>, isDone: () => boolean, act = async () => {}) => {
      const stream = client.watch(configMapKind, { ...request, signal: watchAbort.signal })[Symbol.asyncIterator]()
      const firstResult = stream.next()
      await act()
      for (let next = await firstResult; !next.done; next = await stream.next()) {
        events.push(next.value)
        if (isDone()) break
      }
      await stream.return?.()
    }
    const summarize = () =>
      events.map((event) => (event.type === 'bookmark' ? 'bookmark' : `${event.type} ${event.object.metadata.name}`))

    it('SYS-3 sends the changes after a version in order, including deletes, each with its own version', async () => {
      const startVersion = String(api.store.revision)
      await client.create(configMapKind, aConfigMap('a'))
      await client.patch(configMapKind, inDefault('a'), { type: 'merge', body: { data: { k: 'v' } } })
      await followWatch(
        { resourceVersion: startVersion },
        () => events.length === 4,
        async () => {
          await client.delete(configMapKind, inDefault('a'))
          await client.create(configMapKind, aConfigMap('b'))
        },
      )
      expect(summarize()).toEqual(['added a', 'modified a', 'deleted a', 'added b'])
      const versions = events.map((event) => Number((event as Json).object.metadata.resourceVersion))
      expect(versions).toEqual([...versions].sort((a, b) => a - b))
      expect(new Set(versions).size).toBe(4)
      expect(events.every((event) => Object.isFrozen((event as Json).object.metadata))).toBe(true)
    })

    it('starts with the initial events and marks their end', async () => {
      await client.create(configMapKind, aConfigMap('a'))
      await client.create(configMapKind, aConfigMap('b'))
      const version = String(api.store.revision)
      await followWatch({ sendInitialEvents: true }, () => events.length === 3)
      expect(summarize()).toEqual(['added a', 'added b', 'bookmark'])
      expect(events[2]).toEqual({ type: 'bookmark', resourceVersion: version, endsInitialEvents: true })
    })

    it('sends added for an object that starts to match and deleted for one that stops', async () => {
      const startVersion = String(api.store.revision)
      await client.create(configMapKind, aConfigMap('a', {}, { labels: { tier: 'web' } }))
      await client.create(configMapKind, aConfigMap('b'))
      await client.patch(configMapKind, inDefault('b'), {
        type: 'merge',
        body: { metadata: { labels: { tier: 'web' } } },
      })
      await client.patch(configMapKind, inDefault('a'), {
        type: 'merge',
        body: { metadata: { labels: { tier: 'db' } } },
      })
      await followWatch({ resourceVersion: startVersion, labelSelector: 'tier=web' }, () => events.length === 3)
      expect(summarize()).toEqual(['added a', 'added b', 'deleted a'])
    })

    it('ends without an error if it is aborted while it waits', async () => {
      const watchRun = followWatch({ resourceVersion: String(api.store.revision) }, () => false)
      watchAbort.abort()
      await watchRun
      expect(events).toEqual([])
    })

    it('closes its store watch when its reader stops', async () => {
      const watchersBefore = api.store.stats().watchers
      for (let round = 0; round < 20; round++) await followWatch({ sendInitialEvents: true }, () => true)
      for (let turn = 0; api.store.stats().watchers > watchersBefore && turn < 10_000; turn++) {
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(api.store.stats().watchers).toBe(watchersBefore)
    })

    it('SYS-3 fails with 410 from a compacted version', async () => {
      const startVersion = String(api.store.revision)
      await client.create(configMapKind, aConfigMap('a'))
      for (let i = 0; i < 60; i++) {
        await client.patch(configMapKind, inDefault('a'), { type: 'merge', body: { data: { i: String(i) } } })
      }
      expect(await captureError(followWatch({ resourceVersion: startVersion }, () => false))).toMatchObject({
        code: 410,
      })
    })

    it('ends after timeoutSeconds', async () => {
      const watchRun = followWatch({ resourceVersion: String(api.store.revision), timeoutSeconds: 5 }, () => false)
      let hasEnded = false
      void watchRun.then(() => {
        hasEnded = true
      })
      while (!hasEnded) {
        await api.clock.advance(1_000)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })
  })

  it('SYS-8 fails every write with a fence unless the process holds the lease in that term', async () => {
    await client.create(leaseKind, {
      metadata: inDefault('l'),
      spec: { holderIdentity: 'a, b&c', leaseTransitions: 2 },
    })
    await client.create(configMapKind, aConfigMap('m', { k: '1' }))
    const fenceOf = (transitions: number) => [{ ...inDefault('l'), holder: 'a, b&c', transitions }]
    const writes = (fences: ReturnType<typeof fenceOf>) => [
      () => client.update(configMapKind, aConfigMap('m', { k: '2' }), { fences }),
      () => client.patch(configMapKind, inDefault('m'), { type: 'merge', body: { data: { k: '3' } } }, { fences }),
      () =>
        client.commit(
          ['x', 'y'].map((name) => ({ do: 'create', kind: secretKind, object: aConfigMap(name) })),
          { fences },
        ),
      () => client.create(configMapKind, aConfigMap('n'), { fences }),
      () => client.delete(configMapKind, inDefault('m'), { fences }),
    ]
    for (const write of writes(fenceOf(1))) expect(isLeaseLost(await captureError(write()))).toBe(true)
    expect((await client.get(configMapKind, inDefault('m'))).data).toEqual({ k: '1' })
    for (const write of writes(fenceOf(2))) await write()
  })

  describe('a commit', () => {
    const update = { type: 'merge', body: { data: { k: '2' } } } as const

    it('applies its writes in order in one transaction, each on the result of the previous ones', async () => {
      expect(await client.commitsAtomically()).toBe(true)
      await client.create(secretKind, aConfigMap('old'))
      const results = await client.commit([
        { do: 'create', kind: configMapKind, object: aConfigMap('a', { k: '1' }) },
        { do: 'patch', kind: configMapKind, ref: inDefault('a'), patch: update },
        { do: 'create', kind: namespaceKind, object: { metadata: { name: 'shop' } } },
        { do: 'create', kind: serviceAccountKind, object: { metadata: { namespace: 'shop', name: 'b' } } },
        { do: 'delete', kind: secretKind, ref: inDefault('old') },
      ])
      const newestRevision = api.store.revision
      expect(results.map((object) => Number(object?.metadata.resourceVersion) - newestRevision)).toEqual([
        -3,
        -3,
        -2,
        -1,
        Number.NaN,
      ])
      expect(results[0]).toEqual(results[1])
      expect(await client.get(configMapKind, inDefault('a'))).toEqual(results[1])
      expect((await client.list(secretKind)).items).toEqual([])
      expect(await client.get(serviceAccountKind, { namespace: 'shop', name: 'b' })).toEqual(results[3])
    })

    it('writes nothing if a write fails, and returns the index of that write', async () => {
      const createdMap = await client.create(configMapKind, aConfigMap('a', { k: '1' }))
      await client.patch(configMapKind, inDefault('a'), update)
      const revisionBefore = api.store.revision
      const error = await captureError(
        client.commit([
          { do: 'create', kind: secretKind, object: aConfigMap('b') },
          { do: 'update', kind: configMapKind, object: createdMap },
          { do: 'delete', kind: configMapKind, ref: inDefault('a') },
        ]),
      )
      expect(error).toMatchObject({ code: 409, reason: 'Conflict' })
      expect(failedWriteIndex(error)).toBe(1)
      expect(api.store.revision).toBe(revisionBefore)
      expect(await captureError(client.get(secretKind, inDefault('b')))).toMatchObject({ code: 404 })
    })

    it('SYS-3 assigns each object its own version, so that a watch can resume between two of them', async () => {
      const writes = ['a', 'b', 'c'].map(
        (name) => ({ do: 'create', kind: configMapKind, object: aConfigMap(name) }) as const,
      )
      const results = await client.commit(writes)
      const versions = results.map((object) => object?.metadata.resourceVersion)
      expect(new Set(versions).size).toBe(3)
      const { items } = await client.list(configMapKind, { namespace: 'default' })
      expect(items.map(({ metadata }) => metadata.resourceVersion)).toEqual(versions)
      const stop = new AbortController()
      const names: (string | undefined)[] = []
      const request = { namespace: 'default', resourceVersion: versions[0] ?? '', signal: stop.signal }
      for await (const event of client.watch(configMapKind, request)) {
        if ('object' in event) names.push(event.object.metadata.name)
        if (names.length === 2) stop.abort()
      }
      expect(names).toEqual(['b', 'c'])
    })

    it('returns the index of a write that cannot be decoded', async () => {
      const error = await captureError(
        client.commit([
          { do: 'create', kind: configMapKind, object: aConfigMap('b') },
          { do: 'create', kind: configMapKind, object: { metadata: { namespace: 'default', name: 7 } } as Json },
        ]),
      )
      expect(error).toMatchObject({ code: 400 })
      expect(failedWriteIndex(error)).toBe(1)
    })

    it('fails if it deletes an object and creates it again', async () => {
      await client.create(configMapKind, aConfigMap('a'))
      const error = await captureError(
        client.commit([
          { do: 'delete', kind: configMapKind, ref: inDefault('a') },
          { do: 'create', kind: configMapKind, object: aConfigMap('a') },
        ]),
      )
      expect(error).toMatchObject({ code: 400 })
      expect(failedWriteIndex(error)).toBe(1)
    })

    it('conflicts on a second conditional write of one object', async () => {
      const createdMap = await client.create(configMapKind, aConfigMap('a'))
      const write = {
        do: 'update',
        kind: configMapKind,
        object: { ...createdMap, data: { k: 'v' } } as object as typeof createdMap,
      } as const
      const error = await captureError(
        client.commit([
          write,
          { ...write, object: { ...createdMap, data: { k: 'w' } } as object as typeof createdMap },
        ]),
      )
      expect(error).toMatchObject({ code: 409, reason: 'Conflict' })
      expect(failedWriteIndex(error)).toBe(1)
    })

    it('binds a pod and its claim together', async () => {
      const unboundPod = {
        metadata: { namespace: 'default', name: 'p' },
        spec: { containers: [{ name: 'c', image: 'i' }] },
      }
      await client.create(podKind, unboundPod as Json)
      await client.create(persistentVolumeClaimKind, aClaim('c') as Json)
      const binding = { metadata: { namespace: 'default', name: 'p' }, target: { kind: 'Node', name: 'n1' } }
      const status = { type: 'merge', body: { status: { phase: 'Bound' } } } as const
      const [pod, claim] = (await client.commit([
        { do: 'create', kind: podKind, object: binding, subresource: 'binding' },
        { do: 'patch', kind: persistentVolumeClaimKind, ref: inDefault('c'), patch: status, subresource: 'status' },
      ])) as Json[]
      expect(pod.spec.nodeName).toBe('n1')
      expect(claim.status.phase).toBe('Bound')
      expect(Number(claim.metadata.resourceVersion)).toBe(Number(pod.metadata.resourceVersion) + 1)
    })

    it('accepts a commit without writes', async () => {
      const revisionBefore = api.store.revision
      expect(await client.commit([])).toEqual([])
      expect(api.store.revision).toBe(revisionBefore)
    })

    it('fails if it updates a lease that another holder has updated since', async () => {
      const spec = { holderIdentity: 'me', leaseDurationSeconds: 15 }
      const ownLease = await client.create(leaseKind, { metadata: { namespace: 'default', name: 'l' }, spec })
      await client.update(leaseKind, { ...ownLease, spec: { ...ownLease.spec, holderIdentity: 'you' } })
      const error = await captureError(
        client.commit([
          { do: 'update', kind: leaseKind, object: ownLease },
          { do: 'create', kind: configMapKind, object: aConfigMap('a') },
        ]),
      )
      expect(failedWriteIndex(error)).toBe(0)
    })
  })
}
