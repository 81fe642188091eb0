import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBarProgress, renderBar } from './progress-bar.ts'

describe('progress bar', () => {
  it('PLUS-4 shows progress, failures, the rate and the remaining time', () => {
    expect(
      renderBar({ totalCount: 500, completedCount: 250, failedCount: 2, inProgressCount: 31, elapsedMs: 50_000 }, 120),
    ).toBe(`[${'█'.repeat(15)}${'░'.repeat(15)}]  50 %  250 of 500, 2 failed, 31 in progress, 5.0/s, about 50 s left`)
    expect(
      renderBar({ totalCount: 3, completedCount: 3, failedCount: 0, inProgressCount: 0, elapsedMs: 900 }, 100),
    ).toBe(`[${'█'.repeat(30)}] 100 %  3 of 3`)
  })

  it('PLUS-4 fits into a terminal of at least 20 columns', () => {
    const anyCounts = fc.record({
      totalCount: fc.nat(100_000),
      completedCount: fc.nat(100_000),
      failedCount: fc.nat(1_000),
      inProgressCount: fc.nat(1_000),
      elapsedMs: fc.nat(10 ** 9),
    })
    fc.assert(
      fc.property(
        anyCounts,
        fc.integer({ min: 20, max: 300 }),
        ({ totalCount, completedCount, ...otherCounts }, columns) => {
          const counts = { totalCount, completedCount: Math.min(completedCount, totalCount), ...otherCounts }
          const line = renderBar(counts, columns)
          expect(line.length).toBeLessThan(columns)
        },
      ),
    )
  })

  it('PLUS-4 draws the bar below finished claims, and after updates at most ten times a second', () => {
    let nowMs = 0
    let text = ''
    const bar = createBarProgress({ write: (chunk) => (text += chunk), columns: () => 80 }, 3, {
      monotonicMs: () => nowMs,
    })
    for (let index = 0; index < 50; index++) {
      bar.update('shop/a', `step ${index}`)
      nowMs += 1
    }
    expect(text.split('0 of 3').length - 1).toBe(1)
    text = ''
    bar.complete({ key: 'shop/a', is: 'done', message: 'gold is in effect' })
    bar.complete({ key: 'shop/b', is: 'failed', message: 'no\nroom' })
    bar.finish()
    expect(text).toContain('\r\u001b[2Kshop/a: gold is in effect\n[')
    expect(text).toContain('\r\u001b[2Kshop/b: FAILED: no room\n[')
    expect(text.endsWith('\n')).toBe(true)
  })
})
