import { describe, expect, it } from 'vitest'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { nodeChanged } from './shared-hints.ts'

describe('nodeChanged', () => {
  const aNode = (status: Node['status']) => ({ metadata: { name: 'n' }, status }) as Node
  const keysOf = (old: Node, next: Node) => nodeChanged.keysOfEvent({ old, next } as never)

  it.each([
    ['allocatable', { allocatable: { cpu: '1' } }, { allocatable: { cpu: '2' } }],
    ['capacity, without allocatable', { capacity: { cpu: '1' } }, { capacity: { cpu: '2' } }],
  ])('CAP-12 wakes pods that wait for a node if %s changes, and no pods otherwise', (_, old, next) => {
    expect(keysOf(aNode(old), aNode(next))).not.toEqual([])
    expect(keysOf(aNode(old), aNode(old))).toEqual([])
  })
})
