import { describe, expect, it } from 'vitest'
import { aVolume } from './claims-and-volumes.fixture.ts'
import { existsOnlyOn, isReachableFrom, possibleNodeNamesOf } from './node-affinity.ts'

const NODE = { name: 'n1', labels: { zone: 'a', cores: '8', empty: '' } }
const isReachable = (...nodeSelectorTerms: object[]) =>
  isReachableFrom(aVolume({ spec: { nodeAffinity: { required: { nodeSelectorTerms } } } }), NODE)
const aTerm = (key: string, operator: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, ...(values.length > 0 ? { values } : {}) }],
})

describe('isReachableFrom', () => {
  it('PROV-4 returns true for a volume without node affinity', () => {
    expect(isReachableFrom(aVolume(), NODE)).toBe(true)
    expect(isReachableFrom(aVolume({ spec: { nodeAffinity: {} } }), NODE)).toBe(true)
  })

  it('PROV-4 returns true if all requirements of a term match, and false for an empty term', () => {
    expect(isReachable(aTerm('zone', 'In', 'b'), aTerm('zone', 'In', 'a'))).toBe(true)
    expect(isReachable(aTerm('zone', 'In', 'b'), aTerm('zone', 'In', 'c'))).toBe(false)
    const expressions = [...aTerm('zone', 'In', 'a').matchExpressions, ...aTerm('cores', 'In', '4').matchExpressions]
    expect(isReachable({ matchExpressions: expressions })).toBe(false)
    expect(isReachable({})).toBe(false)
    expect(isReachable()).toBe(false)
  })

  const CASES: [boolean, object][] = [
    [true, aTerm('zone', 'In', 'x', 'a')],
    [false, aTerm('none', 'In', '')],
    [true, aTerm('empty', 'In', '')],
    [false, aTerm('zone', 'NotIn', 'a')],
    [true, aTerm('none', 'NotIn', 'a')],
    [true, aTerm('zone', 'Exists')],
    [false, aTerm('none', 'Exists')],
    [false, aTerm('zone', 'DoesNotExist')],
    [true, aTerm('toString', 'DoesNotExist')],
    [true, aTerm('cores', 'Gt', '7')],
    [false, aTerm('cores', 'Gt', '8')],
    [true, aTerm('cores', 'Lt', '16')],
    [false, aTerm('zone', 'Lt', '16')],
    [false, aTerm('none', 'Gt', '0')],
    [true, { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }],
    [false, { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n2'] }] }],
    [false, { matchFields: [{ key: 'spec.other', operator: 'Exists' }] }],
  ]
  for (const [expected, term] of CASES) {
    it(`PROV-4 ${expected ? 'matches' : 'does not match'} ${JSON.stringify(term)}`, () => {
      expect(isReachable(term)).toBe(expected)
    })
  }
})

describe('existsOnlyOn', () => {
  const LOCAL = { name: 'n1', labels: { zone: 'a', 'kubernetes.io/hostname': 'host-1', 'topology.example/node': 'n1' } }
  const exists = (...nodeSelectorTerms: object[]) =>
    existsOnlyOn(aVolume({ spec: { nodeAffinity: { required: { nodeSelectorTerms } } } }), LOCAL)

  it('PLUS-11 requires that every term of the node affinity names the node', () => {
    expect(exists(aTerm('kubernetes.io/hostname', 'In', 'host-1'))).toBe(true)
    expect(exists(aTerm('topology.example/node', 'In', 'n1'))).toBe(true)
    expect(exists({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] })).toBe(true)
    expect(exists(aTerm('zone', 'In', 'a'))).toBe(false)
    expect(exists(aTerm('topology.example/node', 'Exists'))).toBe(false)
    expect(exists(aTerm('topology.example/node', 'In', 'n1', 'n2'))).toBe(false)
    expect(exists(aTerm('topology.example/node', 'In', 'n1'), aTerm('topology.example/node', 'In', 'n2'))).toBe(false)
    expect(exists(aTerm('topology.example/node', 'In', 'n2'))).toBe(false)
    expect(exists()).toBe(false)
    expect(existsOnlyOn(aVolume(), LOCAL)).toBe(false)
  })
})

describe('possibleNodeNamesOf', () => {
  it('PLUS-11 returns the values that the node affinity lists with In', () => {
    const nodeSelectorTerms = [aTerm('zone', 'In', 'a'), aTerm('host', 'In', 'n1', 'n2'), aTerm('zone', 'NotIn', 'b')]
    const volume = aVolume({ spec: { nodeAffinity: { required: { nodeSelectorTerms } } } })
    expect(possibleNodeNamesOf(volume)).toEqual(['a', 'n1', 'n2'])
  })
})
