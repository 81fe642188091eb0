import { describe, expect, it } from 'vitest'
import { type ManualClock, manualClock } from '../base/manual-clock.ts'
import { createEventMemory } from './event-memory.ts'

const MINUTE_MS = 60_000
const warning = (message: string) => ({ type: 'Warning', reason: 'Failed', message }) as const
const recordedAt = (clock: ManualClock, name: string) => ({
  namespace: 'a',
  name,
  count: 1,
  lastMs: clock.nowMs(),
})

describe('the memory of an event recorder', () => {
  it('SYS-11 combines messages beyond ten within ten minutes, and accepts new ones later', async () => {
    const clock = manualClock()
    const memory = createEventMemory(clock)
    const messages = Array.from({ length: 12 }, (_, index) => memory.identify('u', warning(`m${index}`)).message)
    expect(messages.slice(8)).toEqual(['m8', 'm9', undefined, undefined])
    expect(memory.identify('u', warning('m3')).message).toBe('m3')
    await clock.advance(11 * MINUTE_MS)
    expect(memory.identify('u', warning('m10')).message).toBe('m10')
  })

  it('SYS-11 finds the Event of alternating messages for longer than ten minutes', async () => {
    const clock = manualClock()
    const memory = createEventMemory(clock)
    for (let minute = 0; minute < 30; minute++) {
      for (const message of ['a', 'b']) {
        const identity = memory.identify('u', warning(message))
        if (minute > 0) expect(memory.recordedEventOf(identity)?.name).toBe(message)
        memory.remember(identity, recordedAt(clock, message))
      }
      await clock.advance(MINUTE_MS)
    }
  })

  it('SYS-11 remembers combined events separately, and by type and reason', () => {
    const clock = manualClock()
    const memory = createEventMemory(clock)
    for (let index = 0; index < 10; index++) memory.identify('u', warning(`m${index}`))
    const combined = memory.identify('u', warning('other'))
    memory.remember(combined, recordedAt(clock, 'combined'))
    expect(memory.recordedEventOf(memory.identify('u', warning('another')))?.name).toBe('combined')
    const otherReason = memory.identify('u', { ...warning('other'), reason: 'Other' })
    expect(otherReason.message).toBe('other')
    expect(memory.recordedEventOf(otherReason)).toBeUndefined()
  })

  it('forgets the objects whose events are oldest', () => {
    const clock = manualClock()
    const memory = createEventMemory(clock)
    const identity = memory.identify('first', warning('m'))
    memory.remember(identity, recordedAt(clock, 'e'))
    for (let index = 0; index < 5_000; index++) memory.identify(`u${index}`, warning('m'))
    expect(memory.recordedEventOf(identity)).toBeUndefined()
  })
})
