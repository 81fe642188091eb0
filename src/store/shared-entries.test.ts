import { afterEach, describe, expect, it, vi } from 'vitest'
import { SharedEntries } from './shared-entries.ts'

afterEach(() => vi.unstubAllGlobals())

const keyOf = (index: number) => `a/${String(index).padStart(4, '0')}`
const entry = (index: number, modRevision = index + 1) => ({
  key: keyOf(index),
  value: Buffer.from('x'),
  modRevision,
  createRevision: 1,
})
const version = (index: number, revision = index + 1) => ({
  key: keyOf(index),
  revision,
  createRevision: 1,
  expiresAtMs: undefined,
  deleted: false,
  checksum: 0,
  valueBytes: 0,
  previous: undefined,
})

describe('shared entries', () => {
  it('SYS-19 returns the entries of another list in use that have not changed', () => {
    const shared = new SharedEntries()
    const entries = Array.from({ length: 200 }, (_, index) => entry(index))
    shared.share('a/', entries)
    const read = shared.reader('a/')
    expect(read(version(0))).toBe(entries[0])
    expect(read(version(7, 900))).toBeUndefined() // changed
    expect(read(version(8))).toBe(entries[8])
    expect(read(version(300))).toBeUndefined() // created later
    expect(shared.reader('b/')(version(0))).toBeUndefined()
  })

  it('SYS-20 removes the prefixes of lists that are no longer in use', () => {
    let isCollected = false
    class CollectedRef<T> {
      readonly #target: T
      constructor(target: T) {
        this.#target = target
      }
      deref(): T | undefined {
        return isCollected ? undefined : this.#target
      }
    }
    vi.stubGlobal('WeakRef', CollectedRef)
    const shared = new SharedEntries()
    const entries = Array.from({ length: 200 }, (_, index) => entry(index))
    for (let index = 0; index < 100; index++) shared.share(`a${index}/`, entries)
    expect(shared.prefixes).toBe(100)
    isCollected = true
    for (let index = 100; index < 1_000; index++) shared.share(`a${index}/`, entries)
    expect(shared.prefixes).toBeLessThan(200)
  })

  it('SYS-19 keeps no lists that are short, and no shorter list in place of a longer one', () => {
    const shared = new SharedEntries()
    const short = [entry(0)]
    shared.share('a/', short)
    expect(shared.reader('a/')(version(0))).toBeUndefined()
    const [long, page] = [200, 100].map((length) => Array.from({ length }, (_, index) => entry(index))) as [
      ReturnType<typeof entry>[],
      ReturnType<typeof entry>[],
    ]
    shared.share('a/', long)
    shared.share('a/', page)
    expect(shared.reader('a/')(version(0))).toBe(long[0])
  })
})
