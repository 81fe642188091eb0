// Tests which missing features of a machine skip a test.
import { describe, expect, it } from 'vitest'
import type { HostFacts } from '../src/host/index.ts'
import { NEEDS, skipReason } from './allowed-skips.ts'

const MISSING = { available: false, message: 'not available' } as const
const BARE_MACHINE: HostFacts = {
  isRoot: false,
  capabilities: { sysAdmin: false, sysResource: false },
  canLoop: MISSING,
  canMount: MISSING,
  filesystems: { xfs: MISSING, ext4: MISSING },
  tools: {} as HostFacts['tools'],
  canReflink: MISSING,
  canGrowExt4Online: MISSING,
  limits: { version: 'none', message: 'no io controller' },
}

describe('skipReason', () => {
  it('returns the missing feature as the reason outside CI', () => {
    expect(skipReason(BARE_MACHINE, ['loop'], false)).toBe('loop devices: not available')
  })

  it('skips tests in CI only for optional features', () => {
    const skippedNeeds = (facts: HostFacts) =>
      (Object.keys(NEEDS) as (keyof typeof NEEDS)[]).filter((need) => skipReason(facts, [need], true))
    expect(skippedNeeds(BARE_MACHINE)).toEqual(['ext4OnlineGrowth'])
    expect(skippedNeeds({ ...BARE_MACHINE, limits: { version: 'v1', root: '/' } })).toEqual([
      'ext4OnlineGrowth',
      'limitsV2',
    ])
    expect(skippedNeeds({ ...BARE_MACHINE, limits: { version: 'v2', root: '/' } })).toEqual([
      'ext4OnlineGrowth',
      'limitsV1',
    ])
    expect(skippedNeeds({ ...BARE_MACHINE, canGrowExt4Online: { available: true } })).toEqual([
      'ext4OnlineGrowthRefused',
    ])
  })

  it('returns the first optional feature that is missing as the reason', () => {
    expect(skipReason(BARE_MACHINE, ['loop', 'ext4OnlineGrowth'], true)).toContain('growing a mounted ext4')
  })
})
