// Runs the store contract on the etcd store, and tests damaged values and the decoding of transformed values.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { etcdSkipReason, type RunningEtcd, startEtcd } from '../../../test/helpers/etcd.ts'
import { systemClock } from '../../base/clock.ts'
import { storeContract } from '../store.contract.ts'
import { DenseRevisions, withDenseRevisions } from '../testing/dense-revisions.ts'
import { EtcdClient } from './client.ts'
import { openEtcdStore } from './index.ts'
import { layoutOf } from './layout.ts'

const skipReason = etcdSkipReason()

/** The contract writes large values and large transactions. */
const FLAGS = [`--max-request-bytes=${64 * 1024 * 1024}`, '--max-txn-ops=10000']

describe.skipIf(skipReason)(`etcd store${skipReason ? ` (skipped: ${skipReason})` : ''}`, () => {
  let etcd: RunningEtcd
  let storeCount = 0
  beforeAll(async () => {
    etcd = await startEtcd({ flags: FLAGS })
  })
  afterAll(() => etcd.remove())

  storeContract(
    async () => {
      const prefix = `/store-${storeCount++}`
      const revisions = new DenseRevisions()
      // The manual clock advances much faster than etcd responds, so calls must not time out.
      const limits = { requestTimeoutMs: 1e12, operationsMax: 1_000 }
      return async (options) =>
        withDenseRevisions(await openEtcdStore({ endpoints: etcd.endpoints, prefix, ...limits, ...options }), revisions)
    },
    { runs: 15, isOrdered: false, persistsBriefCompaction: false },
  )

  it('SYS-20 fails the readers of a value that was changed in etcd, names its key, and serves other values', async () => {
    const prefix = `/store-${storeCount++}`
    const damageMessages: string[] = []
    const openStore = () =>
      openEtcdStore({
        endpoints: etcd.endpoints,
        prefix,
        clock: systemClock(),
        onDamage: ({ message }) => damageMessages.push(message),
      })
    const store = await openStore()
    for (const put of ['a', 'b']) await store.transact(() => [{ put, value: Buffer.from('value') }])
    const client = new EtcdClient({ endpoints: etcd.endpoints, clock: systemClock(), requestTimeoutMs: 5_000 })
    const key = layoutOf(prefix).etcdKey('a')
    const value = Buffer.from((await client.range({ key })).kvs[0]!.value)
    value[value.length - 1]! ^= 1
    await client.txn({ success: [{ request: { case: 'requestPut', value: { key, value } } }] })
    const reopenedStore = await openStore()
    for (const reader of [store, reopenedStore]) {
      const entry = await reader.get('a')
      expect(() => entry?.value).toThrow(/the record of a at revision .* is damaged: its checksum does not match/)
      expect(String((await reader.get('b'))?.value)).toBe('value')
      expect([reader.stats().damagedRecords, reader.damagedRecords?.().map((error) => error.key)]).toEqual([1, ['a']])
      await expect(reader.transact((view) => [{ put: 'b', value: view.get('a')!.value }])).rejects.toThrow('is damaged')
    }
    expect(damageMessages).toHaveLength(2)
    await store.transact(() => [{ put: 'a', value: Buffer.from('new') }])
    expect(String((await reopenedStore.get('a'))?.value)).toBe('new')
    expect(reopenedStore.stats().damagedRecords).toBe(0)
    client.close()
    await store.close()
    await reopenedStore.close()
  })

  it('SYS-19 decodes the values of a long list in slices, before it returns them', async () => {
    const decodedPerTurn = [0]
    const clock = systemClock()
    const store = await openEtcdStore({
      endpoints: etcd.endpoints,
      prefix: `/store-${storeCount++}`,
      operationsMax: 1_000,
      clock: {
        ...clock,
        nextTurn: () => {
          decodedPerTurn.push(0)
          return clock.nextTurn()
        },
      },
      transformer: {
        encode: (_, value) => value,
        isTransformed: () => true,
        decode: (_, storedBytes) => {
          decodedPerTurn[decodedPerTurn.length - 1]!++
          return storedBytes
        },
        isStale: () => false,
      },
    })
    const value = Buffer.from('value')
    for (const half of ['a', 'b']) {
      await store.transact(() => Array.from({ length: 750 }, (_, index) => ({ put: `secrets/${half}${index}`, value })))
    }
    const { entries } = await store.list({ prefix: 'secrets/' })
    expect(decodedPerTurn.filter((count) => count > 0)).toEqual([1_000, 500])
    for (const entry of entries) expect(entry.value).toEqual(value)
    expect(decodedPerTurn.filter((count) => count > 0)).toEqual([1_000, 500])
    await store.close()
  })
})
