import { describe, expect, it } from 'vitest'
import type { HostFacts } from '../src/host/index.ts'
import { NEEDS, skipReason } from './allowed-skips.ts'

const lacking = { yes: false, because: 'it is not there' } as const
const HAS_NOTHING: HostFacts = {
  isRoot: false,
  capabilities: { sysAdmin: false, sysResource: false },
  canLoop: lacking,
  canMount: lacking,
  filesystems: { xfs: lacking, ext4: lacking },
  tools: {} as HostFacts['tools'],
  canReflink: lacking,
  canGrowExt4Online: lacking,
  limits: { version: 'none', because: 'there is no controller' },
}

describe('skipReason', () => {
  it('SYS-6 skips a test on a developer’s machine and gives the reason', () => {
    expect(skipReason(HAS_NOTHING, ['loop'], false)).toBe('loop devices: it is not there')
  })

  it('SYS-6 skips tests in CI only for features that a kernel may lack', () => {
    const skipped = (facts: HostFacts) =>
      (Object.keys(NEEDS) as (keyof typeof NEEDS)[]).filter((need) => skipReason(facts, [need], true))
    expect(skipped(HAS_NOTHING)).toEqual(['ext4OnlineGrowth'])
    expect(skipped({ ...HAS_NOTHING, limits: { version: 'v1', root: '/' } })).toEqual(['ext4OnlineGrowth', 'limitsV2'])
    expect(skipped({ ...HAS_NOTHING, limits: { version: 'v2', root: '/' } })).toEqual(['ext4OnlineGrowth', 'limitsV1'])
    expect(skipped({ ...HAS_NOTHING, canGrowExt4Online: { yes: true } })).toEqual(['ext4OnlineGrowthRefused'])
  })

  it('SYS-6 gives the first requirement that may be missing as the reason', () => {
    expect(skipReason(HAS_NOTHING, ['loop', 'ext4OnlineGrowth'], true)).toContain('growing a mounted ext4')
  })
})
