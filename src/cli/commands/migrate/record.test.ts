import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aClaim } from './claim.fixture.ts'
import { type MigrateRecord, recordOf } from './record.ts'

describe('recordOf', () => {
  it('PLUS-4 decodes every encoded record and ignores other content', () => {
    const text = fc.string()
    const record = fc
      .record({ id: text, from: text, to: text })
      .chain((value) => fc.constantFrom<MigrateRecord>(value, { ...value, undo: true }, { ...value, closed: true }))
    fc.assert(fc.property(record, (value) => void expect(recordOf(aClaim({ record: value }))).toEqual(value)))
    fc.assert(fc.property(fc.oneof(text, fc.json()), (content) => void recordOf(aClaim({ record: content }))))
    for (const content of ['', 'x', 'null', '[]', '{"id":1,"from":"a","to":"b"}']) {
      expect(recordOf(aClaim({ record: content }))).toBeUndefined()
    }
  })
})
