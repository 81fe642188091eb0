import { afterEach, describe, expect, it, vi } from 'vitest'
import { SharedEntries } from './shared-entries.ts'

afterEach(() => vi.unstubAllGlobals())

const keyOf = (index: number) => `a/${String(index).padStart(4, '0')}`
const anEntry = (index: number, modRevision = index + 1) => ({
  key: keyOf(index),
  value: Buffer.from('x'),
  modRevision,
  createRevision: 1,
})
const aVersion = (index: number, revision = index + 1) => ({
  key: keyOf(index),
  revision,
  createRevision: 1,
  expiresAtMs: undefined,
  isDeleted: false,
  checksum: 0,
  valueBytes: 0,
  previous: undefined,
})

describe('SharedEntries', () => {
  it('SYS-19 returns the unchanged entries of another list that is in use', () => {
    const sharedEntries = new SharedEntries()
    const entries = Array.from({ length: 200 }, (_, index) => anEntry(index))
    sharedEntries.share('a/', entries)
    const readEntry = sharedEntries.reader('a/')
    expect(readEntry(aVersion(0))).toBe(entries[0])
    expect(readEntry(aVersion(7, 900))).toBeUndefined() // changed
    expect(readEntry(aVersion(8))).toBe(entries[8])
    expect(readEntry(aVersion(300))).toBeUndefined() // created later
    expect(sharedEntries.reader('b/')(aVersion(0))).toBeUndefined()
  })

  it('SYS-19 removes the prefixes of lists that are no longer in use', () => {
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
    const sharedEntries = new SharedEntries()
    const entries = Array.from({ length: 200 }, (_, index) => anEntry(index))
    for (let index = 0; index < 100; index++) sharedEntries.share(`a${index}/`, entries)
    expect(sharedEntries.prefixCount).toBe(100)
    isCollected = true
    for (let index = 100; index < 1_000; index++) sharedEntries.share(`a${index}/`, entries)
    expect(sharedEntries.prefixCount).toBeLessThan(200)
  })

  it('SYS-19 ignores short lists, and does not replace a longer list with a shorter one', () => {
    const sharedEntries = new SharedEntries()
    const shortList = [anEntry(0)]
    sharedEntries.share('a/', shortList)
    expect(sharedEntries.reader('a/')(aVersion(0))).toBeUndefined()
    const [longList, page] = [200, 100].map((length) => Array.from({ length }, (_, index) => anEntry(index))) as [
      ReturnType<typeof anEntry>[],
      ReturnType<typeof anEntry>[],
    ]
    sharedEntries.share('a/', longList)
    sharedEntries.share('a/', page)
    expect(sharedEntries.reader('a/')(aVersion(0))).toBe(longList[0])
  })
})
