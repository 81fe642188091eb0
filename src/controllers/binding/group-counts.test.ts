import { describe, expect, it } from 'vitest'
import { GroupCounts } from './group-counts.ts'

interface Item {
  readonly color: string
  readonly size?: string
}

function createCounts() {
  let calls = 0
  const counts = new GroupCounts(({ color, size = '' }: Item) => {
    calls++
    return { color, size }
  })
  const read = () =>
    Object.fromEntries([...counts.groups()].map(({ group, count }) => [group.color + group.size, count]))
  return { counts, read, calls: () => calls }
}

describe('GroupCounts', () => {
  it('counts added, moved and deleted objects, and removes empty groups', () => {
    const { counts, read } = createCounts()
    counts.added({ color: 'red' })
    counts.added({ color: 'red' })
    counts.added({ color: 'blue', size: 'L' })
    expect(read()).toEqual({ red: 2, blueL: 1 })
    counts.updated({ color: 'blue', size: 'L' }, { color: 'red' })
    expect(read()).toEqual({ red: 1, blueL: 2 })
    counts.deleted({ color: 'red' }, { color: 'red' })
    expect(read()).toEqual({ blueL: 2 })
  })

  it('removes an object that was changed and deleted at once from the group in which it was counted', () => {
    const { counts, read } = createCounts()
    counts.added({ color: 'red' })
    counts.deleted({ color: 'blue' }, { color: 'red' })
    expect(read()).toEqual({})
  })

  it('keeps groups apart whose values are equal when joined', () => {
    const { counts } = createCounts()
    counts.added({ color: 'ab', size: 'c' })
    counts.added({ color: 'a', size: 'bc' })
    expect([...counts.groups()].map(({ count }) => count)).toEqual([1, 1])
  })

  it('reads no objects when the counts are read', () => {
    const { counts, read, calls } = createCounts()
    for (let number = 0; number < 1_000; number++) counts.added({ color: 'red' })
    const before = calls()
    expect(read()).toEqual({ red: 1_000 })
    expect(calls()).toBe(before)
  })
})
