import { describe, expect, it } from 'vitest'
import { createWorkloadCgroups, globOf } from './workload-cgroups.ts'

const UID = '0f5f4c1e-6f6c-4a57-9d6a-1f5b6a2f9c11'
const THERE = [
  '/',
  '/kubepods',
  `/kubepods/burstable/pod${UID}`,
  `/kubepods/burstable/pod${UID}/main`,
  '/kubepods/burstable/podother/main',
  `/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice/cri-1.scope`,
]

describe('cgroups of workloads', () => {
  it('PIO-10 are found by pod uid for both cgroup drivers, with containers', async () => {
    const cgroups = createWorkloadCgroups({ patterns: [], list: async () => THERE })
    expect(await cgroups.find([UID])).toEqual([THERE[2], THERE[3], THERE[5]])
  })

  it('PIO-10 are found by pattern; a plain path is used without listing cgroups', async () => {
    const globs = createWorkloadCgroups({ patterns: ['/kubepods/*/pod*/**'], list: async () => THERE })
    expect(await globs.find([])).toEqual([THERE[3], THERE[4]])
    const exact = createWorkloadCgroups({ patterns: ['/tenants/a'], list: () => Promise.reject(new Error('listed')) })
    expect(await exact.find([])).toEqual(['/tenants/a'])
  })

  it('PIO-10 are not found by an invalid uid', async () => {
    const cgroups = createWorkloadCgroups({ patterns: [], list: async () => THERE })
    expect(await cgroups.find(['', '../..', 'other'])).toEqual([])
  })

  it.each([
    ['/a/*', '/a/b', true],
    ['/a/*', '/a/b/c', false],
    ['/a/**', '/a/b/c', true],
    ['a.b/*', '/a.b/c', true],
    ['/a.b/*', '/axb/c', false],
  ])('PIO-10 %s and %s: %s', (pattern, path, matches) => expect(globOf(pattern).test(path)).toBe(matches))
})
