import { beforeEach, describe, expect, it } from 'vitest'
import type { Operation } from '../../api/kinds/operation/operation-schema.ts'
import { createServerFixture, type Json, type ServerFixture } from '../server.fixture.ts'
import { SILENCE_MS_MAX } from './operation-board.ts'

const ROOT = '/apis/stowage.dev/v1'
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' }

const anOperation = (namespace: string, name: string, fields: Partial<Operation> = {}): Operation => ({
  metadata: {
    name: `${name}.0a1b2c3d4e`,
    namespace,
    uid: `uid-${name}`,
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { 'stowage.dev/component': 'provisioner', 'stowage.dev/operation': 'Provision' },
  },
  object: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name },
  component: 'provisioner',
  process: 'p',
  operation: 'Provision',
  phase: 'Retrying',
  reason: 'ResourceExhausted',
  message: 'the pool is full',
  attempts: 3,
  started: '2026-01-01T00:00:00Z',
  nextAttempt: '2026-01-01T00:00:12Z',
  driverAnswer: { driver: 'disk.example', method: 'CreateVolume', code: 'ResourceExhausted' },
  ...fields,
})

let api: ServerFixture
beforeEach(async () => {
  api = await createServerFixture({ usesRbac: true })
})

/** Adds operations to the board and waits until they are listed. */
async function putOperations(...operations: readonly Operation[]): Promise<void> {
  const { revision } = api.operations.store
  api.operations.applyLocal({ changed: operations, removed: [] })
  await api.waitUntil(() => api.operations.store.revision > revision, 'the operations to be listed')
}

const namesIn = ({ items }: Json): string[] => items.map(({ object }: Json) => `${object.namespace}/${object.name}`)

const report = (spec: object, user = 'ann') =>
  api.post(`${ROOT}/operationreports`, { kind: 'OperationReport', apiVersion: 'stowage.dev/v1', spec }, asUser(user))

/** Returns headers that impersonate an administrator of this name. A report belongs to the user who sends it. */
const asUser = (name: string) => ({ 'impersonate-user': name, 'impersonate-group': 'system:masters' })

describe('operations', () => {
  it('SYS-19 have a history of at most 2 MiB, from which watches resume', async () => {
    const message = 'x'.repeat(2_000)
    const { store } = api.operations
    const firstRevision = store.revision
    for (let attempts = 1; attempts <= 1_200; attempts++)
      api.operations.applyLocal({ changed: [anOperation('shop', 'a', { attempts, message })], removed: [] })
    await api.waitUntil(() => store.revision >= firstRevision + 1_200, 'the changes to be applied')
    await api.waitUntil(() => store.stats().historyBytes <= 2 * 1024 * 1024, 'the oldest changes to be dropped')
    expect(store.stats().historyBytes).toBeGreaterThan(1024 * 1024)
  })

  it('PLUS-15 are listed by namespace, by labels and by fields', async () => {
    await putOperations(
      anOperation('shop', 'a'),
      anOperation('shop', 'b', { phase: 'Waiting' }),
      anOperation('bank', 'c'),
    )
    expect(namesIn((await api.get(`${ROOT}/operations`)).json)).toEqual(['bank/c', 'shop/a', 'shop/b'])
    expect(namesIn((await api.get(`${ROOT}/namespaces/shop/operations`)).json)).toEqual(['shop/a', 'shop/b'])
    const select = async (query: string) => namesIn((await api.get(`${ROOT}/operations?${query}`)).json)
    expect(await select('fieldSelector=phase=Waiting')).toEqual(['shop/b'])
    expect(await select('fieldSelector=object.kind=PersistentVolumeClaim,object.name=c')).toEqual(['bank/c'])
    expect(await select('labelSelector=stowage.dev/component%3Dattacher')).toEqual([])
    expect(await select('limit=1')).toEqual(['bank/c'])
    const { json } = await api.get(`${ROOT}/namespaces/shop/operations/a.0a1b2c3d4e`)
    expect(json).toMatchObject({ kind: 'Operation', apiVersion: 'stowage.dev/v1', ...anOperation('shop', 'a') })
    expect((await api.get(`${ROOT}/namespaces/shop/operations/none`)).status).toBe(404)
  })

  it('PLUS-15 are printed as a table', async () => {
    await putOperations(anOperation('shop', 'a', { message: 'x'.repeat(300) }))
    const { json } = await api.get(`${ROOT}/operations`, TABLE)
    const titles = json.columnDefinitions.map(({ name, priority }: Json) => (priority === 0 ? name : `(${name})`))
    expect(titles.join(' ')).toBe(
      'Name Object Operation Phase Reason Attempts Next Age Message (Component) (Process) (Driver Answer) (Waits For)',
    )
    expect(json.rows[0].cells).toEqual([
      ...['a.0a1b2c3d4e', 'PersistentVolumeClaim/a', 'Provision', 'Retrying', 'ResourceExhausted', 3, '12s', '0s'],
      ...[`${'x'.repeat(120)}…`, 'provisioner', 'p', 'CreateVolume: ResourceExhausted', ''],
    ])
  })

  it('PLUS-15 cannot be written, and are not in the durable store', async () => {
    await putOperations(anOperation('shop', 'a'))
    const path = `${ROOT}/namespaces/shop/operations`
    expect((await api.post(path, anOperation('shop', 'b'))).status).toBe(405)
    expect((await api.delete(`${path}/a.0a1b2c3d4e`)).status).toBe(405)
    expect((await api.patch(`${path}/a.0a1b2c3d4e`, {})).status).toBe(405)
    expect((await api.store.list({ prefix: 'stowage.dev/' })).entries).toEqual([])
  })

  it('PLUS-15 are sent by a watch when they are added, changed and removed', async () => {
    await putOperations(anOperation('shop', 'a'))
    const { json } = await api.get(`${ROOT}/operations`)
    const watch = await api.watch(`${ROOT}/operations?watch=1&resourceVersion=${json.metadata.resourceVersion}`)
    await putOperations(anOperation('shop', 'a', { attempts: 4 }), anOperation('shop', 'b'))
    api.operations.applyLocal({ changed: [], removed: [{ namespace: 'shop', name: 'a.0a1b2c3d4e' }] })
    await watch.waitUntil((events) => events.length === 3)
    expect(watch.events.map(({ type, object }) => [type, object.object.name, object.attempts])).toEqual([
      ['MODIFIED', 'a', 4],
      ['ADDED', 'b', 3],
      ['DELETED', 'a', 4],
    ])
    watch.close()
  })

  it('PLUS-15 cannot be watched from a version of an earlier start: the watch fails with 410', async () => {
    const watch = await api.watch(`${ROOT}/operations?watch=1&resourceVersion=1`)
    await watch.waitUntil((events) => events.length === 1)
    expect(watch.events[0]).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
  })

  it('PLUS-15 can be read with the role view only in the namespace of the role binding', async () => {
    await putOperations(anOperation('shop', 'a'), anOperation('bank', 'b'))
    await api.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await api.post('/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings', {
      metadata: { name: 'ann' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
    })
    const ann = { 'impersonate-user': 'ann' }
    await api.waitUntil(
      async () => (await api.get(`${ROOT}/namespaces/shop/operations`, ann)).status === 200,
      'the role binding to be watched',
    )
    expect(namesIn((await api.get(`${ROOT}/namespaces/shop/operations`, ann)).json)).toEqual(['shop/a'])
    expect((await api.get(`${ROOT}/namespaces/bank/operations`, ann)).status).toBe(403)
    expect((await api.get(`${ROOT}/operations`, ann)).status).toBe(403)
    expect((await api.post(`${ROOT}/operationreports`, { spec: { process: 'p' } }, ann)).status).toBe(403)
  })
})

describe('reports of operations', () => {
  const listNames = async () => namesIn((await api.get(`${ROOT}/operations`)).json)

  it("PLUS-15 add, change and remove a process's operations", async () => {
    const completeReport = {
      process: 'p',
      isComplete: true,
      operations: [anOperation('shop', 'a'), anOperation('shop', 'b')],
    }
    expect((await report({ process: 'p', operations: [anOperation('shop', 'a')] })).json.status).toEqual({
      isKnown: false,
    })
    expect(await listNames()).toEqual([])
    expect(await report(completeReport)).toMatchObject({ status: 201, json: { status: { isKnown: true } } })
    await api.waitUntil(async () => (await listNames()).length === 2, 'the operations')
    const { json } = await report({
      process: 'p',
      operations: [anOperation('shop', 'c')],
      removed: [{ namespace: 'shop', name: 'a.0a1b2c3d4e' }],
    })
    expect(json.status).toEqual({ isKnown: true })
    await api.waitUntil(async () => (await listNames()).join() === 'shop/b,shop/c', 'the change')
    await report({ process: 'p', isComplete: true })
    await api.waitUntil(async () => (await listNames()).length === 0, 'no operation')
  })

  it('PLUS-15 expire when the process stops reporting', async () => {
    await report({ process: 'p', isComplete: true, operations: [anOperation('shop', 'a')] })
    await api.clock.advance(SILENCE_MS_MAX - 1_000)
    await report({ process: 'p' })
    await api.clock.advance(SILENCE_MS_MAX - 1_000)
    expect(await listNames()).toEqual(['shop/a'])
    await api.clock.advance(1_000)
    await api.waitUntil(async () => (await listNames()).length === 0, 'no operation')
    expect((await report({ process: 'p' })).json.status).toEqual({ isKnown: false })
  })

  it('PLUS-15 do not change the operations that another user has reported', async () => {
    await report({ process: 'p', isComplete: true, operations: [anOperation('shop', 'a')] }, 'ann')
    await report({ process: 'p', isComplete: true, operations: [anOperation('shop', 'a', { attempts: 9 })] }, 'bob')
    await report({ process: 'p', removed: [{ namespace: 'shop', name: 'a.0a1b2c3d4e' }] }, 'bob')
    await api.waitUntil(async () => (await listNames()).length === 1, 'the operation')
    expect((await api.get(`${ROOT}/operations`)).json.items[0].attempts).toBe(3)
  })

  it.each<[string, object, number]>([
    ['spec.process', { process: '' }, 422],
    ['spec.operations[0].phase', { operations: [anOperation('shop', 'a', { phase: 'Lost' as 'Running' })] }, 422],
    ['spec.operations[0].metadata.name', { operations: [anOperation('shop', 'a/b')] }, 422],
    ['spec.operations[0].metadata.namespace', { operations: [anOperation('a/b', 'a')] }, 422],
    ['spec.operations[0].process', { operations: [anOperation('shop', 'a', { process: 'other' })] }, 422],
    ['at most 500', { removed: Array.from({ length: 501 }, () => ({ namespace: 'shop', name: 'a' })) }, 400],
  ])('PLUS-15 are rejected if they are invalid: %s', async (text, spec, status) => {
    const response = await report({ process: 'p', isComplete: true, ...spec })
    expect(response.status).toBe(status)
    expect(response.json.message).toContain(text)
    expect(await listNames()).toEqual([])
  })
})
