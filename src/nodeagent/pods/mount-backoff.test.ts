import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { mountError, waitingError } from '../volume-error.ts'
import { createMountBackoff } from './mount-backoff.ts'

describe('the mount backoff', () => {
  it('grows from 0.5 s to about 2 min', async () => {
    const clock = manualClock()
    const backoff = createMountBackoff({ clock })
    const delaysMs: number[] = []
    for (let failures = 0; failures < 11; failures++) {
      backoff.recordFailure('u', 'data', mountError('failed'))
      delaysMs.push(backoff.retryInMs('u'))
      expect(backoff.pendingError('u', 'data')?.message).toBe('failed')
      await clock.advance(backoff.retryInMs('u'))
      expect(backoff.pendingError('u', 'data')).toBeUndefined()
    }
    expect(delaysMs).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 122_000, 122_000, 122_000])
  })

  it('does not apply to a volume that waits for another component', () => {
    const backoff = createMountBackoff({ clock: manualClock() })
    backoff.recordFailure('u', 'data', waitingError('not bound'))
    expect(backoff.pendingError('u', 'data')).toBeUndefined()
    backoff.recordFailure('u', 'data', mountError('failed'))
    expect(backoff.retryInMs('u')).toBe(500)
  })

  it('applies to each volume separately and is reset on success', () => {
    const backoff = createMountBackoff({ clock: manualClock() })
    backoff.recordFailure('u', 'data', mountError('failed'))
    expect(backoff.pendingError('u', 'logs')).toBeUndefined()
    backoff.recordSuccess('u', 'data')
    expect(backoff.pendingError('u', 'data')).toBeUndefined()
  })
})
