import { describe, expect, it } from 'vitest'
import { keyedLock } from './keyed-lock.ts'

describe('keyedLock', () => {
  it('runs calls with the same key one at a time in call order, even after a failure', async () => {
    const withLock = keyedLock()
    const events: string[] = []
    const step = (name: string) => async () => {
      events.push(`${name} in`)
      await Promise.resolve()
      events.push(`${name} out`)
      if (name === 'b') throw new Error('b failed')
    }
    const outcomes = await Promise.allSettled(['a', 'b', 'c'].map((name) => withLock('same', step(name))))
    expect(events).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out'])
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  it('runs different keys concurrently', async () => {
    const withLock = keyedLock()
    let finishA = () => {}
    const callA = withLock('a', () => new Promise<void>((resolve) => (finishA = resolve)))
    expect(await withLock('b', async () => 'b finished')).toBe('b finished')
    finishA()
    await callA
  })
})
