import { afterAll, beforeAll, describe } from 'vitest'
import { etcdMissing, type RunningEtcd, startEtcd } from '../../../test/helpers/etcd.ts'
import { storeContract } from '../store.contract.ts'
import { Counts, countedStore } from '../testing/counted.ts'
import { openEtcdStore } from './index.ts'

const missing = etcdMissing()

/** Room for what the contract writes: large values, and many keys at once. */
const FLAGS = [`--max-request-bytes=${64 * 1024 * 1024}`, '--max-txn-ops=10000']

describe.skipIf(missing)(`etcd store${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let etcd: RunningEtcd
  let places = 0
  beforeAll(async () => {
    etcd = await startEtcd({ flags: FLAGS })
  })
  afterAll(() => etcd.remove())

  storeContract(
    async () => {
      const prefix = `/place-${places++}`
      const counts = new Counts()
      // In these tests time flies, while etcd takes its own: no call is ever late.
      const patience = { requestTimeoutMs: 1e12, transactionWritesMax: 1_000 }
      return async (options) =>
        countedStore(await openEtcdStore({ endpoints: etcd.endpoints, prefix, ...patience, ...options }), counts)
    },
    { runs: 15, isOrdered: false, keepsBriefCut: false },
  )
})
