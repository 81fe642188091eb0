import { describe, expect, it } from 'vitest'
import { formatTable } from './results.ts'

describe('formatTable', () => {
  it('PLUS-13 aligns columns and does not pad the last one', () => {
    expect(
      formatTable([
        ['CLAIM', 'WHY'],
        ['a', ''],
        ['a-long-name', 'some reason'],
      ]),
    ).toBe('CLAIM        WHY\na\na-long-name  some reason\n')
  })
})
