import { describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import type { Enforcement } from '../../host/host.ts'
import { volumeIdOf } from '../ids.ts'
import { createLocks } from '../locks.ts'
import type { Records } from '../pool/record-files.ts'
import type { PresenceRecord, VolumeRecord } from '../pool/records.ts'
import { createLimitKeeper } from './limit-keeper.ts'

const ID = volumeIdOf('v')
const VOLUME = { id: ID, limits: { iops: 100 } } as VolumeRecord

function aKeeper() {
  const clock = manualClock()
  const applied: string[] = []
  let found: string[] = []
  let failure: Error | undefined
  const keeper = createLimitKeeper({
    node: {
      async limit({ limits }, cgroups): Promise<Enforcement> {
        if (failure) throw failure
        applied.push(`${limits.iops ?? 'none'} in ${cgroups.join(' ') || 'nothing'}`)
        return cgroups.length > 0
          ? { is: 'enforced', cgroups, escapes: [] }
          : { is: 'not enforced', because: 'no cgroup' }
      },
    },
    volumes: { get: () => VOLUME } as unknown as Records<VolumeRecord>,
    presences: { get: () => undefined } as unknown as Records<PresenceRecord>,
    locks: createLocks(),
    cgroups: { find: async () => found },
    clock,
    log: silentLog,
  })
  return {
    keeper,
    clock,
    applied,
    setFound: (paths: string[]) => {
      found = paths
    },
    setFailure: (error: Error | undefined) => {
      failure = error
    },
  }
}

describe('the limit keeper', () => {
  it('PIO-10 finds a container that starts later, at the next scan, and leaves alone what holds', async () => {
    const { keeper, clock, applied, setFound } = aKeeper()
    expect((await keeper.enforce(VOLUME)).is).toBe('not enforced')
    const stop = new AbortController()
    const running = keeper.run(stop.signal)
    await clock.nextTurn()
    await clock.advance(10_000)
    expect(applied).toEqual(['100 in nothing'])
    setFound(['/pods/a'])
    await clock.advance(2_000)
    expect(applied).toEqual(['100 in nothing', '100 in /pods/a'])
    expect(keeper.enforcement(ID)?.is).toBe('enforced')
    await clock.advance(20_000)
    expect(applied).toHaveLength(2)
    stop.abort()
    await running
  })

  it('PIO-10 a cgroup that is named before it is there is limited when it comes', async () => {
    const { keeper, clock, applied, setFound, setFailure } = aKeeper()
    setFound(['/later'])
    setFailure(new Error('there is no cgroup /later'))
    await keeper.enforce(VOLUME)
    const stop = new AbortController()
    const running = keeper.run(stop.signal)
    await clock.nextTurn()
    await clock.advance(4_000)
    expect(applied).toEqual([])
    setFailure(undefined)
    await clock.advance(2_000)
    expect(applied).toEqual(['100 in /later'])
    expect(keeper.enforcement(ID)?.is).toBe('enforced')
    stop.abort()
    await running
  })

  it('PIO-10 a failure is told as not enforced and does not fail the volume', async () => {
    const { keeper, setFailure } = aKeeper()
    setFailure(new Error('the kernel said no'))
    expect(await keeper.enforce(VOLUME)).toEqual({ is: 'not enforced', because: 'the kernel said no' })
    expect(keeper.enforcement(ID)?.is).toBe('not enforced')
  })

  it('PIO-10 cgroups that someone names are limited at once, until the volume is unstaged', async () => {
    const { keeper, applied } = aKeeper()
    await keeper.enforce(VOLUME)
    await keeper.setWorkloadCgroups(ID, ['/tenant'])
    expect(applied.at(-1)).toBe('100 in /tenant')
    keeper.forget(ID)
    expect(keeper.enforcement(ID)).toBeUndefined()
    await keeper.enforce(VOLUME)
    expect(applied.at(-1)).toBe('100 in nothing')
  })

  it('PIO-10 a volume without limits is not watched', async () => {
    const { keeper } = aKeeper()
    await keeper.enforce({ ...VOLUME, limits: {} })
    expect(keeper.enforcement(ID)).toBeUndefined()
  })
})
