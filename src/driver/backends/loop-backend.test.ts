import { describe, expect, it } from 'vitest'
import type { HostFacts } from '../../host/index.ts'
import { createLoopBackend } from './loop-backend.ts'

const AVAILABLE = { available: true } as const
const MISSING_PROGRAM = { available: false, message: 'The program "mkfs.xfs" is not installed on this node.' } as const
const factsWith = (filesystems: HostFacts['filesystems']) =>
  ({
    filesystems,
    canGrowExt4Online: AVAILABLE,
    canReflink: AVAILABLE,
    limits: { version: 'none', message: 'no cgroups' },
  }) as unknown as HostFacts
const backendWith = (filesystems: HostFacts['filesystems']) =>
  createLoopBackend({ host: {} as never, facts: factsWith(filesystems), pool: '/pool' })

describe('createLoopBackend', () => {
  it('defaults to ext4 without mkfs.xfs, and reports the missing program', () => {
    const backend = backendWith({ xfs: MISSING_PROGRAM, ext4: AVAILABLE })
    expect(backend.defaultFsType).toBe('ext4')
    expect(backend.checkSupport({ accessType: 'mount', fsType: 'xfs', isReadOnly: false })).toEqual(MISSING_PROGRAM)
    expect(backend.checkSupport({ accessType: 'block', fsType: 'xfs', isReadOnly: true }).available).toBe(true)
    expect(backend.limitations).toEqual([
      'No volumes with xfs: The program "mkfs.xfs" is not installed on this node.',
      'Limits are not enforced: no cgroups.',
    ])
  })

  it('defaults to xfs', () => {
    expect(backendWith({ xfs: AVAILABLE, ext4: AVAILABLE }).defaultFsType).toBe('xfs')
  })
})
