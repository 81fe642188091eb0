import { describe, expect, it } from 'vitest'
import { aVolume } from './claims-and-volumes.fixture.ts'
import { isReachableFrom } from './node-affinity.ts'

const NODE = { name: 'n1', labels: { zone: 'a', cores: '8', empty: '' } }
const reaches = (...nodeSelectorTerms: object[]) =>
  isReachableFrom(aVolume({ spec: { nodeAffinity: { required: { nodeSelectorTerms } } } }), NODE)
const label = (key: string, operator: string, ...values: string[]) => ({
  matchExpressions: [{ key, operator, ...(values.length > 0 ? { values } : {}) }],
})

describe('node affinity of volumes', () => {
  it('PROV-4 reaches a volume without affinity from every node', () => {
    expect(isReachableFrom(aVolume(), NODE)).toBe(true)
    expect(isReachableFrom(aVolume({ spec: { nodeAffinity: {} } }), NODE)).toBe(true)
  })

  it('PROV-4 needs one matching term with all its requirements; an empty term matches no node', () => {
    expect(reaches(label('zone', 'In', 'b'), label('zone', 'In', 'a'))).toBe(true)
    expect(reaches(label('zone', 'In', 'b'), label('zone', 'In', 'c'))).toBe(false)
    const both = [...label('zone', 'In', 'a').matchExpressions, ...label('cores', 'In', '4').matchExpressions]
    expect(reaches({ matchExpressions: both })).toBe(false)
    expect(reaches({})).toBe(false)
    expect(reaches()).toBe(false)
  })

  const CASES: [boolean, object][] = [
    [true, label('zone', 'In', 'x', 'a')],
    [false, label('none', 'In', '')],
    [true, label('empty', 'In', '')],
    [false, label('zone', 'NotIn', 'a')],
    [true, label('none', 'NotIn', 'a')],
    [true, label('zone', 'Exists')],
    [false, label('none', 'Exists')],
    [false, label('zone', 'DoesNotExist')],
    [true, label('toString', 'DoesNotExist')],
    [true, label('cores', 'Gt', '7')],
    [false, label('cores', 'Gt', '8')],
    [true, label('cores', 'Lt', '16')],
    [false, label('zone', 'Lt', '16')],
    [false, label('none', 'Gt', '0')],
    [true, { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }],
    [false, { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n2'] }] }],
    [false, { matchFields: [{ key: 'spec.other', operator: 'Exists' }] }],
  ]
  for (const [expected, term] of CASES) {
    it(`PROV-4 ${expected ? 'matches' : 'does not match'} ${JSON.stringify(term)}`, () => {
      expect(reaches(term)).toBe(expected)
    })
  }
})
