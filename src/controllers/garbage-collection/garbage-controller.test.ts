// The garbage collector on an in-process client of the real API server.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { inProcessClient, SYSTEM_USER } from '../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createGarbageController } from './garbage-controller.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const SECRETS = '/api/v1/namespaces/default/secrets'

let server: ServerFixture
let stop: () => Promise<void>
let controller: ReturnType<typeof createGarbageController>

beforeEach(async () => {
  server = await createServerFixture()
  const abort = new AbortController()
  const client = inProcessClient(server.server.objects, SYSTEM_USER)
  controller = createGarbageController({
    client,
    kinds: ALL_KINDS,
    clock: server.clock,
    random: () => 0.5,
    log: silentLog,
  })
  const running = controller.run(abort.signal)
  stop = () => {
    abort.abort()
    return running
  }
})
afterEach(async () => {
  await stop()
  await server.store.close()
})

const until: ServerFixture['until'] = (condition, what) => server.until(condition, what)
const isGone = (path: string) => async () => (await server.get(path)).status === 404
/** Waits until the work queue is empty. */
const quiet = () =>
  until(() => controller.queue.stats().depth === 0 && controller.queue.standings().length === 0, 'a quiet queue')

async function owner(name = 'owner', finalizers: string[] = []) {
  const { json } = await server.post(MAPS, { metadata: { name, finalizers } })
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: json.metadata.uid as string }
}
const dependent = (name: string, ...ownerReferences: object[]) =>
  server.post(SECRETS, { metadata: { name, ownerReferences } })

describe('garbage collection', () => {
  it('SYS-4 deletes dependents of a deleted owner (background)', async () => {
    await dependent('child', await owner())
    await server.delete(`${MAPS}/owner`, { propagationPolicy: 'Background' })
    await until(isGone(`${SECRETS}/child`), 'the child to be deleted')
  })

  it('SYS-4 deletes a chain of dependents', async () => {
    const { json: child } = await dependent('child', await owner())
    await dependent('grandchild', { apiVersion: 'v1', kind: 'Secret', name: 'child', uid: child.metadata.uid })
    await server.delete(`${MAPS}/owner`)
    await until(isGone(`${SECRETS}/grandchild`), 'the grandchild to be deleted')
  })

  it('keeps an object with another owner, and removes the deleted one from its list', async () => {
    const [first, second] = [await owner('first'), await owner('second')]
    await dependent('child', first, second)
    await server.delete(`${MAPS}/first`)
    const owners = async () =>
      (await server.get(`${SECRETS}/child`)).json.metadata.ownerReferences.map(({ name }: { name: string }) => name)
    await until(async () => (await owners()).length === 1, 'one owner to be left')
    expect(await owners()).toEqual(['second'])
  })

  it('SYS-4 foreground: keeps the owner until blocking dependents are deleted', async () => {
    const reference = { ...(await owner()), blockOwnerDeletion: true }
    await server.post(SECRETS, { metadata: { name: 'child', ownerReferences: [reference], finalizers: ['test/hold'] } })
    await server.delete(`${MAPS}/owner`, { propagationPolicy: 'Foreground' })
    await until(
      async () => (await server.get(`${SECRETS}/child`)).json.metadata.deletionTimestamp,
      'the deletion of the child to begin',
    )
    await quiet()
    expect((await server.get(`${MAPS}/owner`)).json.metadata.finalizers).toEqual(['foregroundDeletion'])
    await server.patch(`${SECRETS}/child`, { metadata: { finalizers: null } }, 'merge')
    await until(isGone(`${MAPS}/owner`), 'the owner to be deleted')
  })

  it('foreground does not wait for dependents that do not block', async () => {
    await server.post(SECRETS, {
      metadata: { name: 'child', ownerReferences: [await owner()], finalizers: ['test/hold'] },
    })
    await server.delete(`${MAPS}/owner`, { propagationPolicy: 'Foreground' })
    await until(isGone(`${MAPS}/owner`), 'the owner to be deleted')
  })

  it('foreground: deletes cycles of one, two or three owners', async () => {
    const own = (name: string, uid: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name,
      uid,
      blockOwnerDeletion: true,
    })
    const rings = [['self'], ['a', 'b'], ['x', 'y', 'z']]
    for (const ring of rings) {
      const uids = new Map<string, string>()
      for (const name of ring) uids.set(name, (await owner(name)).uid)
      for (const [index, name] of ring.entries()) {
        const next = ring[(index + 1) % ring.length]!
        await server.patch(`${MAPS}/${name}`, { metadata: { ownerReferences: [own(next, uids.get(next)!)] } }, 'merge')
      }
      await quiet()
      await server.delete(`${MAPS}/${ring[0]}`, { propagationPolicy: 'Foreground' })
      for (const name of ring) await until(isGone(`${MAPS}/${name}`), `${name} of the cycle ${ring} to be deleted`)
    }
  })

  it('SYS-4 orphan: keeps dependents and removes their owner', async () => {
    await dependent('child', await owner())
    await quiet()
    await server.delete(`${MAPS}/owner`, { propagationPolicy: 'Orphan' })
    await until(isGone(`${MAPS}/owner`), 'the owner to be deleted')
    await quiet()
    const { status, json } = await server.get(`${SECRETS}/child`)
    expect([status, json.metadata.ownerReferences]).toEqual([200, undefined])
  })

  it('SYS-4 keeps dependents of an owner whose kind is not served', async () => {
    await dependent('child', { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u-1' })
    await dependent('other', { apiVersion: 'example.com/v1', kind: 'Widget', name: 'w', uid: 'u-2' })
    await quiet()
    expect((await server.get(`${SECRETS}/child`)).status).toBe(200)
    expect((await server.get(`${SECRETS}/other`)).status).toBe(200)
  })

  it('deletes an object whose owner has the same name but another uid', async () => {
    const reference = await owner()
    await dependent('child', { ...reference, uid: 'another-uid' })
    await until(isGone(`${SECRETS}/child`), 'the child to be deleted')
    expect((await server.get(`${MAPS}/owner`)).status).toBe(200)
  })

  it('keeps a cluster-scoped object with a namespaced owner', async () => {
    const reference = await owner()
    await server.post('/api/v1/nodes', { metadata: { name: 'n1', ownerReferences: [reference] } })
    await quiet()
    expect((await server.get('/api/v1/nodes/n1')).status).toBe(200)
  })
})
