import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { CHANGED, createPace } from './pace.ts'

const aSubject = (name: string, className: string, annotations = {}) =>
  ({
    claim: { metadata: { name }, spec: { volumeAttributesClassName: className, resources: { requests: {} } } },
    volume: { metadata: { name, uid: name, annotations } },
  }) as never

describe('the pace of changes', () => {
  it('PLUS-10 a budget lets so many begin, and the others as it refills', async () => {
    const clock = manualClock()
    const pace = createPace(clock, { budget: { changes: 2, periodMs: 60_000 } })
    expect(pace.begin(aSubject('a', 'gold'))).toBeUndefined()
    expect(pace.begin(aSubject('b', 'gold'))).toBeUndefined()
    expect(pace.begin(aSubject('c', 'gold'))).toMatchObject({ afterMs: 30_000, isNews: true })
    expect(pace.begin(aSubject('c', 'gold'))).toMatchObject({ isNews: false })
    await clock.advance(30_000)
    expect(pace.begin(aSubject('c', 'gold'))).toBeUndefined()
    expect(pace.begin(aSubject('d', 'gold'))).toBeDefined()
  })

  it('PLUS-10 what one edit asks for is one change: its next step, and another try, wait for nothing', () => {
    const pace = createPace(manualClock(), { budget: { changes: 1, periodMs: 60_000 }, cooldownMs: 60_000 })
    expect(pace.begin(aSubject('a', 'gold'))).toBeUndefined()
    pace.changed(aSubject('a', 'gold'))
    expect(pace.begin(aSubject('a', 'gold'))).toBeUndefined()
  })

  it('PLUS-10 a volume rests after a change, and says so itself', async () => {
    const clock = manualClock()
    const pace = createPace(clock, { cooldownMs: 3_600_000 })
    expect(pace.begin(aSubject('a', 'gold'))).toBeUndefined()
    const annotations = pace.changed(aSubject('a', 'gold'))
    expect(Object.keys(annotations)).toEqual([CHANGED])
    await clock.advance(600_000)
    for (const one of [pace, createPace(clock, { cooldownMs: 3_600_000 })]) {
      const delay = one.begin(aSubject('a', 'silver', annotations))
      expect(delay).toMatchObject({ afterMs: 3_000_000, isNews: true })
      expect(delay?.because).toBe(
        'volume a was changed a short time ago and is not changed again before 2026-01-01T01:00:00Z',
      )
    }
    await clock.advance(3_000_000)
    expect(pace.begin(aSubject('a', 'silver', annotations))).toBeUndefined()
  })

  it('PLUS-10 what someone wrote on a volume by hand holds up nothing', () => {
    const pace = createPace(manualClock(), { cooldownMs: 3_600_000 })
    expect(pace.begin(aSubject('a', 'gold', { [CHANGED]: '{' }))).toBeUndefined()
    expect(pace.begin(aSubject('b', 'gold', { [CHANGED]: '{"changedMs":"now"}' }))).toBeUndefined()
  })
})
