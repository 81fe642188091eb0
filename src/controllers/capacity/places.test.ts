import { describe, expect, it } from 'vitest'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { placesOf } from './places.ts'

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
  placesOf(aVolume(...terms)).map((place) => (place.is === 'segment' ? place.id : place))

describe('where a volume lies', () => {
  it('CAP-8 is the segment of each of its terms, whatever the order of keys', () => {
    expect(
      ids({ matchExpressions: [is('zone', 'a'), is('rack', '1')] }, { matchExpressions: [is('zone', 'b')] }),
    ).toEqual(['[["rack","1"],["zone","a"]]', '[["zone","b"]]'])
  })

  it('CAP-8 a term that says less than a segment is not that segment', () => {
    expect(ids({ matchExpressions: [is('zone', 'a')] })).not.toContain('[["rack","1"],["zone","a"]]')
  })

  it.each<[string, Term]>([
    ['another operator', { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }],
    ['two values', { matchExpressions: [is('zone', 'a', 'b')] }],
    ['fields', { matchExpressions: [is('zone', 'a')], matchFields: [is('metadata.name', 'n1')] }],
    ['nothing', {}],
  ])('CAP-8 a term with %s is no segment, and the next term counts', (_, term) => {
    expect(ids(term, { matchExpressions: [is('zone', 'b')] })).toEqual(['[["zone","b"]]'])
  })

  it('CAP-8 without affinity it is everywhere, and its class is looked at', () => {
    const volume = { metadata: {}, spec: { storageClassName: 'fast' } } as never
    expect(placesOf(volume)).toEqual([
      { is: 'segment', id: '[]' },
      { is: 'class', name: 'fast' },
    ])
  })
})
