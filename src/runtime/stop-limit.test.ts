import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { withinStopLimit } from './stop-limit.ts'

function trial() {
  const clock = manualClock()
  const stop = new AbortController()
  let finish = () => {}
  let fail: (error: Error) => void = () => {}
  const work = new Promise<void>((resolve, reject) => {
    finish = resolve
    fail = reject
  })
  let end: string | undefined
  const ended = withinStopLimit(work, { signal: stop.signal, clock, limitMs: 30_000 }).then(
    (how) => {
      end = how
    },
    (error) => {
      end = error.message
    },
  )
  return { clock, stop, finish: () => finish(), fail: (error: Error) => fail(error), ended, end: () => end }
}

describe('the limit of a stop', () => {
  it('PROV-17 counts from the signal, and not while the work is wanted', async () => {
    const { clock, stop, end } = trial()
    await clock.advance(3_600_000)
    expect(end()).toBeUndefined()
    stop.abort()
    await clock.advance(29_999)
    expect(end()).toBeUndefined()
    await clock.advance(1)
    expect(end()).toBe('abandoned')
  })

  it('PROV-17 work that ends in time, or fails, ends as it does', async () => {
    const ending = trial()
    ending.stop.abort()
    ending.finish()
    await ending.ended
    expect(ending.end()).toBe('ended')
    const failing = trial()
    failing.fail(new Error('no server'))
    await failing.ended
    expect(failing.end()).toBe('no server')
  })
})
