import { describe, expect, it } from 'vitest'
import { aNode, aPod, rejections } from '../plugins.fixture.ts'
import { NODE_UNSCHEDULABLE, nodeUnschedulable } from './node-unschedulable.ts'

describe('NodeUnschedulable', () => {
  const cordoned = aNode({ spec: { unschedulable: true } })
  it('rejects a cordoned node', () => {
    expect(rejections(nodeUnschedulable, aPod(), cordoned)).toEqual([NODE_UNSCHEDULABLE.message])
    expect(rejections(nodeUnschedulable, aPod(), aNode())).toEqual([])
  })
  it('accepts a cordoned node if the pod tolerates the unschedulable taint', () => {
    const tolerations = [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }]
    expect(rejections(nodeUnschedulable, aPod({ tolerations }), cordoned)).toEqual([])
  })
})
