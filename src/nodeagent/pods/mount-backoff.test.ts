import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { failedMount, waitingFor } from '../volume-error.ts'
import { createAttempts } from './mount-backoff.ts'

describe('the mount backoff', () => {
  it('SYS-7 grows from 0.5 s to about 2 min', async () => {
    const clock = manualClock()
    const attempts = createAttempts({ clock })
    const waits: number[] = []
    for (let failures = 0; failures < 11; failures++) {
      attempts.failed('u', 'data', failedMount('failed'))
      waits.push(attempts.dueInMs('u'))
      expect(attempts.pending('u', 'data')?.message).toBe('failed')
      await clock.advance(attempts.dueInMs('u'))
      expect(attempts.pending('u', 'data')).toBeUndefined()
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 122_000, 122_000, 122_000])
  })

  it('SYS-7 does not apply to a volume that waits for another component', () => {
    const attempts = createAttempts({ clock: manualClock() })
    attempts.failed('u', 'data', waitingFor('not bound'))
    expect(attempts.pending('u', 'data')).toBeUndefined()
    attempts.failed('u', 'data', failedMount('failed'))
    expect(attempts.dueInMs('u')).toBe(500)
  })

  it('SYS-7 applies to each volume separately and is reset on success', () => {
    const attempts = createAttempts({ clock: manualClock() })
    attempts.failed('u', 'data', failedMount('failed'))
    expect(attempts.pending('u', 'logs')).toBeUndefined()
    attempts.succeeded('u', 'data')
    expect(attempts.pending('u', 'data')).toBeUndefined()
  })
})
