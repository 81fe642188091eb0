import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RevisionMapping, SUB_REVISIONS } from './revision-mapping.ts'

describe('RevisionMapping', () => {
  it("starts at 0 regardless of etcd's revision", () => {
    expect(new RevisionMapping({ base: 7_000 }).revisionOf(7_000n)).toBe(0)
  })

  it('round-trips etcd revision and sub-revision, and preserves their order', () => {
    const base = 41
    const position = fc.record({
      etcd: fc.integer({ min: base, max: 1e12 }),
      sub: fc.integer({ min: 0, max: SUB_REVISIONS - 1 }),
    })
    fc.assert(
      fc.property(position, position, (a, b) => {
        const mapping = new RevisionMapping({ base })
        const [firstRevision, secondRevision] = [a, b].map(({ etcd, sub }) => mapping.revisionOf(etcd, sub)) as [
          number,
          number,
        ]
        expect(mapping.etcdRevisionOf(firstRevision)).toBe(a.etcd)
        expect(mapping.subOf(firstRevision)).toBe(a.sub)
        expect(firstRevision < secondRevision).toBe(a.etcd < b.etcd || (a.etcd === b.etcd && a.sub < b.sub))
      }),
    )
  })
})
