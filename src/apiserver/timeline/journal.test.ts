import { afterEach, describe, expect, it } from 'vitest'
import { AppendRejectedError, type Medium, memoryMedium } from '../../store/index.ts'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { decodeRecords } from './decode-records.ts'
import { PENDING_ACTIVITIES_MAX } from './journal.ts'
import { CHUNKS_PREFIX } from './journal-keys.ts'
import { type ChangeRecord, isActivity, isChange, type JournalRecord } from './journal-record.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'

let server: ServerFixture
afterEach(() => server.store.close())

const claim = (name: string, request = '1Gi') => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: request } }, storageClassName: 'fast' },
})
const anActivity = (volume: string) => ({
  start: '2026-01-01T00:00:00.000000Z',
  durationMs: 5,
  result: 'OK',
  driver: 'disk.example',
  method: 'CreateVolume',
  volume,
})

async function records(): Promise<JournalRecord[]> {
  const { entries } = await server.store.list({ prefix: CHUNKS_PREFIX })
  return entries.flatMap(({ value }) => decodeRecords(Buffer.from(value).toString('utf8')))
}
const changes = async (): Promise<ChangeRecord[]> => (await records()).filter(isChange)

describe('the journal', () => {
  it('PLUS-6 records the user and the changed fields in the transaction of the change', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    const transactions: string[][] = []
    server.store.watch({
      prefix: '',
      afterRevision: server.store.revision,
      onEvents: (events) => void transactions.push(events.map(({ key }) => key.split('/').slice(0, 2).join('/'))),
      onEnd: () => {},
    })
    await server.post(`${CLAIMS}?fieldManager=kubectl`, claim('orders'))
    await server.call('PATCH', `${CLAIMS}/orders/status`, JSON.stringify({ status: { phase: 'Bound' } }), {
      'content-type': 'application/merge-patch+json',
      'user-agent': 'binder/1',
    })
    await server.delete(`${CLAIMS}/orders`)
    const journaled = ['core/persistentvolumeclaims', 'journal/chunks']
    expect(transactions).toEqual([journaled, journaled, journaled])
    expect(await changes()).toEqual([
      expect.objectContaining({
        ...{
          verb: 'create',
          user: 'tester',
          manager: 'kubectl',
          name: 'orders',
          namespace: 'default',
          step: 'Created',
        },
        changes: ['request 1Gi', 'class fast', 'phase Pending', 'finalizer kubernetes.io/pvc-protection added'],
      }),
      expect.objectContaining({ verb: 'update', manager: 'binder', changes: ['phase Pending → Bound'], step: 'Bound' }),
      expect.objectContaining({ verb: 'update', changes: ['marked for deletion'] }),
    ])
  })

  it('PLUS-6 has no record of a dry run, a rejected write or a write without changes', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    await server.post(CLAIMS, claim('orders'))
    const { revision } = server.store
    expect((await server.post(`${CLAIMS}?dryRun=All`, claim('other'))).status).toBe(201)
    expect((await server.post(CLAIMS, claim('orders'))).status).toBe(409)
    expect((await server.post(CLAIMS, claim('broken', '-1'))).status).toBe(422)
    expect((await server.patch(`${CLAIMS}/orders`, {})).status).toBe(200)
    expect(server.store.revision).toBe(revision)
    expect(await records()).toHaveLength(1)
  })

  it('PLUS-6 records changes to fields that it does not describe, but no update of a pod without a new node or phase', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    await server.post(VOLUMES, {
      metadata: { name: 'disk' },
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' } },
    })
    await server.patch(`${VOLUMES}/disk`, { spec: { mountOptions: ['ro'] } })
    const pods = '/api/v1/namespaces/default/pods'
    const containers = [{ name: 'a', image: 'b' }]
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'orders' } }]
    await server.post(pods, { metadata: { name: 'web' }, spec: { containers, volumes } })
    await server.post(pods, { metadata: { name: 'other' }, spec: { containers } })
    await server.patch(`${pods}/web/status`, { status: { message: 'a' } })
    expect((await changes()).map(({ name, changes }) => [name, changes.at(-1)])).toEqual([
      ['disk', 'finalizer kubernetes.io/pv-protection added'],
      ['disk', 'other fields'],
      ['web', 'phase Pending'],
    ])
  })

  it('PLUS-6 puts the records of a group commit into one chunk, in the order of the commits', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    await Promise.all(Array.from({ length: 50 }, (_, index) => server.post(CLAIMS, claim(`c-${index}`))))
    const { entries } = await server.store.list({ prefix: CHUNKS_PREFIX })
    expect(entries).toHaveLength(1)
    expect((await changes()).map(({ name }) => name)).toEqual(Array.from({ length: 50 }, (_, index) => `c-${index}`))
  })

  const claimWrite = (verb: 'create' | 'patch', name: string, body: object, subresource?: string) => ({
    ...{ verb, apiVersion: 'v1', resource: 'persistentvolumeclaims', namespace: 'default', body },
    ...(verb === 'patch' ? { name, patchType: 'merge' } : {}),
    ...(subresource ? { subresource } : {}),
  })
  const commit = async (writes: object[]) =>
    expect((await server.post('/apis/stowage.dev/v1/commits', { writes })).status).toBe(200)

  it('PLUS-6 describes the writes of one object in a commit as one change', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    await server.post(CLAIMS, claim('orders'))
    await commit([
      claimWrite('patch', 'orders', { spec: { volumeName: 'v-1' } }),
      claimWrite('create', 'carts', claim('carts')),
      claimWrite('patch', 'orders', { status: { phase: 'Bound' } }, 'status'),
    ])
    expect((await changes()).slice(1).map(({ verb, name, step }) => [verb, name, step])).toEqual([
      ['update', 'orders', 'Bound'],
      ['create', 'carts', 'Created'],
    ])
    expect((await changes())[1]?.changes).toEqual(['volume v-1', 'phase Pending → Bound'])
  })

  describe('of a volume and its claim', () => {
    const volumeWrite = (claimUid: string, handle: string) => ({
      ...{ verb: 'create', apiVersion: 'v1', resource: 'persistentvolumes' },
      body: {
        metadata: { name: 'v-1' },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          claimRef: { namespace: 'default', name: 'orders', uid: claimUid },
          csi: { driver: 'disk.example', volumeHandle: handle },
        },
      },
    })
    const bindClaim = claimWrite('patch', 'orders', { spec: { volumeName: 'v-1' } })
    const linesOf = async (): Promise<string[]> => {
      const { entries } = await server.store.list({ prefix: CHUNKS_PREFIX })
      const text = Buffer.from(entries.at(-1)!.value).toString('utf8')
      return text.split('\n').filter((line) => line.startsWith('["'))
    }
    const volumeRecord = (claimUid: string, handle: string) =>
      expect.objectContaining({
        ...{ kind: 'PersistentVolume', name: 'v-1', verb: 'create', claimUid, handle, step: 'Provisioned' },
        changes: expect.arrayContaining(['driver disk.example', 'claim default/orders']),
      })
    const claimRecord = expect.objectContaining({
      ...{ kind: 'PersistentVolumeClaim', namespace: 'default', name: 'orders', verb: 'update', volume: 'v-1' },
      changes: ['volume v-1'],
    })

    it('PLUS-6 keeps both changes of one commit, in one line', async () => {
      server = await createServerFixture({ journal: 'own', answers: 'stowage' })
      const { uid } = (await server.post(CLAIMS, claim('orders'))).json.metadata
      await commit([volumeWrite(uid, 'disk "1"'), bindClaim])
      expect((await changes()).slice(1)).toEqual([volumeRecord(uid, 'disk "1"'), claimRecord])
      const volume = (await server.get(`${VOLUMES}/v-1`)).json
      expect((await changes())[1]).not.toHaveProperty('namespace')
      expect((await changes())[1]?.uid).toBe(volume.metadata.uid)
      expect(await linesOf()).toHaveLength(1)
      expect(server.journal!.stats.changes).toBe(3)
    })

    it('PLUS-6 keeps them in two lines if another change is between them, or they are of different transactions', async () => {
      server = await createServerFixture({ journal: 'own', answers: 'stowage' })
      const { uid } = (await server.post(CLAIMS, claim('orders'))).json.metadata
      await commit([volumeWrite(uid, 'disk-1'), claimWrite('create', 'carts', claim('carts')), bindClaim])
      expect((await changes()).slice(1)).toEqual([
        volumeRecord(uid, 'disk-1'),
        expect.objectContaining({ name: 'carts' }),
        claimRecord,
      ])
      expect(await linesOf()).toHaveLength(3)
    })

    it('PLUS-6 keeps the record of a volume without that of its claim', async () => {
      server = await createServerFixture({ journal: 'own', answers: 'stowage' })
      const { uid } = (await server.post(CLAIMS, claim('orders'))).json.metadata
      await Promise.all([commit([volumeWrite(uid, 'disk-1')]), commit([bindClaim])])
      expect((await changes()).slice(1)).toEqual([volumeRecord(uid, 'disk-1'), claimRecord])
      expect(await linesOf()).toHaveLength(2)
    })
  })

  it('PLUS-6 records which labels and annotations are added, changed and removed, whatever their names', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    const { metadata, ...body } = claim('orders')
    await server.post(CLAIMS, { ...body, metadata: { ...metadata, labels: { kept: '1', old: '2', constructor: '3' } } })
    const annotations = { 'volume.kubernetes.io/selected-node': 'n1', valueOf: 'a' }
    await server.patch(`${CLAIMS}/orders`, {
      metadata: { labels: { old: null, new: '4', constructor: '5' }, annotations },
    })
    await server.patch(`${CLAIMS}/orders`, { metadata: { labels: { constructor: null, toString: '6' } } })
    expect((await changes()).slice(1).map((change) => change.changes)).toEqual([
      ['node n1', 'annotation valueOf added', 'label constructor changed', 'label new added', 'label old removed'],
      ['label toString added', 'label constructor removed'],
    ])
  })

  it('PLUS-6 puts the records of a commit with many writes into a separate chunk', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    const names = Array.from({ length: 20 }, (_, index) => `m-${index}`)
    await Promise.all([
      server.post(CLAIMS, claim('a')),
      commit(names.map((name) => claimWrite('create', name, claim(name)))),
      server.post(CLAIMS, claim('b')),
    ])
    const { entries } = await server.store.list({ prefix: CHUNKS_PREFIX })
    const chunkOf = (name: string) => entries.findIndex(({ value }) => Buffer.from(value).includes(`,"${name}"`))
    expect(new Set(names.map(chunkOf)).size).toBe(1)
    expect([chunkOf('a'), chunkOf('b')]).not.toContain(chunkOf('m-0'))
    expect(await changes()).toHaveLength(22)
  })

  it('PLUS-6 keeps quotes, line feeds and other characters of names and values', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    await server.post(`${CLAIMS}?fieldManager=${encodeURIComponent('a"b\\c é')}`, claim('orders'))
    const message = 'disk "a"\nis full → retry'
    const status = { conditions: [{ type: 'Resizing', status: 'True', reason: message }] }
    await server.patch(`${CLAIMS}/orders/status`, { status }, 'merge')
    const [created, updated] = await changes()
    expect(created?.manager).toBe('a"b\\c é')
    expect(updated?.changes).toEqual([`conditions Resizing=True (${message})`])
  })

  it('PLUS-6 keeps the committed chunk of a group commit in memory until it is merged, but none of a rejected one', async () => {
    const medium = memoryMedium()
    let isFull = false
    const limited: Medium = {
      ...medium,
      write: (batch) => (isFull ? Promise.reject(new AppendRejectedError('disk full')) : medium.write(batch)),
    }
    server = await createServerFixture({ journal: 'own', medium: limited, answers: 'stowage' })
    const chunks = server.journal!.unmergedChunks!
    await Promise.all(Array.from({ length: 5 }, (_, index) => server.post(CLAIMS, claim(`c-${index}`))))
    isFull = true
    await Promise.all(Array.from({ length: 5 }, (_, index) => server.post(CLAIMS, claim(`d-${index}`))))
    const { entries } = await server.store.list({ prefix: CHUNKS_PREFIX })
    expect(chunks.first(10, 1_000_000)).toEqual(entries.map(({ key, value }) => ({ key, value })))
    expect(entries).toHaveLength(1)
  })

  it('PLUS-6 writes a chunk per transaction if servers share the store', async () => {
    server = await createServerFixture({ journal: 'shared', answers: 'stowage' })
    await Promise.all(Array.from({ length: 5 }, (_, index) => server.post(CLAIMS, claim(`c-${index}`))))
    expect((await server.store.list({ prefix: CHUNKS_PREFIX })).entries).toHaveLength(5)
  })

  it('PLUS-6 writes activities with the next write of any object, once', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    server.journal!.addActivities('agent', [anActivity('pvc-1')])
    expect(server.journal!.pending).toHaveLength(1)
    const configMaps = '/api/v1/namespaces/default/configmaps'
    await Promise.all(['a', 'b'].map((name) => server.post(configMaps, { metadata: { name } })))
    expect(await records()).toEqual([{ process: 'agent', activity: anActivity('pvc-1') }])
    expect(server.journal!.pending).toEqual([])
  })

  it('PLUS-6 drops the oldest waiting activities beyond the limit', async () => {
    server = await createServerFixture({ journal: 'own', answers: 'stowage' })
    const names = Array.from({ length: PENDING_ACTIVITIES_MAX + 2 }, (_, index) => `v-${index}`)
    server.journal!.addActivities('agent', names.map(anActivity))
    expect(server.journal!.pending[0]?.activity.volume).toBe('v-2')
    expect(server.journal!.stats.droppedActivities).toBe(2)
  })

  it('PLUS-6 keeps the activities of a rejected write, but does not record its change', async () => {
    const medium = memoryMedium()
    let isFull = false
    const limited: Medium = {
      ...medium,
      write: (batch) => (isFull ? Promise.reject(new AppendRejectedError('disk full')) : medium.write(batch)),
    }
    server = await createServerFixture({ journal: 'own', medium: limited, answers: 'stowage' })
    server.journal!.addActivities('agent', [anActivity('pvc-1')])
    isFull = true
    expect((await server.post(CLAIMS, claim('orders'))).status).toBe(500)
    isFull = false
    await server.post(CLAIMS, claim('carts'))
    const written = await records()
    expect(written.filter(isActivity)).toHaveLength(1)
    expect(written.filter(isChange).map(({ name }) => name)).toEqual(['carts'])
  })
})

describe('the journal after a crash', () => {
  /** Creates, changes and deletes claims and a volume, with several writes at a time. Writes fail after the crash. */
  async function runLifecycle({ post, patch, delete: remove }: ServerFixture): Promise<void> {
    const volume = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/a' } }
    await Promise.all([
      post(CLAIMS, claim('a')),
      post(CLAIMS, claim('b')),
      post(VOLUMES, { metadata: { name: 'v' }, spec: volume }),
    ])
    await Promise.all(['a', 'b'].map((name) => patch(`${CLAIMS}/${name}`, { spec: { volumeName: `v-${name}` } })))
    await patch(`${CLAIMS}/a/status`, { status: { phase: 'Bound' } }, 'merge')
    await Promise.all([remove(`${CLAIMS}/a`), remove(`${VOLUMES}/v`)])
    await Promise.all(
      [`${CLAIMS}/a`, `${VOLUMES}/v`].map((path) => patch(path, { metadata: { finalizers: null } }, 'merge')),
    )
    await post(CLAIMS, claim('a'))
  }

  /**
   * Runs `runLifecycle` on a medium whose write number `at` is lost, or committed without a response, and restarts the
   * server.
   */
  async function crash(at: number, isWritten: boolean): Promise<{ isOver: boolean }> {
    const medium = memoryMedium()
    let writes = 0
    let isArmed = false
    let isOver = true
    const crashing: Medium = {
      ...medium,
      write: async (batch) => {
        if (isArmed && writes++ === at) {
          isOver = false
          if (isWritten) await medium.write(batch)
          throw new Error('crash')
        }
        return medium.write(batch)
      },
      close: async () => {},
    }
    const before = await createServerFixture({ journal: 'own', medium: crashing, answers: 'stowage' })
    isArmed = true
    await runLifecycle(before)
    server = await createServerFixture({ journal: 'own', medium, answers: 'stowage' })
    return { isOver }
  }

  it('PLUS-6 records exactly the committed changes, whichever write fails', async () => {
    let crashes = 0
    for (const isWritten of [false, true]) {
      for (let at = 0; ; at++) {
        const { isOver } = await crash(at, isWritten)
        expect(await stateOfJournal()).toEqual(await stateOfStore())
        if (isOver) break
        crashes++
        await server.store.close()
      }
    }
    expect(crashes).toBeGreaterThanOrEqual(10)
  })

  /** Returns the objects that exist according to the records, with the fields that the records describe. */
  async function stateOfJournal(): Promise<Record<string, object>> {
    const objects = new Map<string, { changes: number; phase?: string; volume?: string; isDeleted: boolean }>()
    for (const { uid, verb, changes: texts, volume } of await changes()) {
      if (verb === 'delete') {
        objects.delete(uid)
        continue
      }
      const previous = objects.get(uid)
      expect(previous === undefined).toBe(verb === 'create')
      const phase = texts
        .find((text) => text.startsWith('phase'))
        ?.split(' ')
        .at(-1)
      objects.set(uid, {
        changes: (previous?.changes ?? 0) + 1,
        ...(volume ? { volume } : previous?.volume ? { volume: previous.volume } : {}),
        ...(phase ? { phase } : previous?.phase ? { phase: previous.phase } : {}),
        isDeleted: previous?.isDeleted || texts.includes('marked for deletion'),
      })
    }
    return Object.fromEntries([...objects].map(([uid, { changes: _, ...fields }]) => [uid, fields]))
  }

  async function stateOfStore(): Promise<Record<string, object>> {
    const items: Json[] = [...(await server.get(CLAIMS)).json.items, ...(await server.get(VOLUMES)).json.items]
    return Object.fromEntries(
      items.map(({ metadata, spec, status }) => [
        metadata.uid,
        {
          ...(spec.volumeName ? { volume: spec.volumeName } : {}),
          ...(status?.phase ? { phase: status.phase } : {}),
          isDeleted: metadata.deletionTimestamp !== undefined,
        },
      ]),
    )
  }
})
