import { describe, expect, it } from 'vitest'
import { addResult, createTotals, formatReport, type SeedResult } from './report.ts'

describe('the report of many seeds', () => {
  it('lists operations and faults, the minimum per seed, and failed seeds by rule', () => {
    const totals = createTotals()
    addResult(totals, toSeedResult(2, { violations: [{ atMs: 5, rule: 'leak', text: 'two lines\nof text' }] }))
    addResult(totals, toSeedResult(1, { faults: { crash: 20, 'reply lost': 1_500 } }))
    expect(formatReport(totals, { realMs: 4_000 })).toBe(`\
operation     count  outcomes
create claim     20  done 14, refused 422 4, no response 2
delete pod        4  done 2, no response 2

fault       count
reply lost  1,500
crash          40

                       total  minimum per seed
seeds                      2
virtual hours              2  1
operations                24  12
faults                 1,540  20
real seconds               4  0.50 seeds/s
seeds with violations      1

leak: 1 seed

seed 2  leak: two lines
`)
  })
})

function toSeedResult(seed: number, overrides: Partial<SeedResult>): SeedResult {
  return {
    seed,
    virtualMs: 3_600_000,
    operations: {
      'create claim: sent': 10,
      'create claim: done': 7,
      'create claim: refused 422': 2,
      'delete pod: sent': 2,
      'delete pod: done': 1,
    },
    faults: { crash: 20 },
    violations: [],
    ...overrides,
  }
}
