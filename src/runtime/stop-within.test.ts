import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { awaitWithStopLimit, stopWithin } from './stop-within.ts'

function recordingLog() {
  const lines: string[] = []
  const write = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  return { lines, log: { debug: write, info: write, warn: write, error: write } }
}
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('stopWithin', () => {
  it('returns when all parts have settled, and logs those that failed', async () => {
    const { lines, log } = recordingLog()
    await stopWithin(
      { good: Promise.resolve(1), absent: undefined, bad: Promise.reject(new Error('broken')) },
      { clock: manualClock(), log },
    )
    expect(lines).toEqual(['did not stop cleanly {"part":"bad","reason":"broken"}'])
  })

  it('returns after the limit, and logs the parts that are still running', async () => {
    const { lines, log } = recordingLog()
    const clock = manualClock()
    let hasReturned = false
    const limitedStop = stopWithin(
      { quick: nextTurn(), stuck: new Promise(() => {}) },
      { clock, log, limitMs: 5_000 },
    ).then(() => {
      hasReturned = true
    })
    await nextTurn()
    await clock.advance(4_999)
    expect(hasReturned).toBe(false)
    await clock.advance(1)
    await limitedStop
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^exiting before these parts have stopped.*\["stuck"\]/)
  })
})

function startWork() {
  const clock = manualClock()
  const stop = new AbortController()
  let finish = () => {}
  let fail: (error: Error) => void = () => {}
  const work = new Promise<void>((resolve, reject) => {
    finish = resolve
    fail = reject
  })
  let outcome: string | undefined
  const settled = awaitWithStopLimit(work, { signal: stop.signal, clock, limitMs: 30_000 }).then(
    (result) => {
      outcome = result
    },
    (error) => {
      outcome = error.message
    },
  )
  return {
    clock,
    stop,
    finish: () => finish(),
    fail: (error: Error) => fail(error),
    settled,
    getOutcome: () => outcome,
  }
}

describe('awaitWithStopLimit', () => {
  it('resolves to abandoned if the work runs longer than the limit after the signal', async () => {
    const { clock, stop, getOutcome } = startWork()
    await clock.advance(3_600_000)
    expect(getOutcome()).toBeUndefined()
    stop.abort()
    await clock.advance(29_999)
    expect(getOutcome()).toBeUndefined()
    await clock.advance(1)
    expect(getOutcome()).toBe('abandoned')
  })

  it('resolves to stopped if the work stops in time, and rejects if the work fails', async () => {
    const successfulWork = startWork()
    successfulWork.stop.abort()
    successfulWork.finish()
    await successfulWork.settled
    expect(successfulWork.getOutcome()).toBe('stopped')
    const failingWork = startWork()
    failingWork.fail(new Error('no server'))
    await failingWork.settled
    expect(failingWork.getOutcome()).toBe('no server')
  })
})
