import { describe, expect, it } from 'vitest'
import { type ManualClock, manualClock } from '../../base/manual-clock.ts'
import { StoreUnavailableError, WriteRejectedError } from '../store.ts'
import { CommitQueue, type CommitResult, type ConditionalTransaction, GROUP_TRANSACTIONS_MAX } from './commit-queue.ts'

const keysOf = (group: readonly ConditionalTransaction[]) =>
  group.map(({ reads }) => [...reads.keys()].join('+')).join(' ')
const transactionOf = (keys: string, valueBytes = 1): ConditionalTransaction => ({
  reads: new Map(keys.split('+').map((key) => [key, 0])),
  writes: keys.split('+').map((put) => ({ put, value: Buffer.alloc(valueBytes) })),
})
const nextTick = () => new Promise((resolve) => setImmediate(resolve))

/** Creates a queue whose calls the test completes through `calls`. */
function setUp({ operationsMax = 128 } = {}) {
  const calls: { keys: string; end: (error?: Error) => Promise<unknown> }[] = []
  const clock: ManualClock = manualClock()
  const queue = new CommitQueue({
    clock,
    waitMsMax: 1_000,
    operationsMax,
    send: (group) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error) => {
          if (error) reject(error)
          else resolve(group.map((_, index): CommitResult => ({ isCommitted: true, revision: index })))
          return nextTick()
        }
        calls.push({ keys: keysOf(group), end })
      }),
  })
  const commit = (keys: string, valueBytes?: number): Promise<CommitResult | Error> =>
    queue.commit(transactionOf(keys, valueBytes)).catch((error) => error)
  /** Starts two calls, so that further transactions wait. */
  const keepBusy = async () => {
    for (const keys of ['busy-1', 'busy-2']) {
      void commit(keys)
      await nextTick()
    }
  }
  return { calls, clock, commit, keepBusy, sentKeys: () => calls.map(({ keys }) => keys) }
}

describe('CommitQueue', () => {
  it('sends a transaction immediately, together with the others of the same tick', async () => {
    const { commit, sentKeys } = setUp()
    void commit('a')
    await Promise.resolve()
    expect(sentKeys()).toEqual(['a'])
    for (const key of ['b', 'c']) void commit(key)
    await Promise.resolve()
    expect(sentKeys()).toEqual(['a', 'b c'])
  })

  it('groups transactions in order while two calls are in flight, and resolves each with its result', async () => {
    const { calls, commit, keepBusy, sentKeys } = setUp()
    await keepBusy()
    const keys = Array.from({ length: GROUP_TRANSACTIONS_MAX + 1 }, (_, index) => `k${index}`)
    const commits = keys.map((key) => commit(key))
    await nextTick()
    expect(sentKeys()).toEqual(['busy-1', 'busy-2'])
    await calls[1]?.end()
    await calls[0]?.end()
    expect(sentKeys().slice(2)).toEqual([keys.slice(0, GROUP_TRANSACTIONS_MAX).join(' '), keys.at(-1)])
    await calls[2]?.end()
    await calls[3]?.end()
    const revisions = keys.map((_, index) => index % GROUP_TRANSACTIONS_MAX)
    expect(await Promise.all(commits)).toEqual(revisions.map((revision) => ({ isCommitted: true, revision })))
  })

  it('limits groups to the operations that etcd allows, including those of the group itself', async () => {
    const { commit, sentKeys } = setUp({ operationsMax: 6 })
    for (const keys of ['a', 'b', 'c', 'd+e+f+g+h', 'i']) void commit(keys)
    await nextTick()
    expect(sentKeys()).toEqual(['a b c', 'd+e+f+g+h'])
  })

  it('limits groups to the bytes that etcd allows', async () => {
    const { commit, sentKeys } = setUp()
    for (const [key, bytes] of [
      ['a', 400_000],
      ['b', 400_000],
      ['c', 9_000_000],
    ] as const)
      void commit(key, bytes)
    await nextTick()
    expect(sentKeys()).toEqual(['a b', 'c'])
  })

  it('resends each transaction of a rejected group in its own call, so that only the invalid ones fail', async () => {
    const { calls, commit, sentKeys } = setUp()
    const commits = ['a', 'b', 'c'].map((key) => commit(key))
    await nextTick()
    await calls[0]?.end(new WriteRejectedError('too large'))
    expect(sentKeys()).toEqual(['a b c', 'a', 'b', 'c'])
    await calls[1]?.end()
    await calls[2]?.end(new WriteRejectedError('b is too large'))
    await calls[3]?.end()
    const commitResult = { isCommitted: true, revision: 0 }
    expect(await Promise.all(commits)).toEqual([commitResult, new WriteRejectedError('b is too large'), commitResult])
    expect(sentKeys()).toHaveLength(4)
  })

  it('rejects all transactions of a group whose outcome is unknown', async () => {
    const { calls, commit, sentKeys } = setUp()
    const commits = ['a', 'b'].map((key) => commit(key))
    await nextTick()
    const unknownOutcome = new StoreUnavailableError('no answer', { mayBeWritten: true })
    await calls[0]?.end(unknownOutcome)
    expect(await Promise.all(commits)).toEqual([unknownOutcome, unknownOutcome])
    expect(sentKeys()).toEqual(['a b'])
  })

  it('rejects a transaction that has waited too long without sending it', async () => {
    const { calls, clock, commit, keepBusy, sentKeys } = setUp()
    await keepBusy()
    const lateCommit = commit('late')
    await clock.advance(1_000)
    void commit('fresh')
    await clock.advance(1)
    await calls[0]?.end()
    expect(await lateCommit).toMatchObject({ name: 'StoreUnavailableError', mayBeWritten: false })
    expect(sentKeys().slice(2)).toEqual(['fresh'])
  })
})
