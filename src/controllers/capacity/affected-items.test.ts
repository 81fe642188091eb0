import { describe, expect, it } from 'vitest'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { affectedItemsOf } from './affected-items.ts'

type Term = NonNullable<
  NonNullable<NonNullable<PersistentVolume['spec']>['nodeAffinity']>['required']
>['nodeSelectorTerms'][number]

const aVolume = (...terms: Term[]) =>
  ({
    metadata: {},
    spec: { storageClassName: 'fast', nodeAffinity: { required: { nodeSelectorTerms: terms } } },
  }) as never
const is = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })
const ids = (...terms: Term[]) =>
  affectedItemsOf(aVolume(...terms)).map((affected) => (affected.is === 'segment' ? affected.id : affected))

describe('the items that a volume affects', () => {
  it('CAP-8 are the segments of its terms, in any order of keys', () => {
    expect(
      ids({ matchExpressions: [is('zone', 'a'), is('rack', '1')] }, { matchExpressions: [is('zone', 'b')] }),
    ).toEqual(['[["rack","1"],["zone","a"]]', '[["zone","b"]]'])
  })

  it('CAP-8 exclude a segment with more labels than the term', () => {
    expect(ids({ matchExpressions: [is('zone', 'a')] })).not.toContain('[["rack","1"],["zone","a"]]')
  })

  it.each<[string, Term]>([
    ['another operator', { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }],
    ['two values', { matchExpressions: [is('zone', 'a', 'b')] }],
    ['fields', { matchExpressions: [is('zone', 'a')], matchFields: [is('metadata.name', 'n1')] }],
    ['nothing', {}],
  ])('CAP-8 skip a term with %s', (_, term) => {
    expect(ids(term, { matchExpressions: [is('zone', 'b')] })).toEqual(['[["zone","b"]]'])
  })

  it('CAP-8 are those of its class in all segments without affinity', () => {
    const volume = { metadata: {}, spec: { storageClassName: 'fast' } } as never
    expect(affectedItemsOf(volume)).toEqual([
      { is: 'segment', id: '[]' },
      { is: 'class', name: 'fast' },
    ])
  })
})
