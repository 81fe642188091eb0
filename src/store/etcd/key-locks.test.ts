import { describe, expect, it } from 'vitest'
import { KeyLocks, type LockHolder } from './key-locks.ts'

const EXCLUSIVE: LockHolder = { canContinue: () => false }

describe('KeyLocks', () => {
  it('runs waiters in FIFO order', () => {
    const locks = new KeyLocks<LockHolder>()
    const runs: number[] = []
    locks.hold(['a'], EXCLUSIVE)
    for (const n of [1, 2, 3]) {
      locks.wait('a', () => {
        runs.push(n)
        locks.hold(['a'], EXCLUSIVE)
      })
    }
    for (const expectedRuns of [[1], [1, 2], [1, 2, 3]]) {
      locks.release(['a'])
      expect(runs).toEqual(expectedRuns)
      expect(locks.holderOf('a')).toBe(EXCLUSIVE)
    }
    locks.release(['a'])
    expect(locks.holderOf('a')).toBeUndefined()
  })

  it('runs the next waiter immediately if a waiter does not acquire the lock', () => {
    const locks = new KeyLocks<LockHolder>()
    const runs: number[] = []
    locks.hold(['a'], EXCLUSIVE)
    for (const n of [1, 2, 3]) locks.wait('a', () => void runs.push(n))
    locks.release(['a'])
    expect(runs).toEqual([1, 2, 3])
    expect(locks.holderOf('a')).toBeUndefined()
  })

  it('releases all keys before it runs the first waiter', () => {
    const locks = new KeyLocks<LockHolder>()
    const heldStates: boolean[] = []
    locks.hold(['a', 'b'], EXCLUSIVE)
    locks.wait('a', () => {
      heldStates.push(locks.holderOf('b') !== undefined)
      locks.hold(['a', 'b'], EXCLUSIVE)
    })
    locks.wait('b', () => heldStates.push(true))
    locks.release(['a', 'b'])
    expect(heldStates).toEqual([false]) // the first waiter holds b, so the second one still waits
    locks.release(['a', 'b'])
    expect(heldStates).toEqual([false, true])
  })

  it('runs thousands of waiters for one key', () => {
    const locks = new KeyLocks<LockHolder>()
    let runs = 0
    locks.hold(['a'], EXCLUSIVE)
    for (let n = 0; n < 5_000; n++) {
      locks.wait('a', () => {
        runs++
        locks.hold(['a'], EXCLUSIVE)
      })
    }
    for (let n = 0; n < 5_001; n++) locks.release(['a'])
    expect(runs).toBe(5_000)
    expect(locks.holderOf('a')).toBeUndefined()
  })

  it('runs the waiters that a new holder lets continue, and the others after the next release', () => {
    const locks = new KeyLocks<LockHolder>()
    const runs: string[] = []
    const sharedHolder: LockHolder = { canContinue: () => runs.length < 3 }
    const wait = (name: string) =>
      locks.wait('a', () => {
        runs.push(name)
        if (name === 'exclusive' && runs.length === 2) wait(name)
        else locks.hold(['a'], sharedHolder)
      })
    locks.hold(['a'], EXCLUSIVE)
    for (const name of ['first', 'exclusive', 'second', 'third']) wait(name)
    locks.release(['a'])
    expect(runs).toEqual(['first', 'exclusive', 'second'])
    locks.release(['a'])
    expect(runs.slice(3)).toEqual(['third'])
    locks.release(['a'])
    expect(runs.slice(4)).toEqual(['exclusive'])
  })
})
