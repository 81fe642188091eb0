import { describe, expect, it } from 'vitest'
import { KeyLocks } from './key-locks.ts'

describe('KeyLocks', () => {
  it('runs waiters in FIFO order', () => {
    const locks = new KeyLocks()
    const runs: number[] = []
    locks.hold(['a'])
    for (const n of [1, 2, 3]) {
      locks.wait('a', () => {
        runs.push(n)
        locks.hold(['a'])
      })
    }
    for (const expected of [[1], [1, 2], [1, 2, 3]]) {
      locks.release(['a'])
      expect(runs).toEqual(expected)
      expect(locks.isHeld('a')).toBe(true)
    }
    locks.release(['a'])
    expect(locks.isHeld('a')).toBe(false)
  })

  it('runs the next waiter immediately if a waiter does not acquire the lock', () => {
    const locks = new KeyLocks()
    const runs: number[] = []
    locks.hold(['a'])
    for (const n of [1, 2, 3]) locks.wait('a', () => void runs.push(n))
    locks.release(['a'])
    expect(runs).toEqual([1, 2, 3])
    expect(locks.isHeld('a')).toBe(false)
  })

  it('releases all keys before it runs the first waiter', () => {
    const locks = new KeyLocks()
    const heldStates: boolean[] = []
    locks.hold(['a', 'b'])
    locks.wait('a', () => {
      heldStates.push(locks.isHeld('b'))
      locks.hold(['a', 'b'])
    })
    locks.wait('b', () => heldStates.push(true))
    locks.release(['a', 'b'])
    expect(heldStates).toEqual([false]) // the first waiter holds b, so the second one still waits
    locks.release(['a', 'b'])
    expect(heldStates).toEqual([false, true])
  })

  it('runs thousands of waiters of one key', () => {
    const locks = new KeyLocks()
    let runs = 0
    locks.hold(['a'])
    for (let n = 0; n < 5_000; n++) {
      locks.wait('a', () => {
        runs++
        locks.hold(['a'])
      })
    }
    for (let n = 0; n < 5_001; n++) locks.release(['a'])
    expect(runs).toBe(5_000)
    expect(locks.isHeld('a')).toBe(false)
  })
})
