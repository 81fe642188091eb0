import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { forbidden, unavailable } from '../../api/status-error.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { NotLeaderError } from '../../runtime/index.ts'
import { createIntentJournal, INTENTS_ANNOTATION } from './intent-journal.ts'

const LEASE = { namespace: 'kube-system', name: 'stowage-intents-disks' }

let server: ServerFixture
let updates = 0
/** Called before and after each update takes effect. If it throws, the update fails. */
let onUpdate: (when: 'before' | 'after') => void
beforeEach(async () => {
  server = await createServerFixture()
  updates = 0
  onUpdate = () => {}
})
afterEach(() => server.store.close())

function createJournal(identity: string, overrides: Partial<Client> = {}) {
  const base = server.clientOf('provisioner')
  const client: Client = {
    ...base,
    commitsAtomically: async () => false,
    async update(...args) {
      onUpdate('before')
      const updated = await base.update(...args)
      updates++
      onUpdate('after')
      return updated
    },
    ...overrides,
  }
  return createIntentJournal({ client, clock: server.clock, log: silentLog, ref: LEASE, identity })
}

const createClaim = (name: string, annotations: Record<string, string> = {}) =>
  server.client().create(persistentVolumeClaimKind, {
    metadata: { namespace: 'default', name, annotations },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  })

const readLease = () => server.client().get(leaseKind, LEASE)
const recordedUids = async () =>
  Object.keys(JSON.parse((await readLease()).metadata.annotations?.[INTENTS_ANNOTATION] ?? '{}'))

/** Advances the clock until the promise settles. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false
  const result = promise.finally(() => {
    isSettled = true
  })
  result.catch(() => {})
  while (!isSettled) {
    await server.clock.advance(10)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return result
}

describe('createIntentJournal', () => {
  it('PROV-12 records the intents of several claims with one update', async () => {
    const journal = createJournal('first')
    expect(await journal.open()).toEqual([])
    const claims = await Promise.all(['a', 'b', 'c'].map((name) => createClaim(name)))
    expect(await settled(Promise.all(claims.map(journal.add)))).toEqual([true, true, true])
    expect(updates).toBe(1)
    expect(await recordedUids()).toEqual(claims.map(({ metadata }) => metadata.uid))
    expect(claims.every(({ metadata }) => journal.has(metadata.uid))).toBe(true)
  })

  it('PROV-12 records the intents of many claims without waiting for more', async () => {
    const journal = createJournal('first')
    await journal.open()
    await settled(journal.add(await createClaim('first')))
    const claims = await Promise.all(Array.from({ length: 24 }, (_, index) => createClaim(`claim-${index}`)))
    const additions = Promise.all(claims.map(journal.add))
    await server.clock.advance(0)
    expect(await additions).not.toContain(false)
    expect(updates).toBe(2)
  })

  it('PROV-12 removes intents with the update that adds the next one', async () => {
    const journal = createJournal('first')
    await journal.open()
    const [a, b] = [await createClaim('a'), await createClaim('b')]
    await settled(journal.add(a))
    journal.remove(a.metadata.uid)
    expect(journal.has(a.metadata.uid)).toBe(false)
    expect(await recordedUids()).toEqual([a.metadata.uid])
    await settled(journal.add(b))
    expect(await recordedUids()).toEqual([b.metadata.uid])
    expect(updates).toBe(2)
  })

  it('PROV-12 removes an intent before whenRemoved resolves, and on close', async () => {
    const journal = createJournal('first')
    await journal.open()
    const [a, b] = [await createClaim('a'), await createClaim('b')]
    await settled(Promise.all([journal.add(a), journal.add(b)]))
    await journal.whenRemoved(a.metadata.uid) // resolves immediately, because the intent is not about to be removed
    expect(await recordedUids()).toHaveLength(2)
    journal.remove(a.metadata.uid)
    await settled(journal.whenRemoved(a.metadata.uid))
    expect(await recordedUids()).toEqual([b.metadata.uid])
    journal.remove(b.metadata.uid)
    await journal.close()
    expect(await recordedUids()).toEqual([])
  })

  it('PROV-12 keeps the intent of a claim that is added while its removal is in progress', async () => {
    const journal = createJournal('first')
    await journal.open()
    const claim = await createClaim('a')
    await settled(journal.add(claim))
    journal.remove(claim.metadata.uid)
    let addition: Promise<boolean> | undefined
    onUpdate = () => {
      addition ??= journal.add(claim)
    }
    await settled(journal.whenRemoved(claim.metadata.uid))
    expect(await settled(addition!)).toBe(true)
    expect(await recordedUids()).toEqual([claim.metadata.uid])
    expect(journal.has(claim.metadata.uid)).toBe(true)
  })

  it('PROV-12 returns its claims to the next process, and then records no further intents', async () => {
    const first = createJournal('first')
    await first.open()
    const claim = await createClaim('a', { 'example.com/secret': 'gold' })
    await settled(first.add(claim))
    const second = createJournal('second')
    const [recordedClaim] = await second.open()
    const { namespace, name, uid } = claim.metadata
    expect(recordedClaim).toMatchObject({
      metadata: { namespace, name, uid, annotations: { 'example.com/secret': 'gold' } },
      spec: claim.spec,
    })
    expect(second.has(uid)).toBe(true)
    expect((await readLease()).spec?.holderIdentity).toBe('second')
    await expect(settled(first.add(await createClaim('b')))).rejects.toThrow(NotLeaderError)
    await expect(first.confirm()).rejects.toThrow(NotLeaderError)
    await second.confirm()
    expect(await recordedUids()).toEqual([uid])
  })

  it.each(['before', 'after'] as const)(
    'PROV-12 fails an addition if the connection breaks %s the update takes effect, and accepts it again',
    async (when) => {
      const journal = createJournal('first')
      await journal.open()
      const [a, b] = [await createClaim('a'), await createClaim('b')]
      onUpdate = (moment) => {
        if (moment === when) throw unavailable('connection reset')
      }
      await expect(settled(journal.add(a))).rejects.toThrow('connection reset')
      expect(journal.has(a.metadata.uid)).toBe(false)
      onUpdate = () => {}
      await settled(journal.add(b))
      expect(await recordedUids()).toEqual([b.metadata.uid]) // the storage was not called for the other claim
      expect(await settled(journal.add(a))).toBe(true)
      expect(await recordedUids()).toEqual([b.metadata.uid, a.metadata.uid])
    },
  )

  it('PROV-12 drops an intent that an operator has removed, and keeps the others', async () => {
    const journal = createJournal('first')
    await journal.open()
    const [a, b, c] = [await createClaim('a'), await createClaim('b'), await createClaim('c')]
    await settled(Promise.all([journal.add(a), journal.add(b)]))
    expect(journal.describe(a.metadata.uid)).toBe(
      `the entry "${a.metadata.uid}" from the annotation "${INTENTS_ANNOTATION}" of the lease "kube-system/stowage-intents-disks"`,
    )
    const entries = JSON.parse((await readLease()).metadata.annotations![INTENTS_ANNOTATION]!)
    delete entries[a.metadata.uid]
    const body = { metadata: { annotations: { [INTENTS_ANNOTATION]: JSON.stringify(entries) } } }
    await server.client().patch(leaseKind, LEASE, { type: 'merge', body })
    await settled(journal.add(c))
    expect(await recordedUids()).toEqual([b.metadata.uid, c.metadata.uid])
    expect(journal.has(a.metadata.uid)).toBe(false)
  })

  it('PROV-12 records all intents again after the Lease was deleted', async () => {
    const journal = createJournal('first')
    await journal.open()
    const [a, b] = [await createClaim('a'), await createClaim('b')]
    await settled(journal.add(a))
    await server.client().delete(leaseKind, LEASE)
    await settled(journal.add(b)).catch(() => settled(journal.add(b)))
    expect(await recordedUids()).toEqual([a.metadata.uid, b.metadata.uid])
  })

  it('PROV-12 adds no claim if it has no space left', async () => {
    const journal = createJournal('first')
    await journal.open()
    const large = await createClaim('large', { 'example.com/text': 'x'.repeat(150_000) })
    const larger = await createClaim('larger', { 'example.com/text': 'x'.repeat(150_000) })
    expect(await settled(Promise.all([journal.add(large), journal.add(larger)]))).toEqual([true, false])
    expect(await recordedUids()).toEqual([large.metadata.uid])
  })

  it('PROV-12 is not used for new intents on a server with atomic commits', async () => {
    const atomic = { commitsAtomically: async () => true }
    const unused = createJournal('first', atomic)
    expect(await unused.open()).toEqual([])
    await expect(readLease()).rejects.toThrow('not found')
    const claim = await createClaim('a')
    expect(await unused.add(claim)).toBe(false)
    const used = createJournal('second')
    await used.open()
    await settled(used.add(claim))
    const next = createJournal('third', atomic)
    expect((await next.open()).map(({ metadata }) => metadata.name)).toEqual(['a'])
    expect(next.has(claim.metadata.uid)).toBe(true)
    next.remove(claim.metadata.uid)
    await next.close()
    expect(await recordedUids()).toEqual([])
  })

  it('PROV-12 is not used if the role denies its Lease', async () => {
    const journal = createJournal('first', {
      get: async () => {
        throw forbidden(leaseKind, LEASE.name, 'user "sidecar" cannot get resource "leases"')
      },
    })
    expect(await journal.open()).toEqual([])
    expect(await journal.add(await createClaim('a'))).toBe(false)
  })

  it('PROV-12 does not open a journal that it cannot read', async () => {
    const annotations = { [INTENTS_ANNOTATION]: '{"uid-a": 1}' }
    await server.client().create(leaseKind, { metadata: { ...LEASE, annotations } })
    await expect(createJournal('first').open()).rejects.toThrow(
      /^Cannot read the intents in the annotation .*: the entry "uid-a" is not a claim with this uid\./,
    )
    expect((await readLease()).metadata.annotations).toEqual(annotations)
  })
})
