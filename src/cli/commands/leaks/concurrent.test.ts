// Runs provisioning and deletion concurrently with `stowage leaks --delete --yes`, with random delays before and after every
// request and call, and without a grace period. Only the planted orphans may be deleted.

import { setMaxListeners } from 'node:events'
import type { Message } from '@bufbuild/protobuf'
import { afterEach, describe, expect, it } from 'vitest'
import { seededRandom } from '../../../../test/helpers/random.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { createServerFixture, type ServerFixture } from '../../../apiserver/server.fixture.ts'
import { silentLog } from '../../../base/log.ts'
import type { Client } from '../../../client/index.ts'
import { asStock } from '../../../client/stock-server.fixture.ts'
import { createBindingControllers } from '../../../controllers/binding/index.ts'
import { createProtectionControllers } from '../../../controllers/protection/index.ts'
import { createCsiProvisioner } from '../../../controllers/provisioning/csi/index.ts'
import { createProvisioningControllers } from '../../../controllers/provisioning/index.ts'
import { createFakeDriver, type FakeDriver, fakeSettings } from '../../../csi/fake/index.ts'
import { readDriverFacts, serializeCalls } from '../../../csi/index.ts'
import { intentLease } from '../../../processes/lease-names.ts'
import { createCacheSet } from '../../../runtime/index.ts'
import { changeLeaks, selectCandidates } from './change.ts'
import { findLeaks } from './find-leaks.ts'
import { identifyProcess } from './inventory.ts'
import { connectFake, DRIVER, GIB } from './leaks.fixture.ts'

const CLAIMS = 30
const ORPHANS = 4
const NO_GRACE = { gracePeriodMs: 0, namedHandles: new Set<string>() }
const TURNS_MAX = 20_000

describe('stowage leaks --delete while volumes are created and deleted', () => {
  let server: ServerFixture
  const aborts: AbortController[] = []
  const runs: Promise<unknown>[] = []
  afterEach(async () => {
    for (const abort of aborts.splice(0)) abort.abort()
    let isEnded = false
    const ended = Promise.allSettled(runs.splice(0)).then(() => {
      isEnded = true
    })
    while (!isEnded) await turn()
    await ended
    await server.store.close()
  })

  async function turn(): Promise<void> {
    await server.clock.advance(10)
    await new Promise((resolve) => setImmediate(resolve))
  }

  async function waitFor<T>(work: Promise<T>): Promise<T> {
    let isSettled = false
    const settled = work.finally(() => {
      isSettled = true
    })
    settled.catch(() => {})
    for (let turns = 0; !isSettled; turns++) {
      if (turns > TURNS_MAX) throw new Error('the work does not end')
      await turn()
    }
    return settled
  }

  /** Runs binder, protection and provisioner, as processes with delays. */
  async function startControllers(client: Client, fake: FakeDriver, delay: () => Promise<void>, random: () => number) {
    const abort = new AbortController()
    setMaxListeners(0, abort.signal)
    aborts.push(abort)
    const { clock } = server
    const driver = serializeCalls(connectFake(fake, delay))
    const facts = await waitFor(readDriverFacts(driver))
    const caches = createCacheSet({ client, clock, random })
    const deps = { client, caches, clock, random, log: silentLog }
    const options = { bindsOnSave: true, intentLease: { namespace: 'kube-system', name: intentLease(DRIVER) } }
    const controllers = [
      createBindingControllers({ ...deps, inProcessProvisioners: [] }),
      createProtectionControllers(deps),
      createProvisioningControllers({
        ...deps,
        provisioner: createCsiProvisioner({ ...deps, driver, facts }),
        options,
      }),
    ]
    const run = Promise.all(controllers.map((controller) => controller.run(abort.signal))).finally(() => caches.stop())
    runs.push(run)
    return { stop: () => abort.abort() }
  }

  it.each([
    ...[1, 2, 3].map((seed) => ({ seed, isStock: false, name: 'a Stowage server' })),
    ...[4, 5, 6].map((seed) => ({ seed, isStock: true, name: 'a stock API server' })),
  ])('PLUS-8 deletes all orphans and no other volume on $name (seed $seed)', async ({ seed, isStock }) => {
    server = await createServerFixture()
    const { clock } = server
    const random = seededRandom(seed)
    // The provisioners' requests are slow, so that all checks of a deletion can run between any two of them.
    const delay = () => clock.sleep(Math.floor(random() * 1_500))
    const shortDelay = () => clock.sleep(Math.floor(random() * 20))
    const admin = server.client()
    const stock = (client: Client) => (isStock ? asStock(client, { random }) : client)
    const slow = stock(withDelays(admin, delay))
    const fast = stock(withDelays(admin, shortDelay))
    const fake = createFakeDriver({ clock, settings: fakeSettings() })
    await admin.create(storageClassKind, { metadata: { name: 'fast' }, provisioner: DRIVER })
    const orphans = new Set<string>()
    for (let index = 0; index < ORPHANS; index++) orphans.add(await createOrphan(fake, `orphan-${index}`))

    const deletedByLeaks: string[] = []
    const abort = new AbortController()
    setMaxListeners(0, abort.signal)
    aborts.push(abort)
    const leaksDriver = recordDeletions(connectFake(fake, shortDelay), deletedByLeaks)
    const process = await waitFor(
      identifyProcess({ address: '/csi.sock', driver: leaksDriver }, { timeoutMs: 60_000, signal: abort.signal }),
    )
    const deps = { client: fast, processes: [process], clock, signal: abort.signal }
    const deleteLeaks = async (): Promise<void> => {
      const request = { ...NO_GRACE, action: 'delete' as const }
      await changeLeaks(selectCandidates(await findLeaks(deps, NO_GRACE), request), request, deps)
    }
    let isBusy = true
    const leaksRun = (async () => {
      for (let isLast = false; !isLast; ) {
        isLast = !isBusy
        await deleteLeaks()
      }
    })()

    let controllers = await startControllers(slow, fake, delay, random)
    const ref = (index: number) => ({ namespace: 'default', name: `claim-${index}` })
    const users = Array.from({ length: CLAIMS }, async (_, index) => {
      await clock.sleep(random() * 8_000)
      await admin.create(persistentVolumeClaimKind, {
        metadata: ref(index),
        spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } },
      })
      if (index % 3 === 0) return // stays
      await clock.sleep(random() * 6_000)
      await admin.delete(persistentVolumeClaimKind, ref(index))
    })
    const restarts = (async () => {
      for (let count = 0; count < 3; count++) {
        await clock.sleep(2_000 + random() * 2_000)
        controllers.stop()
        controllers = await startControllers(slow, fake, delay, random)
      }
    })()
    await waitFor(Promise.all([...users, restarts]))
    const isSettled = async () => {
      const claims = (await admin.list(persistentVolumeClaimKind)).items
      const volumes = (await admin.list(persistentVolumeKind)).items
      const bound = claims.filter(({ status }) => status?.phase === 'Bound')
      return claims.length === CLAIMS / 3 && bound.length === claims.length && volumes.length === claims.length
    }
    for (let turns = 0; !(await isSettled()); turns++) {
      if (turns > TURNS_MAX) throw new Error('the claims are not bound')
      await turn()
    }
    isBusy = false
    await waitFor(leaksRun)

    expect(deletedByLeaks.filter((handle) => !orphans.has(handle))).toEqual([])
    expect([...deletedByLeaks].sort()).toEqual([...orphans].sort())
    const handles = (await admin.list(persistentVolumeKind)).items.map(({ spec }) => spec?.csi?.volumeHandle)
    expect(Object.keys(fake.state.volumes).sort()).toEqual(handles.sort())
  })
})

async function createOrphan(fake: FakeDriver, name: string): Promise<string> {
  const capability = { accessMode: { mode: 1 }, accessType: { case: 'mount', value: {} } }
  const request = { name, volumeCapabilities: [capability], capacityRange: { requiredBytes: BigInt(GIB) } }
  const { volume } = await connectFake(fake).controller.createVolume(request as never)
  return volume!.volumeId
}

function recordDeletions(driver: ReturnType<typeof connectFake>, deleted: string[]): typeof driver {
  const { deleteVolume } = driver.controller
  return {
    ...driver,
    controller: {
      ...driver.controller,
      async deleteVolume(request: Message & { volumeId: string }, options: never) {
        const response = await deleteVolume(request as never, options)
        deleted.push(request.volumeId)
        return response
      },
    } as typeof driver.controller,
  }
}

/** Delays every request before it takes effect, and its response. */
function withDelays(client: Client, delay: () => Promise<void>): Client {
  const delayed =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await delay()
      const result = await call(...args)
      await delay()
      return result
    }
  return {
    ...client,
    get: delayed(client.get) as Client['get'],
    list: delayed(client.list) as Client['list'],
    create: delayed(client.create) as Client['create'],
    update: delayed(client.update) as Client['update'],
    patch: delayed(client.patch) as Client['patch'],
    delete: delayed(client.delete) as Client['delete'],
    commit: delayed(client.commit) as Client['commit'],
  }
}
