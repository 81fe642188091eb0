import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { CHANGED_ANNOTATION, createChangeThrottle } from './change-throttle.ts'

const aSubject = (name: string, className: string, annotations = {}) =>
  ({
    claim: { metadata: { name }, spec: { volumeAttributesClassName: className, resources: { requests: {} } } },
    volume: { metadata: { name, uid: name, annotations } },
  }) as never

describe('createChangeThrottle', () => {
  it('PLUS-10 delays changes that exceed the budget until it refills', async () => {
    const clock = manualClock()
    const throttle = createChangeThrottle(clock, { budget: { changes: 2, periodMs: 60_000 } })
    expect(throttle.begin(aSubject('a', 'gold'))).toBeUndefined()
    expect(throttle.begin(aSubject('b', 'gold'))).toBeUndefined()
    expect(throttle.begin(aSubject('c', 'gold'))).toMatchObject({ afterMs: 30_000, isNew: true })
    expect(throttle.begin(aSubject('c', 'gold'))).toMatchObject({ isNew: false })
    await clock.advance(30_000)
    expect(throttle.begin(aSubject('c', 'gold'))).toBeUndefined()
    expect(throttle.begin(aSubject('d', 'gold'))).toBeDefined()
  })

  it('PLUS-10 does not delay later steps or retries of the same request', () => {
    const throttle = createChangeThrottle(manualClock(), {
      budget: { changes: 1, periodMs: 60_000 },
      cooldownMs: 60_000,
    })
    expect(throttle.begin(aSubject('a', 'gold'))).toBeUndefined()
    throttle.recordChange(aSubject('a', 'gold'))
    expect(throttle.begin(aSubject('a', 'gold'))).toBeUndefined()
  })

  it('PLUS-10 enforces the cooldown of a volume, even after a restart', async () => {
    const clock = manualClock()
    const throttle = createChangeThrottle(clock, { cooldownMs: 3_600_000 })
    expect(throttle.begin(aSubject('a', 'gold'))).toBeUndefined()
    const annotations = throttle.recordChange(aSubject('a', 'gold'))
    expect(Object.keys(annotations)).toEqual([CHANGED_ANNOTATION])
    await clock.advance(600_000)
    const afterRestart = createChangeThrottle(clock, { cooldownMs: 3_600_000 })
    for (const instance of [throttle, afterRestart]) {
      const delay = instance.begin(aSubject('a', 'silver', annotations))
      expect(delay).toMatchObject({ afterMs: 3_000_000, isNew: true })
      expect(delay?.message).toBe('volume a was changed recently; its cooldown ends at 2026-01-01T01:00:00Z')
    }
    await clock.advance(3_000_000)
    expect(throttle.begin(aSubject('a', 'silver', annotations))).toBeUndefined()
  })

  it('PLUS-10 ignores an annotation that it cannot parse', () => {
    const throttle = createChangeThrottle(manualClock(), { cooldownMs: 3_600_000 })
    expect(throttle.begin(aSubject('a', 'gold', { [CHANGED_ANNOTATION]: '{' }))).toBeUndefined()
    expect(throttle.begin(aSubject('b', 'gold', { [CHANGED_ANNOTATION]: '{"changedMs":"now"}' }))).toBeUndefined()
  })
})
