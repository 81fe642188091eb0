// Stress tests of the design documents, in one process on the manual clock: many claims of one class protected and
// released, and many volumes modified at five per second. src/controllers/modifying/scenarios.test.ts modifies them all
// at once; `npm run bench -- modify` measures a separate process.
import { describe, expect, it } from 'vitest'
import { volumeAttributesClassKind } from '../src/api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../src/api/kinds/claim/claim.ts'
import { inProcessClient, SYSTEM_USER } from '../src/apiserver/index.ts'
import { createServerFixture } from '../src/apiserver/server.fixture.ts'
import { silentLog } from '../src/base/log.ts'
import type { Client } from '../src/client/index.ts'
import { aWorld } from '../src/controllers/modifying/modifying.fixture.ts'
import { createProtectionControllers } from '../src/controllers/protection/index.ts'
import { createCacheSet } from '../src/runtime/index.ts'

const MANY = 500
const PER_SECOND = 5
/** As upstream's graduation tests of external-resizer report. */
const UPSTREAM = '0.33 cores, 43 MB'
const names = Array.from({ length: MANY }, (_, index) => `data-${index}`)

describe('many claims', () => {
  it(`VAC-9 VAC-14 ${MANY} claims protect their class until the last is deleted, without a list request`, async () => {
    const fixture = await createServerFixture()
    const client = inProcessClient(fixture.server.objects, SYSTEM_USER)
    const metadata = { name: 'gold' }
    await client.create(volumeAttributesClassKind, { metadata, driverName: 'd', parameters: { iops: '1' } } as never)
    await Promise.all(names.map((name) => client.create(persistentVolumeClaimKind, goldClaim(name))))
    const calls: string[] = []
    const common = { clock: fixture.clock, random: () => 0.5, log: silentLog }
    const caches = createCacheSet({ ...common, client })
    const abort = new AbortController()
    const running = createProtectionControllers({ ...common, caches, client: counted(client, calls) }).run(abort.signal)
    const isThere = async () => (await client.list(volumeAttributesClassKind)).items.length === 1
    const passes = async () => {
      for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
      await fixture.clock.advance(1_000)
    }
    try {
      await client.delete(volumeAttributesClassKind, metadata)
      await passes()
      expect(await isThere()).toBe(true)
      const release = (name: string) =>
        client.patch(
          persistentVolumeClaimKind,
          { namespace: 'default', name },
          { type: 'merge', body: { metadata: { finalizers: null } } },
        )
      for (const name of names) {
        await client.delete(persistentVolumeClaimKind, { namespace: 'default', name })
        await release(name).catch(() => {}) // the controller may have removed the finalizer already
        if (name === names.at(-2)) {
          await passes()
          expect(await isThere()).toBe(true)
        }
      }
      for (let turn = 0; turn < 50 && (await isThere()); turn++) await passes()
      expect(await isThere()).toBe(false)
      expect(calls.filter((call) => call === 'patch volumeattributesclasses')).toHaveLength(1)
      expect(calls.filter((call) => call.includes('list') && call.includes('persistentvolumeclaims'))).toEqual([])
    } finally {
      abort.abort()
      await running
      await caches.stop()
      await fixture.store.close()
    }
  })

  it(`VAC-14 ${MANY} volumes modified at ${PER_SECOND} per second all complete without an error or a delay`, async () => {
    const world = await aWorld()
    try {
      await world.aClass('silver', { iops: '500' })
      await world.aClass('gold', { iops: '1000' })
      for (const name of names) await world.aClaim(name, { className: 'silver', has: { iops: '500' } })
      world.start()
      await world.settle()
      const startCpu = process.cpuUsage()
      let peakMb = 0
      for (let at = 0; at < MANY; at += PER_SECOND) {
        const now = names.slice(at, at + PER_SECOND)
        await Promise.all(now.map((name) => world.setClass('gold', name)))
        await world.until(() => now.every((name) => world.has(name)?.iops === '1000'), `those of second ${at}`)
        peakMb = Math.max(peakMb, process.memoryUsage.rss() / 1024 ** 2)
        await world.server.clock.advance(1_000)
      }
      const finished = () => world.reasons().filter((one) => one === 'VolumeModifySuccessful').length
      await world.until(() => finished() === MANY, 'all')
      const { user, system } = process.cpuUsage(startCpu)
      const cores = (user + system) / 1e6 / (MANY / PER_SECOND)
      console.log(
        `${MANY} volumes at ${PER_SECOND} a second, with server, store and test: ${cores.toFixed(2)} cores, ` +
          `${peakMb.toFixed(0)} MB; upstream reports ${UPSTREAM} of its resizer alone`,
      )
      expect(world.reasons()).not.toContain('VolumeModifyFailed')
      expect(world.modifyCalls()).toHaveLength(MANY)
      for (const name of names) expect(world.has(name)).toEqual({ iops: '1000' })
      expect(world.fake.record.overlaps).toEqual([])
    } finally {
      await world.close()
    }
  })
})

const goldClaim = (name: string) =>
  ({
    metadata: { namespace: 'default', name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      volumeAttributesClassName: 'gold',
      resources: { requests: { storage: '1Gi' } },
    },
  }) as never

function counted(client: Client, calls: string[]): Client {
  return {
    ...client,
    list: (kind, options) => {
      calls.push(`list ${kind.plural}`)
      return client.list(kind, options)
    },
    patch: (kind, ref, patch, options) => {
      calls.push(`patch ${kind.plural}`)
      return client.patch(kind, ref, patch, options)
    },
  }
}
