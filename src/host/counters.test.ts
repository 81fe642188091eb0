import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { createCounters, parseDeviceStat } from './counters.ts'

let sysBlock: string

beforeEach(async () => {
  sysBlock = await mkdtemp(join(tmpdir(), 'stowage-counters-'))
  await mkdir(join(sysBlock, 'loop3'))
})
afterEach(() => rm(sysBlock, { recursive: true, force: true }))

const writeKernelCounters = (reads: number, sectorsRead: number, writes: number, sectorsWritten: number) =>
  writeFile(
    join(sysBlock, 'loop3', 'stat'),
    `  ${reads} 0 ${sectorsRead} 5  ${writes} 0 ${sectorsWritten} 9 0 8 9 0 0 0 0 0 0\n`,
  )

describe('parseDeviceStat', () => {
  it('PIO-8 parses kernel counters with sectors of 512 bytes, and throws for other text', () => {
    expect(parseDeviceStat('  2  1  16  4  3  0  24  8  0  12  12\n')).toEqual({
      reads: 2,
      readBytes: 8192,
      writes: 3,
      writtenBytes: 12288,
    })
    expect(() => parseDeviceStat('2 1 x')).toThrow('Cannot parse device counters')
  })
})

describe('createCounters', () => {
  it('PIO-8 starts at zero for a volume with a reused loop number', async () => {
    const counters = createCounters({ clock: manualClock(), sysBlock })
    await writeKernelCounters(1_000, 80_000, 2_000, 160_000)
    await counters.begin('/dev/loop3')
    await writeKernelCounters(1_010, 80_080, 2_001, 160_008)
    expect((await counters.read('/dev/loop3'))?.totals).toEqual({
      reads: 10,
      readBytes: 40_960,
      writes: 1,
      writtenBytes: 4_096,
    })
  })

  it('PIO-8 computes iops and throughput since the last sample', async () => {
    const clock = manualClock()
    const counters = createCounters({ clock, sysBlock })
    await writeKernelCounters(0, 0, 0, 0)
    await counters.begin('/dev/loop3')
    await clock.advance(10_000)
    await writeKernelCounters(1_000, 8_000, 500, 100_000)
    const firstRates = { readIops: 100, readBps: 409_600, writeIops: 50, writeBps: 5_120_000 }
    expect((await counters.read('/dev/loop3'))?.rates).toEqual(firstRates)

    await clock.advance(500)
    await writeKernelCounters(9_000, 72_000, 500, 100_000)
    expect((await counters.read('/dev/loop3'))?.rates, 'too soon for a new sample').toEqual(firstRates)

    await clock.advance(1_500)
    expect((await counters.read('/dev/loop3'))?.rates).toMatchObject({ readIops: 4_000, writeIops: 0 })
  })

  it('PIO-8 starts at zero again if the kernel counters have decreased', async () => {
    const counters = createCounters({ clock: manualClock(), sysBlock })
    await writeKernelCounters(100, 800, 0, 0)
    await counters.begin('/dev/loop3')
    await writeKernelCounters(5, 40, 0, 0)
    expect((await counters.read('/dev/loop3'))?.totals.reads).toBe(0)
  })

  it('PIO-8 returns undefined for a device that does not exist', async () => {
    const counters = createCounters({ clock: manualClock(), sysBlock })
    await counters.begin('/dev/loop9')
    expect(await counters.read('/dev/loop9')).toBeUndefined()
  })
})
