// Tests the garbage collector against a real API server through an in-process client.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createGarbageController } from './garbage-controller.ts'

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const SECRETS = '/api/v1/namespaces/default/secrets'

let server: ServerFixture
let stop: () => Promise<void>
let controller: ReturnType<typeof createGarbageController>
let counter: { addedKeys: number }

beforeEach(async () => {
  server = await createServerFixture()
  const abort = new AbortController()
  const client = server.clientOf('garbage')
  counter = { addedKeys: 0 }
  const queueObserver = () => ({ started() {}, finished() {}, retried() {}, added: () => void counter.addedKeys++ })
  controller = createGarbageController({
    client,
    kinds: ALL_KINDS,
    clock: server.clock,
    random: () => 0.5,
    log: silentLog,
    metrics: { queueObserver, queues: new Set() } as never,
  })
  const run = controller.run(abort.signal)
  stop = () => {
    abort.abort()
    return run
  }
})
afterEach(async () => {
  await stop()
  await server.store.close()
})

const waitUntil: ServerFixture['waitUntil'] = (condition, goal) => server.waitUntil(condition, goal)
const isDeleted = (path: string) => async () => (await server.get(path)).status === 404
/** Waits until the work queue is empty. */
const waitUntilIdle = () =>
  waitUntil(
    () => controller.queue.stats().depth === 0 && controller.queue.states().length === 0,
    'the queue to be empty',
  )

async function createOwner(name = 'owner', finalizers: string[] = []) {
  const { json } = await server.post(CONFIG_MAPS, { metadata: { name, finalizers } })
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: json.metadata.uid as string }
}
const createDependent = (name: string, ...ownerReferences: object[]) =>
  server.post(SECRETS, { metadata: { name, ownerReferences } })

describe('createGarbageController', () => {
  it('SYS-4 deletes the dependents after the owner in background deletion', async () => {
    await createDependent('child', await createOwner())
    await server.delete(`${CONFIG_MAPS}/owner`, { propagationPolicy: 'Background' })
    expect((await server.get(`${CONFIG_MAPS}/owner`)).status).toBe(404)
    await waitUntil(isDeleted(`${SECRETS}/child`), 'the child to be deleted')
  })

  it('does not reconcile a deleted object without owners and dependents', async () => {
    await createOwner('owner')
    await createDependent('child', await createOwner('other'))
    await waitUntilIdle()
    const { addedKeys } = counter
    await server.delete(`${CONFIG_MAPS}/owner`)
    await server.delete(`${CONFIG_MAPS}/other`, { propagationPolicy: 'Background' })
    await waitUntil(isDeleted(`${SECRETS}/child`), 'the child to be deleted')
    // The child is enqueued by the deletion of its owner, and the owner by the deletion of the child.
    expect(counter.addedKeys - addedKeys).toBe(2)
  })

  it('SYS-4 deletes a chain of dependents', async () => {
    const { json: child } = await createDependent('child', await createOwner())
    await createDependent('grandchild', { apiVersion: 'v1', kind: 'Secret', name: 'child', uid: child.metadata.uid })
    await server.delete(`${CONFIG_MAPS}/owner`)
    await waitUntil(isDeleted(`${SECRETS}/grandchild`), 'the grandchild to be deleted')
  })

  it('keeps an object that has another owner, and removes the reference to the deleted owner', async () => {
    const [firstOwner, secondOwner] = [await createOwner('first'), await createOwner('second')]
    await createDependent('child', firstOwner, secondOwner)
    await server.delete(`${CONFIG_MAPS}/first`)
    const owners = async () =>
      (await server.get(`${SECRETS}/child`)).json.metadata.ownerReferences.map(({ name }: { name: string }) => name)
    await waitUntil(async () => (await owners()).length === 1, 'the reference to be removed')
    expect(await owners()).toEqual(['second'])
  })

  it('SYS-4 keeps the owner in foreground deletion until its blocking dependents are deleted', async () => {
    const reference = { ...(await createOwner()), blockOwnerDeletion: true }
    await server.post(SECRETS, { metadata: { name: 'child', ownerReferences: [reference], finalizers: ['test/hold'] } })
    await server.delete(`${CONFIG_MAPS}/owner`, { propagationPolicy: 'Foreground' })
    await waitUntil(
      async () => (await server.get(`${SECRETS}/child`)).json.metadata.deletionTimestamp,
      'the deletion of the child to begin',
    )
    await waitUntilIdle()
    expect((await server.get(`${CONFIG_MAPS}/owner`)).json.metadata.finalizers).toEqual(['foregroundDeletion'])
    await server.patch(`${SECRETS}/child`, { metadata: { finalizers: null } }, 'merge')
    await waitUntil(isDeleted(`${CONFIG_MAPS}/owner`), 'the owner to be deleted')
  })

  it('deletes the owner in foreground deletion without waiting for dependents that do not block it', async () => {
    await server.post(SECRETS, {
      metadata: { name: 'child', ownerReferences: [await createOwner()], finalizers: ['test/hold'] },
    })
    await server.delete(`${CONFIG_MAPS}/owner`, { propagationPolicy: 'Foreground' })
    await waitUntil(isDeleted(`${CONFIG_MAPS}/owner`), 'the owner to be deleted')
  })

  it('deletes cycles of one, two and three owners in foreground deletion', async () => {
    const cycles = [['self'], ['a', 'b'], ['x', 'y', 'z']]
    for (const cycle of cycles) {
      const references = new Map<string, object>()
      for (const name of cycle) references.set(name, { ...(await createOwner(name)), blockOwnerDeletion: true })
      for (const [index, name] of cycle.entries()) {
        const nextObject = cycle[(index + 1) % cycle.length]!
        await server.patch(
          `${CONFIG_MAPS}/${name}`,
          { metadata: { ownerReferences: [references.get(nextObject)] } },
          'merge',
        )
      }
      await waitUntilIdle()
      await server.delete(`${CONFIG_MAPS}/${cycle[0]}`, { propagationPolicy: 'Foreground' })
      for (const name of cycle)
        await waitUntil(isDeleted(`${CONFIG_MAPS}/${name}`), `${name} of the cycle ${cycle} to be deleted`)
    }
  })

  it('SYS-4 keeps the dependents in orphan deletion and removes their references to the owner', async () => {
    await createDependent('child', await createOwner())
    await waitUntilIdle()
    await server.delete(`${CONFIG_MAPS}/owner`, { propagationPolicy: 'Orphan' })
    await waitUntil(isDeleted(`${CONFIG_MAPS}/owner`), 'the owner to be deleted')
    await waitUntilIdle()
    const { status, json } = await server.get(`${SECRETS}/child`)
    expect([status, json.metadata.ownerReferences]).toEqual([200, undefined])
  })

  it('SYS-4 keeps dependents of an owner whose kind is not served', async () => {
    await createDependent('child', { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u-1' })
    await createDependent('other', { apiVersion: 'example.com/v1', kind: 'Widget', name: 'w', uid: 'u-2' })
    await waitUntilIdle()
    expect((await server.get(`${SECRETS}/child`)).status).toBe(200)
    expect((await server.get(`${SECRETS}/other`)).status).toBe(200)
  })

  it('deletes an object whose owner reference has the uid of an earlier object of that name', async () => {
    const reference = await createOwner()
    await createDependent('child', { ...reference, uid: 'another-uid' })
    await waitUntil(isDeleted(`${SECRETS}/child`), 'the child to be deleted')
    expect((await server.get(`${CONFIG_MAPS}/owner`)).status).toBe(200)
  })

  it('keeps a cluster-scoped object that refers to a namespaced owner', async () => {
    const reference = await createOwner()
    await server.post('/api/v1/nodes', { metadata: { name: 'n1', ownerReferences: [reference] } })
    await waitUntilIdle()
    expect((await server.get('/api/v1/nodes/n1')).status).toBe(200)
  })
})
