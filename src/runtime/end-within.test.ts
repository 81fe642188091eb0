import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { endWithin } from './end-within.ts'

function aLog() {
  const told: string[] = []
  const tell = (about: object, text: string) => void told.push(`${text} ${JSON.stringify(about)}`)
  return { told, log: { debug: tell, info: tell, warn: tell, error: tell } as any }
}
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('an end within a limit', () => {
  it('SYS-1 comes as soon as the last part has ended, however it did', async () => {
    const { told, log } = aLog()
    await endWithin(
      { good: Promise.resolve(1), absent: undefined, bad: Promise.reject(new Error('broken')) },
      { clock: manualClock(), log },
    )
    expect(told).toEqual(['did not stop cleanly {"part":"bad","because":"broken"}'])
  })

  it('SYS-1 does not wait for a part that never ends, and says which it was', async () => {
    const { told, log } = aLog()
    const clock = manualClock()
    let isOver = false
    const ended = endWithin({ quick: turn(), stuck: new Promise(() => {}) }, { clock, log, limitMs: 5_000 }).then(
      () => {
        isOver = true
      },
    )
    await turn()
    await clock.advance(4_999)
    expect(isOver).toBe(false)
    await clock.advance(1)
    await ended
    expect(told).toHaveLength(1)
    expect(told[0]).toMatch(/^ending without waiting longer.*\["stuck"\]/)
  })
})
