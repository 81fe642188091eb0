import { describe, expect, it } from 'vitest'
import type { Taint } from '../../../api/kinds/node/node-schema.ts'
import { aNode, aPod, rejections, scores } from '../plugins.fixture.ts'
import { taintToleration, UNTOLERATED_TAINT } from './taint-toleration.ts'

describe('TaintToleration', () => {
  const aTaintedNode = (effect: Taint['effect'], value = 'v') =>
    aNode({ spec: { taints: [{ key: 'k', value, effect }] } })
  const isRejected = (toleration: object, effect: Taint['effect'] = 'NoSchedule', value = 'v') =>
    rejections(taintToleration, aPod({ tolerations: [toleration] }), aTaintedNode(effect, value)).length > 0

  it('CAP-12 rejects a node with an untolerated taint, unless its effect is PreferNoSchedule', () => {
    expect(rejections(taintToleration, aPod(), aTaintedNode('NoSchedule'))).toEqual([UNTOLERATED_TAINT.message])
    expect(rejections(taintToleration, aPod(), aTaintedNode('NoExecute'))).toEqual([UNTOLERATED_TAINT.message])
    expect(rejections(taintToleration, aPod(), aTaintedNode('PreferNoSchedule'))).toEqual([])
  })

  it.each([
    [{ key: 'k', operator: 'Exists' }, false],
    [{ operator: 'Exists' }, false],
    [{ key: 'k', value: 'v' }, false],
    [{ key: 'k', operator: 'Equal', value: 'other' }, true],
    [{ key: 'other', operator: 'Exists' }, true],
    [{ key: 'k', operator: 'Exists', effect: 'NoExecute' }, true],
    [{ key: 'k', operator: 'Exists', effect: 'NoSchedule' }, false],
  ])('CAP-12 evaluates the toleration %j: node rejected %s', (toleration, expected) => {
    expect(isRejected(toleration)).toBe(expected)
  })

  it('CAP-12 compares numbers for the operators Gt and Lt', () => {
    expect(isRejected({ key: 'k', operator: 'Gt', value: '5' }, 'NoSchedule', '10')).toBe(false)
    expect(isRejected({ key: 'k', operator: 'Lt', value: '5' }, 'NoSchedule', '10')).toBe(true)
    expect(isRejected({ key: 'k', operator: 'Gt', value: '5' }, 'NoSchedule', 'many')).toBe(true)
  })

  it('CAP-12 scores a node with a PreferNoSchedule taint lower', () => {
    expect(scores(taintToleration, aPod(), [aTaintedNode('PreferNoSchedule'), aNode()])).toEqual([0, 100])
  })
})
