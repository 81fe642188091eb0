import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { createPulse } from './pulse.ts'

function aPulse() {
  const clock = manualClock()
  const looks: { answer(problem?: string): void; fail(): void }[] = []
  const look = () =>
    new Promise<string | undefined>((resolve, reject) => {
      looks.push({ answer: resolve, fail: () => reject(new Error('connection refused')) })
    })
  return { clock, looks, pulse: createPulse({ clock, look, silence: 'it does not answer' }) }
}

describe('a pulse', () => {
  it('SYS-11 says what a look found', async () => {
    const { clock, looks, pulse } = aPulse()
    const well = pulse()
    looks[0]!.answer()
    expect(await well).toBeUndefined()
    await clock.advance(1_000)
    const ill = pulse()
    looks[1]!.answer('the disk is full')
    expect(await ill).toBe('the disk is full')
  })

  it('SYS-11 calls silence what fails, and what takes longer than 2 s', async () => {
    const { clock, looks, pulse } = aPulse()
    const refused = pulse()
    looks[0]!.fail()
    expect(await refused).toBe('it does not answer')
    await clock.advance(1_000)
    let said: string | undefined
    void pulse().then((problem) => {
      said = problem
    })
    await clock.advance(1_999)
    expect(said).toBeUndefined()
    await clock.advance(1)
    expect(said).toBe('it does not answer')
  })

  it('looks once for all who ask at a time, and again a second after', async () => {
    const { clock, looks, pulse } = aPulse()
    const asked = [pulse(), pulse()]
    looks[0]!.answer('full')
    expect(await Promise.all([...asked, pulse()])).toEqual(['full', 'full', 'full'])
    expect(looks).toHaveLength(1)
    await clock.advance(999)
    await pulse()
    expect(looks).toHaveLength(1)
    await clock.advance(1)
    void pulse()
    expect(looks).toHaveLength(2)
  })
})
