import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { cancellableClock } from './cancellable-clock.ts'

describe('cancellableClock', () => {
  it('calls back like the clock that it wraps, until its timers are cancelled', async () => {
    const base = manualClock()
    const { clock, cancelTimers } = cancellableClock(base)
    const calls: string[] = []
    clock.after(10, () => calls.push('early'))
    clock.after(30, () => calls.push('late'))
    clock.after(10, () => calls.push('cancelled by its owner'))()
    await base.advance(20)
    cancelTimers()
    clock.after(10, () => calls.push('started too late'))
    await base.advance(60)
    expect(calls).toEqual(['early'])
  })
})
