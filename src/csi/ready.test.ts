import { describe, expect, it } from 'vitest'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { CsiError } from './errors.ts'
import { waitUntilReady } from './ready.ts'
import { createScriptedDriver } from './scripted-driver.fixture.ts'

describe('waitUntilReady', () => {
  it('probes every second until the driver is ready', async () => {
    const clock = manualClock()
    const driver = createScriptedDriver({
      Probe: [new CsiError('UNAVAILABLE', 'not running'), { ready: false }, { ready: true }],
    })
    let isReady = false
    const ready = waitUntilReady(driver, { clock, log: silentLog, signal: new AbortController().signal }).then(() => {
      isReady = true
    })
    await clock.nextTurn()
    await clock.advance(1_000)
    await clock.advance(999)
    expect(isReady).toBe(false)
    await clock.advance(1)
    await ready
  })

  it('SYS-6 treats a driver without the ready field or without Probe as ready', async () => {
    const options = { clock: manualClock(), log: silentLog, signal: new AbortController().signal }
    await waitUntilReady(createScriptedDriver({ Probe: [{}] }), options)
    await waitUntilReady(createScriptedDriver({}), options)
  })

  it('rejects when the signal is aborted', async () => {
    const clock = manualClock()
    const stop = new AbortController()
    const ready = waitUntilReady(createScriptedDriver({ Probe: [{ ready: false }] }), {
      clock,
      log: silentLog,
      signal: stop.signal,
    })
    const failure = expect(ready).rejects.toThrow('stopped')
    await clock.nextTurn()
    await clock.advance(10_000)
    stop.abort(new Error('stopped'))
    await failure
  })
})
