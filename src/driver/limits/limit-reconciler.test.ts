import { describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import type { Enforcement } from '../../host/host.ts'
import { volumeIdOf } from '../ids.ts'
import { createLocks } from '../locks.ts'
import type { Records } from '../pool/record-files.ts'
import type { MountRecord, VolumeRecord } from '../pool/records.ts'
import { createLimitReconciler } from './limit-reconciler.ts'

const ID = volumeIdOf('v')
const VOLUME = { id: ID, limits: { iops: 100 } } as VolumeRecord

function setUp({ isWatched = false } = {}) {
  const clock = manualClock()
  let notifyCreated = () => {}
  const appliedLimits: string[] = []
  let existingCgroups: string[] = []
  let failure: Error | undefined
  const reconciler = createLimitReconciler({
    node: {
      async limit({ limits }, cgroups): Promise<Enforcement> {
        if (failure) throw failure
        appliedLimits.push(`${limits.iops ?? 'none'} in ${cgroups.join(' ') || 'nothing'}`)
        return cgroups.length > 0
          ? { is: 'enforced', cgroups, caveats: [] }
          : { is: 'not enforced', message: 'no cgroup' }
      },
    },
    volumes: { get: () => VOLUME } as unknown as Records<VolumeRecord>,
    mountRecords: { get: () => undefined } as unknown as Records<MountRecord>,
    locks: createLocks(),
    cgroups: {
      find: async () => existingCgroups,
      ...(isWatched
        ? {
            watch: async (onCreate: () => void) => {
              notifyCreated = onCreate
              return { close() {} }
            },
          }
        : {}),
    },
    clock,
    log: silentLog,
  })
  return {
    reconciler,
    clock,
    appliedLimits,
    setCgroups: (paths: string[]) => {
      existingCgroups = paths
    },
    createCgroups: (paths: string[]) => {
      existingCgroups = paths
      notifyCreated()
    },
    setFailure: (error: Error | undefined) => {
      failure = error
    },
  }
}

describe('createLimitReconciler', () => {
  it('PIO-10 limits a new container at the next scan, and writes its limits only once', async () => {
    const { reconciler, clock, appliedLimits, setCgroups } = setUp()
    expect((await reconciler.enforce(VOLUME)).is).toBe('not enforced')
    const stop = new AbortController()
    const reconcilerRun = reconciler.run(stop.signal)
    await clock.nextTurn()
    await clock.advance(10_000)
    expect(appliedLimits).toEqual(['100 in nothing'])
    setCgroups(['/pods/a'])
    await clock.advance(2_000)
    expect(appliedLimits).toEqual(['100 in nothing', '100 in /pods/a'])
    expect(reconciler.enforcement(ID)?.is).toBe('enforced')
    await clock.advance(20_000)
    expect(appliedLimits).toHaveLength(2)
    stop.abort()
    await reconcilerRun
  })

  it('PIO-10 limits a new cgroup as soon as it is created if the hierarchy is watched, without waiting for a scan', async () => {
    const { reconciler, clock, appliedLimits, createCgroups } = setUp({ isWatched: true })
    await reconciler.enforce(VOLUME)
    const stop = new AbortController()
    const reconcilerRun = reconciler.run(stop.signal)
    await clock.nextTurn()
    const startMs = clock.monotonicMs()
    createCgroups(['/pods/a'])
    for (let turn = 0; turn < 5; turn++) await clock.nextTurn()
    expect(appliedLimits).toEqual(['100 in nothing', '100 in /pods/a'])
    createCgroups(['/pods/a', '/pods/b'])
    for (let turn = 0; turn < 5; turn++) await clock.nextTurn()
    expect(appliedLimits.at(-1)).toBe('100 in /pods/a /pods/b')
    expect(clock.monotonicMs()).toBe(startMs)
    stop.abort()
    await reconcilerRun
  })

  it('PIO-10 limits a cgroup at the next scan after a failure', async () => {
    const { reconciler, clock, appliedLimits, setCgroups, setFailure } = setUp()
    setCgroups(['/later'])
    setFailure(new Error('cgroup /later does not exist'))
    await reconciler.enforce(VOLUME)
    const stop = new AbortController()
    const reconcilerRun = reconciler.run(stop.signal)
    await clock.nextTurn()
    await clock.advance(4_000)
    expect(appliedLimits).toEqual([])
    setFailure(undefined)
    await clock.advance(2_000)
    expect(appliedLimits).toEqual(['100 in /later'])
    expect(reconciler.enforcement(ID)?.is).toBe('enforced')
    stop.abort()
    await reconcilerRun
  })

  it('PIO-10 reports a failure as not enforced', async () => {
    const { reconciler, setFailure } = setUp()
    setFailure(new Error('the kernel rejected it'))
    expect(await reconciler.enforce(VOLUME)).toEqual({ is: 'not enforced', message: 'the kernel rejected it' })
    expect(reconciler.enforcement(ID)?.is).toBe('not enforced')
  })

  it('PIO-10 limits explicitly set cgroups immediately until the volume is removed', async () => {
    const { reconciler, appliedLimits } = setUp()
    await reconciler.enforce(VOLUME)
    await reconciler.setWorkloadCgroups(ID, ['/tenant'])
    expect(appliedLimits.at(-1)).toBe('100 in /tenant')
    reconciler.remove(ID)
    expect(reconciler.enforcement(ID)).toBeUndefined()
    await reconciler.enforce(VOLUME)
    expect(appliedLimits.at(-1)).toBe('100 in nothing')
  })

  it('PIO-10 reports no enforcement for a volume without limits', async () => {
    const { reconciler } = setUp()
    await reconciler.enforce({ ...VOLUME, limits: {} })
    expect(reconciler.enforcement(ID)).toBeUndefined()
  })
})
