import { expect, it } from 'vitest'
import { VolumeLocks } from './volume-locks.ts'

it('VolumeLocks locks a volume, and returns the waiting keys when the volume is released', () => {
  const locks = new VolumeLocks()
  expect(locks.tryLock('v', 'a')).toBe(true)
  expect([locks.tryLock('v', 'b'), locks.tryLock('v', 'c'), locks.tryLock('w', 'd')]).toEqual([false, false, true])
  expect(locks.release('v')).toEqual(['b', 'c'])
  expect(locks.tryLock('v', 'b')).toBe(true)
  expect(locks.release('v')).toEqual([])
})
