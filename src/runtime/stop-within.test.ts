import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { stopWithin, withinStopLimit } from './stop-within.ts'

function recordingLog() {
  const lines: string[] = []
  const write = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  return { lines, log: { debug: write, info: write, warn: write, error: write } }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('stopWithin', () => {
  it('SYS-1 returns as soon as every part has settled, and logs those that failed', async () => {
    const { lines, log } = recordingLog()
    await stopWithin(
      { good: Promise.resolve(1), absent: undefined, bad: Promise.reject(new Error('broken')) },
      { clock: manualClock(), log },
    )
    expect(lines).toEqual(['did not stop cleanly {"part":"bad","because":"broken"}'])
  })

  it('SYS-1 returns after the limit and logs the parts that still run', async () => {
    const { lines, log } = recordingLog()
    const clock = manualClock()
    let isOver = false
    const ended = stopWithin({ quick: turn(), stuck: new Promise(() => {}) }, { clock, log, limitMs: 5_000 }).then(
      () => {
        isOver = true
      },
    )
    await turn()
    await clock.advance(4_999)
    expect(isOver).toBe(false)
    await clock.advance(1)
    await ended
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^exiting before these parts have stopped.*\["stuck"\]/)
  })
})

function runLimited() {
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

describe('withinStopLimit', () => {
  it('PROV-17 counts from the signal, not from the start of the work', async () => {
    const { clock, stop, end } = runLimited()
    await clock.advance(3_600_000)
    expect(end()).toBeUndefined()
    stop.abort()
    await clock.advance(29_999)
    expect(end()).toBeUndefined()
    await clock.advance(1)
    expect(end()).toBe('abandoned')
  })

  it('PROV-17 settles as the work does if it stops in time or fails', async () => {
    const ending = runLimited()
    ending.stop.abort()
    ending.finish()
    await ending.ended
    expect(ending.end()).toBe('stopped')
    const failing = runLimited()
    failing.fail(new Error('no server'))
    await failing.ended
    expect(failing.end()).toBe('no server')
  })
})
