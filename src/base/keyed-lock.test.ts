import { describe, expect, it } from 'vitest'
import { keyedLock } from './keyed-lock.ts'

describe('keyedLock', () => {
  it('SYS-6 runs calls with the same key one at a time, in order, also after a failure', async () => {
    const withLock = keyedLock()
    const seen: string[] = []
    const step = (name: string) => async () => {
      seen.push(`${name} in`)
      await Promise.resolve()
      seen.push(`${name} out`)
      if (name === 'b') throw new Error('b failed')
    }
    const all = await Promise.allSettled(['a', 'b', 'c'].map((name) => withLock('same', step(name))))
    expect(seen).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out'])
    expect(all.map((it) => it.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  it('SYS-6 runs different keys concurrently', async () => {
    const withLock = keyedLock()
    let open = () => {}
    const blocked = withLock('a', () => new Promise<void>((resolve) => (open = resolve)))
    expect(await withLock('b', async () => 'through')).toBe('through')
    open()
    await blocked
  })
})
