import { describe, expect, it } from 'vitest'
import { createLocks } from './locks.ts'

const createBlocker = () => {
  let release = () => {}
  const blocked = new Promise<void>((resolve) => {
    release = resolve
  })
  return { until: blocked, release }
}

describe('locks', () => {
  it('SYS-6 reject a second operation on a volume until the first has completed', async () => {
    const locks = createLocks()
    const { until: blocked, release } = createBlocker()
    const first = locks.run({ exclusive: ['a'] }, () => blocked)
    await expect(locks.run({ exclusive: ['a'] }, async () => {})).rejects.toMatchObject({ codeName: 'ABORTED' })
    await expect(locks.run({ exclusive: ['b'] }, async () => 'other')).resolves.toBe('other')
    expect(locks.isHeld('a')).toBe(true)
    release()
    await first
    expect(locks.isHeld('a')).toBe(false)
    await expect(locks.run({ exclusive: ['a'] }, async () => 'again')).resolves.toBe('again')
  })

  it('SYS-6 can be shared by several operations, which exclude an exclusive one', async () => {
    const locks = createLocks()
    const [firstBlocker, secondBlocker] = [createBlocker(), createBlocker()]
    const first = locks.run({ exclusive: ['x'], shared: ['source'] }, () => firstBlocker.until)
    const second = locks.run({ exclusive: ['y'], shared: ['source'] }, () => secondBlocker.until)
    firstBlocker.release()
    await first
    await expect(locks.run({ exclusive: ['source'] }, async () => {})).rejects.toMatchObject({ codeName: 'ABORTED' })
    secondBlocker.release()
    await second
    await locks.run({ exclusive: ['source'] }, async () => {})
  })

  it('SYS-6 are released after a failure, and not held by a rejected operation', async () => {
    const locks = createLocks()
    await expect(locks.run({ exclusive: ['a'] }, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    const { until: blocked, release } = createBlocker()
    const first = locks.run({ exclusive: ['b'] }, () => blocked)
    await expect(locks.run({ exclusive: ['a'], shared: ['b'] }, async () => {})).rejects.toMatchObject({
      codeName: 'ABORTED',
    })
    await locks.run({ exclusive: ['a'] }, async () => {})
    release()
    await first
  })
})
