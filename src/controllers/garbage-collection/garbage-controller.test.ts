// Ownership end to end: the controller on an in-process client over the real API server.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { inProcessClient, SYSTEM_USER } from '../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createGarbageController } from './garbage-controller.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const SECRETS = '/api/v1/namespaces/default/secrets'

let trial: ServerFixture
let stop: () => Promise<void>
let controller: ReturnType<typeof createGarbageController>

beforeEach(async () => {
  trial = await createServerFixture()
  const abort = new AbortController()
  const client = inProcessClient(trial.server.objects, SYSTEM_USER)
  controller = createGarbageController({
    client,
    kinds: ALL_KINDS,
    clock: trial.clock,
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
  await trial.store.close()
})

const until: ServerFixture['until'] = (condition, what) => trial.until(condition, what)
const isGone = (path: string) => async () => (await trial.get(path)).status === 404
/** Every wake-up that was coming has been worked off. */
const quiet = () =>
  until(() => controller.queue.stats().depth === 0 && controller.queue.standings().length === 0, 'a quiet queue')

async function owner(name = 'owner', finalizers: string[] = []) {
  const { json } = await trial.post(MAPS, { metadata: { name, finalizers } })
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: json.metadata.uid as string }
}
const dependent = (name: string, ...ownerReferences: object[]) =>
  trial.post(SECRETS, { metadata: { name, ownerReferences } })

describe('garbage collection', () => {
  it('SYS-4 deletes what belonged to a deleted owner (background)', async () => {
    await dependent('child', await owner())
    await trial.delete(`${MAPS}/owner`, { propagationPolicy: 'Background' })
    await until(isGone(`${SECRETS}/child`), 'the child to go')
  })

  it('SYS-4 deletes down the whole chain', async () => {
    const { json: child } = await dependent('child', await owner())
    await dependent('grandchild', { apiVersion: 'v1', kind: 'Secret', name: 'child', uid: child.metadata.uid })
    await trial.delete(`${MAPS}/owner`)
    await until(isGone(`${SECRETS}/grandchild`), 'the grandchild to go')
  })

  it('keeps what still has another owner, and takes the gone one off its list', async () => {
    const [first, second] = [await owner('first'), await owner('second')]
    await dependent('child', first, second)
    await trial.delete(`${MAPS}/first`)
    const owners = async () =>
      (await trial.get(`${SECRETS}/child`)).json.metadata.ownerReferences.map((o: any) => o.name)
    await until(async () => (await owners()).length === 1, 'one owner to be left')
    expect(await owners()).toEqual(['second'])
  })

  it('SYS-4 foreground: the owner waits until blocking dependents are gone', async () => {
    const reference = { ...(await owner()), blockOwnerDeletion: true }
    await trial.post(SECRETS, { metadata: { name: 'child', ownerReferences: [reference], finalizers: ['test/hold'] } })
    await trial.delete(`${MAPS}/owner`, { propagationPolicy: 'Foreground' })
    await until(
      async () => (await trial.get(`${SECRETS}/child`)).json.metadata.deletionTimestamp,
      'the child to be sent away',
    )
    await quiet()
    expect((await trial.get(`${MAPS}/owner`)).json.metadata.finalizers).toEqual(['foregroundDeletion'])
    await trial.patch(`${SECRETS}/child`, { metadata: { finalizers: null } }, 'merge')
    await until(isGone(`${MAPS}/owner`), 'the owner to go after its child')
  })

  it('foreground does not wait for dependents that do not block', async () => {
    await trial.post(SECRETS, {
      metadata: { name: 'child', ownerReferences: [await owner()], finalizers: ['test/hold'] },
    })
    await trial.delete(`${MAPS}/owner`, { propagationPolicy: 'Foreground' })
    await until(isGone(`${MAPS}/owner`), 'the owner to go')
  })

  it('foreground: objects that own each other, in a ring of two or three, or themselves, still go', async () => {
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
        await trial.patch(`${MAPS}/${name}`, { metadata: { ownerReferences: [own(next, uids.get(next)!)] } }, 'merge')
      }
      await quiet()
      await trial.delete(`${MAPS}/${ring[0]}`, { propagationPolicy: 'Foreground' })
      for (const name of ring) await until(isGone(`${MAPS}/${name}`), `${name} of the ring ${ring} to go`)
    }
  })

  it('SYS-4 orphan: dependents outlive their owner and belong to nobody', async () => {
    await dependent('child', await owner())
    await quiet()
    await trial.delete(`${MAPS}/owner`, { propagationPolicy: 'Orphan' })
    await until(isGone(`${MAPS}/owner`), 'the owner to go')
    await quiet()
    const { status, json } = await trial.get(`${SECRETS}/child`)
    expect([status, json.metadata.ownerReferences]).toEqual([200, undefined])
  })

  it('SYS-4 leaves alone what belongs to a kind that is not served', async () => {
    await dependent('child', { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'u-1' })
    await dependent('other', { apiVersion: 'example.com/v1', kind: 'Widget', name: 'w', uid: 'u-2' })
    await quiet()
    expect((await trial.get(`${SECRETS}/child`)).status).toBe(200)
    expect((await trial.get(`${SECRETS}/other`)).status).toBe(200)
  })

  it('deletes what names an owner of the same name but another uid', async () => {
    const reference = await owner()
    await dependent('child', { ...reference, uid: 'someone-else' })
    await until(isGone(`${SECRETS}/child`), 'the child of a stranger to go')
    expect((await trial.get(`${MAPS}/owner`)).status).toBe(200)
  })

  it('never deletes an owner of a cluster-scoped object for lack of a namespace', async () => {
    const reference = await owner()
    await trial.post('/api/v1/nodes', { metadata: { name: 'n1', ownerReferences: [reference] } })
    await quiet()
    expect((await trial.get('/api/v1/nodes/n1')).status).toBe(200)
  })
})
