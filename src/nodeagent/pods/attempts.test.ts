import { expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { failedMount, waitingFor } from '../volume-problem.ts'
import { createAttempts } from './attempts.ts'

it('SYS-7 backs off from 0.5 s to about 2 min', async () => {
  const clock = manualClock()
  const attempts = createAttempts({ clock })
  const waits: number[] = []
  for (let tries = 0; tries < 11; tries++) {
    attempts.failed('u', 'data', failedMount('no'))
    waits.push(attempts.dueInMs('u'))
    expect(attempts.pending('u', 'data')?.message).toBe('no')
    await clock.advance(attempts.dueInMs('u'))
    expect(attempts.pending('u', 'data')).toBeUndefined()
  }
  expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 122_000, 122_000, 122_000])
})

it('SYS-7 has no backoff for waits', () => {
  const attempts = createAttempts({ clock: manualClock() })
  attempts.failed('u', 'data', waitingFor('not bound'))
  expect(attempts.pending('u', 'data')).toBeUndefined()
  attempts.failed('u', 'data', failedMount('no'))
  expect(attempts.dueInMs('u')).toBe(500)
})

it('SYS-7 backs off per volume and resets on success', () => {
  const attempts = createAttempts({ clock: manualClock() })
  attempts.failed('u', 'bad', failedMount('no'))
  expect(attempts.pending('u', 'good')).toBeUndefined()
  attempts.succeeded('u', 'bad')
  expect(attempts.pending('u', 'bad')).toBeUndefined()
})
