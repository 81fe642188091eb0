import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Node, Taint } from '../../api/kinds/node/node-schema.ts'
import { isLost, taintsDue, toleratedMs } from './taints.ts'

const NOW = '2026-01-01T00:00:00Z'
const aNode = (ready: string, taints: Taint[] = []): Node => ({
  metadata: { name: 'a' },
  spec: { taints },
  status: { conditions: [{ type: 'Ready', status: ready }] },
})
const unreachable: Taint = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }
const notReady: Taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }
const team: Taint = { key: 'team', value: 'storage', effect: 'NoExecute' }

describe('taintsDue', () => {
  it('SYS-18 keeps timeAdded of an existing taint', () => {
    const old = { ...unreachable, timeAdded: '2020-01-01T00:00:00Z' }
    expect(taintsDue(aNode('Unknown', [old]), NOW)).toEqual([
      old,
      { key: unreachable.key, effect: 'NoSchedule', timeAdded: NOW },
    ])
  })

  it('SYS-18 converges in one step and keeps other taints, for any conditions and taints', () => {
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
      fc.property(fc.constantFrom('True', 'False', 'Unknown'), taints, (ready, there) => {
        const due = taintsDue(aNode(ready, there), NOW) ?? there
        expect(taintsDue(aNode(ready, due), NOW)).toBeUndefined()
        expect(isLost(due)).toBe(ready !== 'True')
        const others = (all: Taint[]) => all.filter(({ key, effect }) => key === 'x' || effect === 'PreferNoSchedule')
        expect(others(due)).toEqual(others(there))
      }),
    )
  })
})

describe('toleratedMs', () => {
  it('SYS-18 is 300 s for a lost node by default', () => {
    expect(toleratedMs([unreachable])).toBe(300_000)
    expect(toleratedMs([notReady])).toBe(300_000)
    expect(toleratedMs([unreachable], [{ key: unreachable.key, operator: 'Exists', tolerationSeconds: 6 }])).toBe(6_000)
    expect(toleratedMs([unreachable], [{ operator: 'Exists' }])).toBe(Number.POSITIVE_INFINITY)
    expect(toleratedMs([unreachable], [{ operator: 'Exists', effect: 'NoSchedule' }])).toBe(300_000)
  })

  it('SYS-18 is the shortest toleration of all taints, at least 0', () => {
    const bears = (tolerationSeconds?: number) => ({
      key: 'team',
      value: 'storage',
      effect: 'NoExecute' as const,
      ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
    })
    expect(toleratedMs([team])).toBe(0)
    expect(toleratedMs([team], [bears()])).toBe(Number.POSITIVE_INFINITY)
    expect(toleratedMs([team, unreachable], [bears()])).toBe(300_000)
    expect(toleratedMs([team, unreachable], [bears(20)])).toBe(20_000)
    expect(toleratedMs([team], [bears(-5)])).toBe(0)
    expect(toleratedMs([])).toBe(Number.POSITIVE_INFINITY)
  })
})
