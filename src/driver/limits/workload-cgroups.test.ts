import { describe, expect, it } from 'vitest'
import { createWorkloadCgroups, parseGlob } from './workload-cgroups.ts'

const UID = '0f5f4c1e-6f6c-4a57-9d6a-1f5b6a2f9c11'
const CGROUPS = [
  '/',
  '/kubepods',
  `/kubepods/burstable/pod${UID}`,
  `/kubepods/burstable/pod${UID}/main`,
  '/kubepods/burstable/podother/main',
  `/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice/cri-1.scope`,
]

describe('createWorkloadCgroups', () => {
  it('PIO-10 finds pods and containers by pod UID for both cgroup drivers', async () => {
    const cgroups = createWorkloadCgroups({ patterns: [], list: async () => CGROUPS })
    expect(await cgroups.find([UID])).toEqual([CGROUPS[2], CGROUPS[3], CGROUPS[5]])
  })

  it('PIO-10 finds cgroups by pattern, and uses a plain path without listing cgroups', async () => {
    const globCgroups = createWorkloadCgroups({ patterns: ['/kubepods/*/pod*/**'], list: async () => CGROUPS })
    expect(await globCgroups.find([])).toEqual([CGROUPS[3], CGROUPS[4]])
    const exactCgroups = createWorkloadCgroups({
      patterns: ['/tenants/a'],
      list: () => Promise.reject(new Error('listed')),
    })
    expect(await exactCgroups.find([])).toEqual(['/tenants/a'])
  })

  it('PIO-10 finds no cgroups for an invalid UID', async () => {
    const cgroups = createWorkloadCgroups({ patterns: [], list: async () => CGROUPS })
    expect(await cgroups.find(['', '../..', 'other'])).toEqual([])
  })

  it.each([
    ['/a/*', 'matches', '/a/b'],
    ['/a/*', 'does not match', '/a/b/c'],
    ['/a/**', 'matches', '/a/b/c'],
    ['a.b/*', 'matches', '/a.b/c'],
    ['/a.b/*', 'does not match', '/axb/c'],
  ])('PIO-10 parses the pattern %s, which %s %s', (pattern, outcome, path) =>
    expect(parseGlob(pattern).test(path)).toBe(outcome === 'matches'),
  )
})
