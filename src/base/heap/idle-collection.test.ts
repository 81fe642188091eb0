import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../manual-clock.ts'
import { HEAP_GROWTH_FLAG } from './growth.ts'
import {
  busyShareOf,
  CODE_REMOVAL_FLAGS,
  COMPACTION_FLAG,
  type Collection,
  collectGarbageWhenIdle,
  releaseSmallHeap,
} from './idle-collection.ts'

it.each([HEAP_GROWTH_FLAG, COMPACTION_FLAG, ...CODE_REMOVAL_FLAGS])(
  'the flag %s exists in this release of Node.js',
  (flag) => {
    expect(execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })).toContain(`${flag} `)
  },
)

describe('collectGarbageWhenIdle', () => {
  it('collects after each busy period, but never while the process is busy', async () => {
    const clock = manualClock()
    const shares = [0.01, 0.5, 0.08, 0.02, 0.01, 0.9, 0.04]
    const collections: number[] = []
    let checks = 0
    collectGarbageWhenIdle({
      clock,
      utilization: () => shares[checks++]!,
      collect: () => void collections.push(checks),
      trim,
    })
    for (const _ of shares) await clock.advance(30_000)
    expect(checks).toBe(shares.length)
    expect(collections).toEqual([4, 7])
  })

  it('compacts after a busy period and releases memory six minutes later', async () => {
    const { collections, advance } = startCollection({ shares: [0.5], usedBytes: () => 40 })
    await advance(2)
    expect(collections).toEqual(['compact'])
    await advance(11)
    expect(collections).toEqual(['compact'])
    await advance(100)
    expect(collections).toEqual(['compact', 'release'])
  })

  it('does not compact a heap above 1 GiB, which would stop the process for seconds', async () => {
    let used = 1024 ** 3 + 1
    const { collections, advance } = startCollection({ shares: [0.5], usedBytes: () => used })
    await advance(14)
    expect(collections).toEqual([])
    used = 1024 ** 3
    await advance(10)
    expect(collections).toEqual([])
  })

  it('releases memory again if the heap of an idle process has grown', async () => {
    let used = 40
    const { collections, advance } = startCollection({ shares: [0.5], usedBytes: () => used })
    await advance(14)
    expect(collections).toEqual(['compact', 'release'])
    used = 45
    await advance(10)
    expect(collections).toHaveLength(2)
    used = 47
    await advance(10)
    expect(collections).toEqual(['compact', 'release', 'release'])
  })

  it('trims at each check until the release and once after it, when V8 has freed the buffers of collected objects', async () => {
    let used = 40
    const { trims, advance } = startCollection({ shares: [0.5], usedBytes: () => used })
    await advance(1)
    expect(trims()).toBe(0)
    await advance(14)
    expect(trims()).toBe(14)
    await advance(10)
    expect(trims()).toBe(14)
    used = 50
    await advance(10)
    expect(trims()).toBe(16)
  })

  it('starts again with the next busy period', async () => {
    const { collections, advance } = startCollection({ shares: [0.5, ...Array(20).fill(0), 0.5], usedBytes: () => 40 })
    await advance(22)
    expect(collections).toEqual(['compact', 'release'])
    await advance(20)
    expect(collections).toEqual(['compact', 'release', 'compact', 'release'])
  })

  it('releases memory on a machine with too few processors, where the event loop of an idle server seems busy', async () => {
    const collections: Collection[] = []
    const clock = manualClock()
    const shares = [{ eventLoop: 0.9, processor: 0.4 }]
    collectGarbageWhenIdle({
      clock,
      utilization: () => busyShareOf(shares.shift() ?? { eventLoop: 0.5, processor: 0.02 }),
      usedBytes: () => 100,
      collect: (collection) => void collections.push(collection),
      trim,
    })
    for (let check = 0; check < 14; check++) await clock.advance(30_000)
    expect(collections).toEqual(['compact', 'release'])
  })

  it('releases the objects of a busy period', async () => {
    const shares = [1, 0]
    const clock = manualClock()
    let objects: object[] | undefined = Array.from({ length: 500_000 }, (_, index) => ({ index }))
    const released = new WeakRef(objects)
    objects = undefined
    collectGarbageWhenIdle({ clock, utilization: () => shares.shift() ?? 0, trim })
    await clock.advance(60_000)
    await expect.poll(() => released.deref()).toBeUndefined()
  })

  it('releases memory without failing, and functions work afterwards', async () => {
    const shares = [1, ...Array(13).fill(0)]
    const clock = manualClock()
    let objects: object[] | undefined = []
    let readings = 0
    collectGarbageWhenIdle({
      clock,
      utilization: () => shares.shift() ?? 0,
      usedBytes: () => {
        readings++
        return 1
      },
      trim,
    })
    for (let check = 0; check < 13; check++) await clock.advance(30_000)
    const readingsBefore = readings
    objects = Array.from({ length: 500_000 }, (_, index) => ({ index }))
    const released = new WeakRef(objects)
    objects = undefined
    await clock.advance(30_000)
    await expect.poll(() => released.deref()).toBeUndefined()
    await expect.poll(() => readings).toBe(readingsBefore + 2) // before the release and after it
    expect(sumTo(10)).toBe(55)
  })
})

/** The default loads a native library. */
function trim(): void {}

function sumTo(count: number): number {
  let sum = 0
  for (let number = 1; number <= count; number++) sum += number
  return sum
}

/**
 * Starts with these shares, after which the process is idle. Returns the collections, a function that runs checks, and the number of
 * trims.
 */
function startCollection({ shares, usedBytes }: { shares: readonly number[]; usedBytes: () => number }) {
  const clock = manualClock()
  const collections: Collection[] = []
  let checks = 0
  const collect = (collection: Collection) => void collections.push(collection)
  let trims = 0
  const trim = () => void trims++
  collectGarbageWhenIdle({ clock, utilization: () => shares[checks++] ?? 0, usedBytes, collect, trim })
  const advance = async (count: number) => {
    for (let check = 0; check < count; check++) await clock.advance(30_000)
  }
  return { collections, advance, trims: () => trims }
}

describe('releaseSmallHeap', () => {
  it('collects objects that are no longer used, unless the heap is larger than 64 MiB', async () => {
    const unused = new WeakRef({ text: 'unused' })
    await new Promise((resolve) => setImmediate(resolve)) // until then, the new WeakRef keeps its object
    await releaseSmallHeap(65 * 1024 ** 2)
    expect(unused.deref()).toBeDefined()
    await new Promise((resolve) => setImmediate(resolve)) // deref keeps the object until then, too
    await releaseSmallHeap(64 * 1024 ** 2)
    expect(unused.deref()).toBeUndefined()
  })
})
