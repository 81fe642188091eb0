import { describe, expect, it } from 'vitest'
import { KeyLocks } from './key-locks.ts'

describe('KeyLocks', () => {
  it('runs waiters in FIFO order', () => {
    const locks = new KeyLocks()
    const turns: number[] = []
    locks.hold(['a'])
    for (const n of [1, 2, 3]) {
      locks.wait('a', () => {
        turns.push(n)
        locks.hold(['a'])
      })
    }
    for (const expected of [[1], [1, 2], [1, 2, 3]]) {
      locks.release(['a'])
      expect(turns).toEqual(expected)
      expect(locks.isHeld('a')).toBe(true)
    }
    locks.release(['a'])
    expect(locks.isHeld('a')).toBe(false)
  })

  it('runs the next waiter immediately if one does not acquire the lock', () => {
    const locks = new KeyLocks()
    const turns: number[] = []
    locks.hold(['a'])
    for (const n of [1, 2, 3]) locks.wait('a', () => void turns.push(n))
    locks.release(['a'])
    expect(turns).toEqual([1, 2, 3])
    expect(locks.isHeld('a')).toBe(false)
  })

  it('releases all keys before it runs the first waiter', () => {
    const locks = new KeyLocks()
    const seen: boolean[] = []
    locks.hold(['a', 'b'])
    locks.wait('a', () => {
      seen.push(locks.isHeld('b'))
      locks.hold(['a', 'b'])
    })
    locks.wait('b', () => seen.push(true))
    locks.release(['a', 'b'])
    expect(seen).toEqual([false]) // the first waiter has taken b, so the waiter of b still waits
    locks.release(['a', 'b'])
    expect(seen).toEqual([false, true])
  })

  it('runs thousands of waiters of one key', () => {
    const locks = new KeyLocks()
    let turns = 0
    locks.hold(['a'])
    for (let n = 0; n < 5_000; n++) {
      locks.wait('a', () => {
        turns++
        locks.hold(['a'])
      })
    }
    for (let n = 0; n < 5_001; n++) locks.release(['a'])
    expect(turns).toBe(5_000)
    expect(locks.isHeld('a')).toBe(false)
  })
})
