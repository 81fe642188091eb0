import { describe, expect, it } from 'vitest'
import { formatTable } from './table.ts'

describe('formatTable', () => {
  it('aligns columns and does not pad the last one', () => {
    expect(
      formatTable([
        ['CLAIM', 'MESSAGE'],
        ['a', ''],
        ['a-long-name', 'some message'],
      ]),
    ).toBe('CLAIM        MESSAGE\na\na-long-name  some message\n')
  })
})
