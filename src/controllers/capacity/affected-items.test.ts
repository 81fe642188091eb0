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
const labelIs = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })
const segmentIds = (...terms: Term[]) =>
  affectedItemsOf(aVolume(...terms)).map((affected) => (affected.is === 'segment' ? affected.id : affected))

describe('affectedItemsOf', () => {
  it('CAP-8 returns the segments of the terms, regardless of key order', () => {
    expect(
      segmentIds(
        { matchExpressions: [labelIs('zone', 'a'), labelIs('rack', '1')] },
        { matchExpressions: [labelIs('zone', 'b')] },
      ),
    ).toEqual(['[["rack","1"],["zone","a"]]', '[["zone","b"]]'])
  })

  it('CAP-8 excludes a segment with more labels than the term', () => {
    expect(segmentIds({ matchExpressions: [labelIs('zone', 'a')] })).not.toContain('[["rack","1"],["zone","a"]]')
  })

  it.each<[string, Term]>([
    ['another operator', { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }],
    ['two values', { matchExpressions: [labelIs('zone', 'a', 'b')] }],
    ['fields', { matchExpressions: [labelIs('zone', 'a')], matchFields: [labelIs('metadata.name', 'n1')] }],
    ['no expression', {}],
  ])('CAP-8 skips a term with %s', (_, term) => {
    expect(segmentIds(term, { matchExpressions: [labelIs('zone', 'b')] })).toEqual(['[["zone","b"]]'])
  })

  it('CAP-8 returns the segment without labels and the class for a volume without affinity', () => {
    const volume = { metadata: {}, spec: { storageClassName: 'fast' } } as never
    expect(affectedItemsOf(volume)).toEqual([
      { is: 'segment', id: '[]' },
      { is: 'class', name: 'fast' },
    ])
  })
})
