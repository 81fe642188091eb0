import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { seededRandom } from '../../../test/helpers/random.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { resourceQuotaKind } from '../../api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet, type EventDetails } from '../../runtime/index.ts'
import { AUTO_GROW } from '../../volumes/auto-grow.ts'
import type { UsageByClaim, VolumeUsage } from '../../volumes/volume-usage.ts'
import { createAutoGrowingController } from './auto-growing.ts'

const MIB = 1024 ** 2
const DRIVER = 'disks.example.com'
const REF = { namespace: 'default', name: 'data' }
const POLICY = 'threshold=80%,step=50%,max=250Mi,cooldown=10m'

let server: ServerFixture
let usage: Map<string, VolumeUsage>
let events: EventDetails[]
let stop: () => Promise<void>
beforeEach(async () => {
  server = await createServerFixture()
  usage = new Map()
  events = []
  stop = async () => {}
})
afterEach(async () => {
  await stop()
  await server.store.close()
})

function start(
  readUsage: () => Promise<UsageByClaim> = async () => usage,
  wrapClient: (client: Client) => Client = (client) => client,
  { usesRealRecorder = false } = {},
): void {
  const client = wrapClient(server.clientOf('auto-growing'))
  const { clock } = server
  const caches = createCacheSet({ client, clock, random: () => 0.5 })
  const recorder = {
    record: (_kind: unknown, _object: unknown, event: EventDetails) => void events.push(event),
    run: async () => {},
    stats: () => ({ pending: 0, dropped: 0, sent: 0 }),
  }
  const abort = new AbortController()
  const controller = createAutoGrowingController({
    client,
    caches,
    clock,
    random: () => 0.5,
    log: silentLog,
    ...(usesRealRecorder ? {} : { events: recorder }),
    readUsage,
  })
  const run = controller.run(abort.signal)
  stop = async () => {
    abort.abort()
    await run
    await caches.stop()
  }
}

interface BoundClaimOptions {
  readonly annotations?: Record<string, string>
  readonly classAnnotations?: Record<string, string>
  readonly allowVolumeExpansion?: boolean
}

/** Creates a claim of 100Mi that is bound. */
async function createBoundClaim({
  annotations = { [AUTO_GROW]: POLICY },
  classAnnotations = {},
  allowVolumeExpansion = true,
}: BoundClaimOptions = {}) {
  const admin = server.client()
  await admin.create(storageClassKind, {
    metadata: { name: 'fast', annotations: classAnnotations },
    provisioner: DRIVER,
    allowVolumeExpansion,
  })
  const accessModes = ['ReadWriteOnce' as const]
  const claim = await admin.create(persistentVolumeClaimKind, {
    metadata: { ...REF, annotations },
    spec: { accessModes, storageClassName: 'fast', volumeName: 'pv', resources: { requests: { storage: '100Mi' } } },
  })
  await admin.create(persistentVolumeKind, {
    metadata: { name: 'pv' },
    spec: {
      accessModes,
      storageClassName: 'fast',
      capacity: { storage: '100Mi' },
      claimRef: { ...REF, uid: claim.metadata.uid },
      csi: { driver: DRIVER, volumeHandle: 'v' },
    },
  })
  await setStatus({ phase: 'Bound', capacity: { storage: '100Mi' } })
}

const setStatus = (status: object) =>
  server.client().patch(persistentVolumeClaimKind, REF, { type: 'merge', body: { status } }, { subresource: 'status' })

const requestedStorage = async (): Promise<string | undefined> =>
  (await server.client().get(persistentVolumeClaimKind, REF)).spec?.resources?.requests?.storage

/** Sets the usage that the node reports for a file system of this size. */
const setUsage = (sizeMib: number, share: number) =>
  usage.set('default/data', { usedBytes: sizeMib * share * MIB, freeBytes: sizeMib * (1 - share) * MIB })

/** Advances the clock in steps: the controller checks the claim several times. */
async function advanceTime(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5_000) {
    await server.clock.advance(5_000)
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
  }
}

async function waitForEvent(reason: string): Promise<EventDetails> {
  for (let attempts = 0; attempts < 50; attempts++) {
    const event = events.find((candidate) => candidate.reason === reason)
    if (event) return event
    await advanceTime(5_000)
  }
  throw new Error(`no event ${reason}: ${JSON.stringify(events)}`)
}

describe('createAutoGrowingController', () => {
  it('grows a claim at its threshold, once per cooldown, and not beyond its maximum', async () => {
    await createBoundClaim()
    start()
    setUsage(90, 0.79)
    await advanceTime(60_000)
    expect(await requestedStorage()).toBe('100Mi')
    setUsage(90, 0.8)
    expect(await waitForEvent('AutoGrowing')).toEqual({
      type: 'Normal',
      reason: 'AutoGrowing',
      message: '80% of 100Mi used: growing from 100Mi to 150Mi',
    })
    expect(await requestedStorage()).toBe('150Mi')
    await advanceTime(1_200_000)
    expect(await requestedStorage()).toBe('150Mi') // the expansion is pending
    await setStatus({ capacity: { storage: '150Mi' } })
    await advanceTime(60_000)
    expect(await requestedStorage()).toBe('150Mi') // the node has not measured the larger file system
    setUsage(140, 0.95)
    await advanceTime(60_000)
    expect(await requestedStorage()).toBe('225Mi')
    await setStatus({ capacity: { storage: '225Mi' } })
    setUsage(215, 0.95)
    await advanceTime(500_000)
    expect(await requestedStorage()).toBe('225Mi') // cooldown
    await advanceTime(120_000)
    expect(await requestedStorage()).toBe('250Mi')
    await setStatus({ capacity: { storage: '250Mi' } })
    setUsage(240, 0.99)
    await advanceTime(1_200_000)
    expect(await requestedStorage()).toBe('250Mi')
    expect((await waitForEvent('AutoGrowLimitReached')).message).toBe(
      '99% of 250Mi used, and the claim has its maximum of 250Mi',
    )
    expect(events.filter(({ type }) => type === 'Warning')).toHaveLength(1)
  })

  it('lowers a request that the driver rejected, and tries again after a delay that doubles', async () => {
    await createBoundClaim()
    start()
    setUsage(90, 0.9)
    await waitForEvent('AutoGrowing')
    const reject = async () => {
      await setStatus({ allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' } })
      await advanceTime(30_000)
      expect(await requestedStorage()).toBe('100Mi')
      await setStatus({ allocatedResourceStatuses: null }) // as the expansion controller does
    }
    await reject()
    expect((await waitForEvent('AutoGrowLimitReached')).message).toContain('tried again after 10m')
    await advanceTime(540_000)
    expect(await requestedStorage()).toBe('100Mi')
    await advanceTime(90_000)
    expect(await requestedStorage()).toBe('150Mi')
    await reject()
    await advanceTime(1_140_000)
    expect(await requestedStorage()).toBe('100Mi')
    await advanceTime(90_000)
    expect(await requestedStorage()).toBe('150Mi')
    expect(events.filter(({ type }) => type === 'Warning')).toHaveLength(2)
    await setStatus({ capacity: { storage: '150Mi' } })
    setUsage(140, 0.9)
    await advanceTime(630_000)
    expect(await requestedStorage()).toBe('225Mi') // the rejections are forgotten
    expect(
      (await server.client().get(persistentVolumeClaimKind, REF)).metadata.annotations?.['stowage.dev/auto-grown'],
    ).toMatch(/ 225Mi 250Mi$/)
  })

  it('keeps the cooldown after a restart', async () => {
    await createBoundClaim()
    start()
    setUsage(90, 0.9)
    await waitForEvent('AutoGrowing')
    await setStatus({ capacity: { storage: '150Mi' } })
    await stop()
    setUsage(140, 0.99)
    start()
    await advanceTime(300_000)
    expect(await requestedStorage()).toBe('150Mi')
    await advanceTime(400_000)
    expect(await requestedStorage()).toBe('225Mi')
  })

  it('follows the policy of the class unless the claim has its own', async () => {
    await createBoundClaim({ annotations: {}, classAnnotations: { [AUTO_GROW]: POLICY } })
    start()
    setUsage(90, 0.9)
    await waitForEvent('AutoGrowing')
    await stop()
    const annotations = { [AUTO_GROW]: 'off' }
    await server.client().patch(persistentVolumeClaimKind, REF, { type: 'merge', body: { metadata: { annotations } } })
    await setStatus({ capacity: { storage: '150Mi' } })
    setUsage(140, 0.9)
    start()
    await advanceTime(1_200_000)
    expect(await requestedStorage()).toBe('150Mi')
  })

  it('records one event for an invalid policy, and follows the corrected one', async () => {
    await createBoundClaim({ annotations: { [AUTO_GROW]: 'threshold=80,max=1Gi' } })
    start()
    setUsage(90, 0.9)
    expect((await waitForEvent('InvalidAutoGrow')).message).toContain(
      'threshold "80" is not a percentage from 1% to 99%',
    )
    await advanceTime(120_000)
    expect(events).toHaveLength(1)
    const annotations = { [AUTO_GROW]: 'threshold=80%,max=1Gi' }
    await server.client().patch(persistentVolumeClaimKind, REF, { type: 'merge', body: { metadata: { annotations } } })
    await waitForEvent('AutoGrowing')
    expect(await requestedStorage()).toBe('120Mi')
  })

  it('PLUS-12 does not grow a claim beyond the quota or the free capacity', async () => {
    await createBoundClaim()
    const admin = server.client()
    await admin.create(resourceQuotaKind, {
      metadata: { namespace: 'default', name: 'team' },
      spec: { hard: { 'requests.storage': '120Mi' } },
    })
    start()
    setUsage(90, 0.9)
    expect((await waitForEvent('AutoGrowRejected')).message).toContain('exceeded quota: team')
    expect(await requestedStorage()).toBe('100Mi')
    await admin.delete(resourceQuotaKind, { namespace: 'default', name: 'team' })
    await admin.create(csiDriverKind, { metadata: { name: DRIVER }, spec: { storageCapacity: true } })
    await admin.create(csiStorageCapacityKind, {
      metadata: { namespace: 'default', name: 'c' },
      storageClassName: 'fast',
      nodeTopology: {},
      capacity: '10Mi',
    })
    expect((await waitForEvent('AutoGrowLimitReached')).message).toContain('only 10Mi is free')
    await admin.patch(
      csiStorageCapacityKind,
      { namespace: 'default', name: 'c' },
      { type: 'merge', body: { capacity: '1Gi' } },
    )
    await advanceTime(120_000)
    expect(await requestedStorage()).toBe('150Mi')
  })

  it('records repeated warnings as one event on the claim', async () => {
    await createBoundClaim({ annotations: { [AUTO_GROW]: 'max=100Mi' } })
    start(async () => usage, undefined, { usesRealRecorder: true })
    const readEvents = async () => (await server.client().list(eventKind)).items
    for (const count of [1, 2]) {
      setUsage(90, 0.9)
      for (let attempts = 0; attempts < 100 && ((await readEvents())[0]?.count ?? 0) < count; attempts++)
        await advanceTime(5_000)
      expect(await readEvents()).toMatchObject([
        { reason: 'AutoGrowLimitReached', count, involvedObject: { kind: 'PersistentVolumeClaim', name: 'data' } },
      ])
      setUsage(90, 0.1)
      await advanceTime(120_000)
    }
  })

  it('does not overwrite a size that a user sets at the same time', async () => {
    await createBoundClaim()
    let isFirst = true
    start(async () => {
      const body = { spec: { resources: { requests: { storage: '200Mi' } } } }
      if (isFirst) await server.client().patch(persistentVolumeClaimKind, REF, { type: 'merge', body })
      isFirst = false
      return usage
    })
    setUsage(90, 0.9)
    await advanceTime(300_000)
    expect(await requestedStorage()).toBe('200Mi')
    expect(events).toEqual([])
  })

  it.each([1, 2, 3, 4, 5])(
    'never sets a second target during an expansion, exceeds the maximum, or grows below the threshold (seed %i)',
    async (seed) => {
      await createBoundClaim({ annotations: { [AUTO_GROW]: 'threshold=75%,step=30%,max=500Mi,cooldown=1m' } })
      const random = seededRandom(seed)
      let capacityMib = 100
      let usedMib = 10
      /** The node's last measurement. The actual amounts may have changed since. */
      let measured = { sizeMib: 90, usedMib: 10 }
      const violations: string[] = []
      let growths = 0
      const observe = (client: Client): Client => ({
        ...client,
        async patch(kind, ref, patch, options) {
          const before = await server.client().get(persistentVolumeClaimKind, REF)
          const result = await client.patch(kind, ref, patch, options)
          const to = quantityToBytes(await requestedStorage().then((text) => text ?? '0'))
          growths++
          const capacity = quantityToBytes(before.status?.capacity?.storage ?? '0')
          if (quantityToBytes(before.spec?.resources?.requests?.storage ?? '0') > capacity)
            violations.push('two targets')
          if (to > BigInt(500 * MIB)) violations.push(`target ${to}`)
          if (measured.usedMib / measured.sizeMib < 0.75) violations.push('below the threshold')
          return result
        },
      })
      start(async () => usage, observe)
      for (let step = 0; step < 400; step++) {
        usedMib = Math.min(capacityMib - 10, usedMib + Math.floor(random() * 8))
        if (random() < 0.1) usedMib = Math.floor(usedMib * random()) // files were deleted
        if (random() < 0.3) measured = { sizeMib: capacityMib - 10, usedMib }
        setUsage(measured.sizeMib, measured.usedMib / measured.sizeMib)
        const targetMib = Number(quantityToBytes((await requestedStorage()) ?? '0')) / MIB
        if (targetMib > capacityMib && random() < 0.3) {
          capacityMib = Math.ceil(targetMib / 4) * 4 // the driver rounds up
          await setStatus({ capacity: { storage: `${capacityMib}Mi` } })
        }
        if (random() < 0.03) {
          await stop()
          start(async () => usage, observe)
        }
        await advanceTime(10_000)
      }
      expect(violations).toEqual([])
      expect(growths).toBeGreaterThan(1)
    },
  )
})
