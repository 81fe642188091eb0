import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Node, Taint } from '../../api/kinds/node/node-schema.ts'
import { desiredTaints, hasNotReadyTaint, tolerationMs } from './taints.ts'

const NOW = '2026-01-01T00:00:00Z'
const aNode = (ready: string, taints: Taint[] = []): Node => ({
  metadata: { name: 'a' },
  spec: { taints },
  status: { conditions: [{ type: 'Ready', status: ready }] },
})
const unreachableTaint: Taint = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }
const notReadyTaint: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }
const teamTaint: Taint = { key: 'team', value: 'storage', effect: 'NoExecute' }

describe('desiredTaints', () => {
  it('keeps timeAdded of an existing taint', () => {
    const existingTaint = { ...unreachableTaint, timeAdded: '2020-01-01T00:00:00Z' }
    expect(desiredTaints(aNode('Unknown', [existingTaint]), NOW)).toEqual([
      existingTaint,
      { key: unreachableTaint.key, effect: 'NoSchedule', timeAdded: NOW },
    ])
  })

  it('converges in one step and keeps other taints, for any conditions and taints', () => {
    const keys = [
      'node.kubernetes.io/unreachable',
      'node.kubernetes.io/not-ready',
      'node.kubernetes.io/disk-pressure',
      'x',
    ]
    const taint = fc.record({
      key: fc.constantFrom(...keys),
      effect: fc.constantFrom('NoSchedule' as const, 'NoExecute' as const, 'PreferNoSchedule' as const),
    })
    const taints = fc.uniqueArray(taint, { selector: ({ key, effect }) => `${key}:${effect}` })
    fc.assert(
      fc.property(fc.constantFrom('True', 'False', 'Unknown'), taints, (ready, existingTaints) => {
        const newTaints = desiredTaints(aNode(ready, existingTaints), NOW) ?? existingTaints
        expect(desiredTaints(aNode(ready, newTaints), NOW)).toBeUndefined()
        expect(hasNotReadyTaint(newTaints)).toBe(ready !== 'True')
        const unmanagedTaints = (allTaints: Taint[]) =>
          allTaints.filter(({ key, effect }) => key === 'x' || effect === 'PreferNoSchedule')
        expect(unmanagedTaints(newTaints)).toEqual(unmanagedTaints(existingTaints))
      }),
    )
  })
})

describe('tolerationMs', () => {
  it('is 300 s for an unreachable node unless the pod sets its own toleration', () => {
    expect(tolerationMs([unreachableTaint])).toBe(300_000)
    expect(tolerationMs([notReadyTaint])).toBe(300_000)
    expect(
      tolerationMs([unreachableTaint], [{ key: unreachableTaint.key, operator: 'Exists', tolerationSeconds: 6 }]),
    ).toBe(6_000)
    expect(tolerationMs([unreachableTaint], [{ operator: 'Exists' }])).toBe(Number.POSITIVE_INFINITY)
    expect(tolerationMs([unreachableTaint], [{ operator: 'Exists', effect: 'NoSchedule' }])).toBe(300_000)
  })

  it('is the shortest toleration of all taints, at least 0', () => {
    const aToleration = (tolerationSeconds?: number) => ({
      key: 'team',
      value: 'storage',
      effect: 'NoExecute' as const,
      ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
    })
    expect(tolerationMs([teamTaint])).toBe(0)
    expect(tolerationMs([teamTaint], [aToleration()])).toBe(Number.POSITIVE_INFINITY)
    expect(tolerationMs([teamTaint, unreachableTaint], [aToleration()])).toBe(300_000)
    expect(tolerationMs([teamTaint, unreachableTaint], [aToleration(20)])).toBe(20_000)
    expect(tolerationMs([teamTaint], [aToleration(-5)])).toBe(0)
    expect(tolerationMs([])).toBe(Number.POSITIVE_INFINITY)
  })
})
