import { describe, expect, it } from 'vitest'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { ANY_NODE, nodeChanged } from './shared-hints.ts'

describe('nodeChanged', () => {
  const aNode = (status: Node['status']) => ({ metadata: { name: 'n' }, status }) as Node
  const keysOf = (old: Node, next: Node) => nodeChanged.keysOfEvent({ old, next } as never)

  it.each([
    ['allocatable', { allocatable: { cpu: '1' } }, { allocatable: { cpu: '2' } }],
    ['capacity, without allocatable', { capacity: { cpu: '1' } }, { capacity: { cpu: '2' } }],
  ])('CAP-12 wakes the pods that wait for any node if %s changes', (_, old, next) => {
    expect(keysOf(aNode(old), aNode(next))).toEqual(ANY_NODE)
  })

  it('CAP-12 wakes no pods if no field changes that plugins read', () => {
    const status = (lastHeartbeatTime: string) => ({
      allocatable: { cpu: '1' },
      conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime }],
    })
    expect(keysOf(aNode(status('2026-01-02T03:04:05Z')), aNode(status('2026-01-02T03:04:15Z')))).toEqual([])
  })
})
