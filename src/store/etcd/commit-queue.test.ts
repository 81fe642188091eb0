import { describe, expect, it } from 'vitest'
import { type ManualClock, manualClock } from '../../base/manual-clock.ts'
import { StoreUnavailableError, WriteRefusedError } from '../store.ts'
import { type Commit, CommitQueue, MEMBERS_MAX, type Member } from './commit-queue.ts'

const keysOf = (group: readonly Member[]) => group.map(({ reads }) => [...reads.keys()].join('+')).join(' ')
const member = (keys: string, valueBytes = 1): Member => ({
  reads: new Map(keys.split('+').map((key) => [key, 0])),
  writes: keys.split('+').map((put) => ({ put, value: Buffer.alloc(valueBytes) })),
})
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A queue whose calls end when they are told to. */
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
          else resolve(group.map((_, at): Commit => ({ isDone: true, revision: at })))
          return turn()
        }
        calls.push({ keys: keysOf(group), end })
      }),
  })
  const commit = (keys: string, valueBytes?: number): Promise<Commit | Error> =>
    queue.commit(member(keys, valueBytes)).catch((error) => error)
  /** Two calls that keep the others waiting. */
  const keepBusy = async () => {
    for (const keys of ['busy-1', 'busy-2']) {
      void commit(keys)
      await turn()
    }
  }
  return { calls, clock, commit, keepBusy, sent: () => calls.map(({ keys }) => keys) }
}

describe('the commit queue', () => {
  it('sends a lone transaction at once, and those of the same breath together', async () => {
    const { commit, sent } = setUp()
    void commit('a')
    await Promise.resolve()
    expect(sent()).toEqual(['a'])
    for (const key of ['b', 'c']) void commit(key)
    await Promise.resolve()
    expect(sent()).toEqual(['a', 'b c'])
  })

  it('gathers while two calls are under way, in order, and answers each member', async () => {
    const { calls, commit, keepBusy, sent } = setUp()
    await keepBusy()
    const keys = Array.from({ length: MEMBERS_MAX + 1 }, (_, at) => `k${at}`)
    const commits = keys.map((key) => commit(key))
    await turn()
    expect(sent()).toEqual(['busy-1', 'busy-2'])
    await calls[1]?.end()
    await calls[0]?.end()
    expect(sent().slice(2)).toEqual([keys.slice(0, MEMBERS_MAX).join(' '), keys.at(-1)])
    await calls[2]?.end()
    await calls[3]?.end()
    const places = keys.map((_, at) => at % MEMBERS_MAX)
    expect(await Promise.all(commits)).toEqual(places.map((revision) => ({ isDone: true, revision })))
  })

  it('keeps groups within what etcd takes: operations, with room for what the group itself needs', async () => {
    const { commit, sent } = setUp({ operationsMax: 6 })
    for (const keys of ['a', 'b', 'c', 'd+e+f+g+h', 'i']) void commit(keys)
    await turn()
    expect(sent()).toEqual(['a b c', 'd+e+f+g+h'])
  })

  it('keeps groups within what etcd takes: bytes', async () => {
    const { commit, sent } = setUp()
    for (const [key, bytes] of [
      ['a', 400_000],
      ['b', 400_000],
      ['c', 9_000_000],
    ] as const)
      void commit(key, bytes)
    await turn()
    expect(sent()).toEqual(['a b', 'c'])
  })

  it('sends a group that was refused one by one, so that only those at fault fail', async () => {
    const { calls, commit, sent } = setUp()
    const commits = ['a', 'b', 'c'].map((key) => commit(key))
    await turn()
    await calls[0]?.end(new WriteRefusedError('too large'))
    expect(sent()).toEqual(['a b c', 'a', 'b', 'c'])
    await calls[1]?.end()
    await calls[2]?.end(new WriteRefusedError('b is too large'))
    await calls[3]?.end()
    const done = { isDone: true, revision: 0 }
    expect(await Promise.all(commits)).toEqual([done, new WriteRefusedError('b is too large'), done])
    expect(sent()).toHaveLength(4)
  })

  it('tells every member when nobody knows what became of the group, and sends nothing twice', async () => {
    const { calls, commit, sent } = setUp()
    const commits = ['a', 'b'].map((key) => commit(key))
    await turn()
    const lost = new StoreUnavailableError('no answer', { mayBeWritten: true })
    await calls[0]?.end(lost)
    expect(await Promise.all(commits)).toEqual([lost, lost])
    expect(sent()).toEqual(['a b'])
  })

  it('refuses, unsent, who has waited too long', async () => {
    const { calls, clock, commit, keepBusy, sent } = setUp()
    await keepBusy()
    const late = commit('late')
    await clock.advance(1_000)
    void commit('fresh')
    await clock.advance(1)
    await calls[0]?.end()
    expect(await late).toMatchObject({ name: 'StoreUnavailableError', mayBeWritten: false })
    expect(sent().slice(2)).toEqual(['fresh'])
  })
})
