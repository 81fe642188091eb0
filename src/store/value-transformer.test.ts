import { expect, it } from 'vitest'
import type { Entry } from './store.ts'
import { decodeEntries, entryOfStored, UndecryptableError, type ValueTransformer } from './value-transformer.ts'

/** Creates a transformer that does not change values, and counts its decode calls in each turn of the event loop. */
function createCountingTransformer() {
  const counts = [0]
  const transformer: ValueTransformer = {
    encode: (_, value) => value,
    isTransformed: () => true,
    decode(key, storedBytes) {
      counts[counts.length - 1]!++
      if (key === 'broken') throw new UndecryptableError(key, 'no key')
      return storedBytes
    },
    isStale: () => false,
  }
  const clock = { nextTurn: async () => void counts.push(0) }
  const entryOf = (key: string, bytes: number): Entry =>
    entryOfStored({ key, storedBytes: Buffer.alloc(bytes), modRevision: 1, createRevision: 1 }, transformer)
  return { counts, clock, entryOf }
}

it('SYS-19 decodeEntries decodes the values of a long list in slices, one per turn of the event loop', async () => {
  const { counts, clock, entryOf } = createCountingTransformer()
  const entries = Array.from({ length: 2_500 }, (_, index) => entryOf(`key-${index}`, 10))
  await decodeEntries(entries, clock)
  expect(counts).toEqual([1_000, 1_000, 500])
  for (const { value } of entries) expect(value).toHaveLength(10)
  expect(counts).toEqual([1_000, 1_000, 500])
})

it('SYS-19 decodeEntries decodes fewer values per turn of the event loop if they are large', async () => {
  const { counts, clock, entryOf } = createCountingTransformer()
  await decodeEntries(
    Array.from({ length: 10 }, (_, index) => entryOf(`key-${index}`, 1024 * 1024)),
    clock,
  )
  expect(counts).toEqual([4, 4, 2])
})

it('SYS-21 decodeEntries does not throw for a value that cannot be decoded, but reading the value does', async () => {
  const { clock, entryOf } = createCountingTransformer()
  const entries = [entryOf('a', 10), entryOf('broken', 10), entryOf('b', 10)]
  await decodeEntries(entries, clock)
  expect(() => entries[1]!.value).toThrow('the stored value of broken cannot be decrypted: no key')
  expect(entries[2]!.value).toHaveLength(10)
})
