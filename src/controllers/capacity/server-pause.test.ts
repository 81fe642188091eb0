import { describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { createServerPause } from './server-pause.ts'

function createFixture() {
  const clock = manualClock()
  const pause = createServerPause({ clock, random: () => 1, log: silentLog })
  const signal = new AbortController().signal
  /** Returns the time that a write which starts now has to wait. */
  async function measureWaitMs(): Promise<number> {
    const startMs = clock.monotonicMs()
    let endMs: number | undefined
    void pause.whenOver(signal).then(() => {
      endMs = clock.monotonicMs()
    })
    for (let turn = 0; endMs === undefined && turn < 100; turn++) await clock.advance(turn === 0 ? 0 : 500)
    return endMs! - startMs
  }
  return { pause, measureWaitMs }
}

describe('a server pause', () => {
  it('CAP-17 doubles with every failure up to 30 seconds, and ends with the first success', async () => {
    const { pause, measureWaitMs } = createFixture()
    const waits: number[] = []
    for (let i = 0; i < 7; i++) {
      pause.recordFailure('down')
      waits.push(await measureWaitMs())
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    pause.recordSuccess()
    pause.recordFailure('down again')
    expect(await measureWaitMs()).toBe(1_000)
  })

  it('CAP-17 counts concurrent failures once', async () => {
    const { pause, measureWaitMs } = createFixture()
    for (let i = 0; i < 10; i++) pause.recordFailure('down')
    expect(await measureWaitMs()).toBe(1_000)
  })

  it('CAP-17 does not occur without failures, and its wait is rejected when the signal fires', async () => {
    const { pause, measureWaitMs } = createFixture()
    expect(await measureWaitMs()).toBe(0)
    pause.recordFailure('down')
    const abort = new AbortController()
    const wait = pause.whenOver(abort.signal)
    abort.abort(new Error('stopping'))
    await expect(wait).rejects.toThrow('stopping')
  })
})
