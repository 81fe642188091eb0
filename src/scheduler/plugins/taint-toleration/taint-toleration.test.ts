import { describe, expect, it } from 'vitest'
import type { Taint } from '../../../api/kinds/node/node-schema.ts'
import { aNode, aPod, rejections, scores } from '../plugins.fixture.ts'
import { taintToleration, UNTOLERATED_TAINT } from './taint-toleration.ts'

describe('TaintToleration', () => {
  const aTaintedNode = (effect: Taint['effect'], value = 'v') =>
    aNode({ spec: { taints: [{ key: 'k', value, effect }] } })
  const isRejected = (toleration: object, effect: Taint['effect'] = 'NoSchedule', value = 'v') =>
    rejections(taintToleration, aPod({ tolerations: [toleration] }), aTaintedNode(effect, value)).length > 0

  it('rejects a node with an untolerated taint, unless its effect is PreferNoSchedule', () => {
    expect(rejections(taintToleration, aPod(), aTaintedNode('NoSchedule'))).toEqual([UNTOLERATED_TAINT.message])
    expect(rejections(taintToleration, aPod(), aTaintedNode('NoExecute'))).toEqual([UNTOLERATED_TAINT.message])
    expect(rejections(taintToleration, aPod(), aTaintedNode('PreferNoSchedule'))).toEqual([])
  })

  it.each([
    ['accepts', { key: 'k', operator: 'Exists' }],
    ['accepts', { operator: 'Exists' }],
    ['accepts', { key: 'k', value: 'v' }],
    ['rejects', { key: 'k', operator: 'Equal', value: 'other' }],
    ['rejects', { key: 'other', operator: 'Exists' }],
    ['rejects', { key: 'k', operator: 'Exists', effect: 'NoExecute' }],
    ['accepts', { key: 'k', operator: 'Exists', effect: 'NoSchedule' }],
  ])('%s a tainted node for the toleration %j', (outcome, toleration) => {
    expect(isRejected(toleration)).toBe(outcome === 'rejects')
  })

  it('compares numbers for the operators Gt and Lt', () => {
    expect(isRejected({ key: 'k', operator: 'Gt', value: '5' }, 'NoSchedule', '10')).toBe(false)
    expect(isRejected({ key: 'k', operator: 'Lt', value: '5' }, 'NoSchedule', '10')).toBe(true)
    expect(isRejected({ key: 'k', operator: 'Gt', value: '5' }, 'NoSchedule', 'many')).toBe(true)
  })

  it('scores a node with a PreferNoSchedule taint lower', () => {
    expect(scores(taintToleration, aPod(), [aTaintedNode('PreferNoSchedule'), aNode()])).toEqual([0, 100])
  })
})
