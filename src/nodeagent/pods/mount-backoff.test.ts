import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { failedMount, waitingFor } from '../volume-error.ts'
import { createMountBackoff } from './mount-backoff.ts'

describe('the mount backoff', () => {
  it('SYS-7 grows from 0.5 s to about 2 min', async () => {
    const clock = manualClock()
    const attempts = createMountBackoff({ clock })
    const waits: number[] = []
    for (let failures = 0; failures < 11; failures++) {
      attempts.recordFailure('u', 'data', failedMount('failed'))
      waits.push(attempts.retryInMs('u'))
      expect(attempts.pendingError('u', 'data')?.message).toBe('failed')
      await clock.advance(attempts.retryInMs('u'))
      expect(attempts.pendingError('u', 'data')).toBeUndefined()
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 122_000, 122_000, 122_000])
  })

  it('SYS-7 does not apply to a volume that waits for another component', () => {
    const attempts = createMountBackoff({ clock: manualClock() })
    attempts.recordFailure('u', 'data', waitingFor('not bound'))
    expect(attempts.pendingError('u', 'data')).toBeUndefined()
    attempts.recordFailure('u', 'data', failedMount('failed'))
    expect(attempts.retryInMs('u')).toBe(500)
  })

  it('SYS-7 applies to each volume separately and is reset on success', () => {
    const attempts = createMountBackoff({ clock: manualClock() })
    attempts.recordFailure('u', 'data', failedMount('failed'))
    expect(attempts.pendingError('u', 'logs')).toBeUndefined()
    attempts.recordSuccess('u', 'data')
    expect(attempts.pendingError('u', 'data')).toBeUndefined()
  })
})
