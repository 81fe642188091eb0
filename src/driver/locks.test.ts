import { describe, expect, it } from 'vitest'
import { createLocks } from './locks.ts'

const createBlocker = () => {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  return { released, release }
}

describe('locks', () => {
  it('reject a second operation on a volume until the first has completed', async () => {
    const locks = createLocks()
    const { released, release } = createBlocker()
    const firstRun = locks.run({ exclusive: ['a'] }, () => released)
    await expect(locks.run({ exclusive: ['a'] }, async () => {})).rejects.toMatchObject({ codeName: 'ABORTED' })
    await expect(locks.run({ exclusive: ['b'] }, async () => 'other')).resolves.toBe('other')
    expect(locks.isHeld('a')).toBe(true)
    release()
    await firstRun
    expect(locks.isHeld('a')).toBe(false)
    await expect(locks.run({ exclusive: ['a'] }, async () => 'again')).resolves.toBe('again')
  })

  it('can be shared by several operations, which exclude an exclusive one', async () => {
    const locks = createLocks()
    const [firstBlocker, secondBlocker] = [createBlocker(), createBlocker()]
    const firstRun = locks.run({ exclusive: ['x'], shared: ['source'] }, () => firstBlocker.released)
    const secondRun = locks.run({ exclusive: ['y'], shared: ['source'] }, () => secondBlocker.released)
    firstBlocker.release()
    await firstRun
    await expect(locks.run({ exclusive: ['source'] }, async () => {})).rejects.toMatchObject({ codeName: 'ABORTED' })
    secondBlocker.release()
    await secondRun
    await locks.run({ exclusive: ['source'] }, async () => {})
  })

  it('are released after a failure, and not held by a rejected operation', async () => {
    const locks = createLocks()
    await expect(locks.run({ exclusive: ['a'] }, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    const { released, release } = createBlocker()
    const firstRun = locks.run({ exclusive: ['b'] }, () => released)
    await expect(locks.run({ exclusive: ['a'], shared: ['b'] }, async () => {})).rejects.toMatchObject({
      codeName: 'ABORTED',
    })
    await locks.run({ exclusive: ['a'] }, async () => {})
    release()
    await firstRun
  })
})
