// Stress tests in one process with a manual clock: many claims that protect one class, and many volumes that are modified.
import { describe, expect, it } from 'vitest'
import { volumeAttributesClassKind } from '../src/api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../src/api/kinds/claim/claim.ts'
import { inProcessClient, SYSTEM_USER } from '../src/apiserver/index.ts'
import { createServerFixture } from '../src/apiserver/server.fixture.ts'
import { silentLog } from '../src/base/log.ts'
import type { Client } from '../src/client/index.ts'
import { createModifyingFixture } from '../src/controllers/modifying/modifying.fixture.ts'
import { createProtectionControllers } from '../src/controllers/protection/index.ts'
import { createCacheSet } from '../src/runtime/index.ts'

const COUNT = 500
const PER_SECOND = 5
/** Usage that the graduation tests of external-resizer report. */
const UPSTREAM_USAGE = '0.33 cores, 43 MB'
const names = Array.from({ length: COUNT }, (_, index) => `data-${index}`)

describe('attributes classes under load', () => {
  it(`VAC-9 VAC-14 ${COUNT} claims protect their class until the last one is deleted, and the controllers do not list claims`, async () => {
    const fixture = await createServerFixture()
    const client = inProcessClient(fixture.server.objects, SYSTEM_USER)
    const metadata = { name: 'gold' }
    await client.create(volumeAttributesClassKind, { metadata, driverName: 'd', parameters: { iops: '1' } } as never)
    await Promise.all(names.map((name) => client.create(persistentVolumeClaimKind, goldClaim(name))))
    const calls: string[] = []
    const common = { clock: fixture.clock, random: () => 0.5, log: silentLog }
    const caches = createCacheSet({ ...common, client })
    const abort = new AbortController()
    const controllersRun = createProtectionControllers({ ...common, caches, client: recordCalls(client, calls) }).run(
      abort.signal,
    )
    const classExists = async () => (await client.list(volumeAttributesClassKind)).items.length === 1
    const advanceOneSecond = async () => {
      for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
      await fixture.clock.advance(1_000)
    }
    try {
      await client.delete(volumeAttributesClassKind, metadata)
      await advanceOneSecond()
      expect(await classExists()).toBe(true)
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
          await advanceOneSecond()
          expect(await classExists()).toBe(true)
        }
      }
      for (let turn = 0; turn < 50 && (await classExists()); turn++) await advanceOneSecond()
      expect(await classExists()).toBe(false)
      expect(calls.filter((call) => call === 'patch volumeattributesclasses')).toHaveLength(1)
      expect(calls.filter((call) => call.includes('list') && call.includes('persistentvolumeclaims'))).toEqual([])
    } finally {
      abort.abort()
      await controllersRun
      await caches.stop()
      await fixture.store.close()
    }
  })

  it(`VAC-14 ${COUNT} volumes modified at ${PER_SECOND} per second need one call each and do not fail`, async () => {
    const harness = await createModifyingFixture()
    try {
      await harness.createClass('silver', { iops: '500' })
      await harness.createClass('gold', { iops: '1000' })
      for (const name of names) await harness.createClaim(name, { className: 'silver', attributes: { iops: '500' } })
      harness.start()
      await harness.settle()
      const startCpu = process.cpuUsage()
      let peakMb = 0
      for (let start = 0; start < COUNT; start += PER_SECOND) {
        const chunk = names.slice(start, start + PER_SECOND)
        await Promise.all(chunk.map((name) => harness.setClass('gold', name)))
        await harness.waitUntil(
          () => chunk.every((name) => harness.driverAttributes(name)?.iops === '1000'),
          `the claims from ${start} on to be modified`,
        )
        peakMb = Math.max(peakMb, process.memoryUsage.rss() / 1024 ** 2)
        await harness.server.clock.advance(1_000)
      }
      const countFinished = () => harness.eventReasons().filter((reason) => reason === 'VolumeModifySuccessful').length
      await harness.waitUntil(() => countFinished() === COUNT, 'all volumes to be modified')
      const { user, system } = process.cpuUsage(startCpu)
      const cores = (user + system) / 1e6 / (COUNT / PER_SECOND)
      console.log(
        `${COUNT} volumes at ${PER_SECOND} per second, including server, store and test: ${cores.toFixed(2)} cores, ` +
          `${peakMb.toFixed(0)} MB; upstream reports ${UPSTREAM_USAGE} for its resizer alone`,
      )
      expect(harness.eventReasons()).not.toContain('VolumeModifyFailed')
      expect(harness.modifyCalls()).toHaveLength(COUNT)
      for (const name of names) expect(harness.driverAttributes(name)).toEqual({ iops: '1000' })
      expect(harness.fake.record.overlaps).toEqual([])
    } finally {
      await harness.close()
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

function recordCalls(client: Client, calls: string[]): Client {
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
