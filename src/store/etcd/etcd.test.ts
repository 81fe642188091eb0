// Runs the store contract on the etcd store.
import { afterAll, beforeAll, describe } from 'vitest'
import { etcdSkipReason, type RunningEtcd, startEtcd } from '../../../test/helpers/etcd.ts'
import { storeContract } from '../store.contract.ts'
import { DenseRevisions, withDenseRevisions } from '../testing/dense-revisions.ts'
import { openEtcdStore } from './index.ts'

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
      const limits = { requestTimeoutMs: 1e12, transactionWritesMax: 1_000 }
      return async (options) =>
        withDenseRevisions(await openEtcdStore({ endpoints: etcd.endpoints, prefix, ...limits, ...options }), revisions)
    },
    { runs: 15, isOrdered: false, persistsBriefCompaction: false },
  )
})
