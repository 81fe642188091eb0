// Tests planLostNode with one node that passes through all phases, and with properties that hold for arbitrary facts.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  OUT_OF_SERVICE_TAINT,
  QUARANTINE_TAINT,
  quarantineOf,
  RELEASED_FENCE,
} from '../../../api/kinds/node/fencing.ts'
import type { Node } from '../../../api/kinds/node/node-schema.ts'
import { type LostNodeFacts, phaseOf, planLostNode } from './plan-lost-node.ts'

const OUT_OF_SERVICE = { key: OUT_OF_SERVICE_TAINT, effect: 'NoExecute' as const }
const quarantine = (value: string) => ({ key: QUARANTINE_TAINT, value, effect: 'NoSchedule' as const })
const OPTIONS = { now: '2026-01-01T00:00:00Z', fenceId: 'fence-7' }

interface NodeOptions {
  readonly ready?: string
  readonly taints?: NonNullable<NonNullable<Node['spec']>['taints']>
  readonly released?: string
}

const aNode = ({ ready, taints = [], released }: NodeOptions): Node =>
  ({
    metadata: { name: 'a', ...(released === undefined ? {} : { annotations: { [RELEASED_FENCE]: released } }) },
    spec: { taints },
    status: { conditions: ready === undefined ? [] : [{ type: 'Ready', status: ready }] },
  }) as Node

const facts = (node: Node, fields: Partial<LostNodeFacts> = {}): LostNodeFacts => ({
  node,
  isSilent: true,
  leavingPodCount: 0,
  attachmentCount: 0,
  ownObjectCount: 0,
  staleVolumes: [],
  ...fields,
})

/** Returns the node after the plan was written. */
function applyPlan(node: Node, plan: ReturnType<typeof planLostNode>): Node {
  const written = new Set(plan.conditions.map(({ type }) => type))
  const keptConditions = (node.status?.conditions ?? []).filter(({ type }) => !written.has(type))
  return {
    ...node,
    spec: { ...node.spec, taints: [...(plan.taints ?? node.spec?.taints ?? [])] },
    status: { ...node.status, conditions: [...keptConditions, ...plan.conditions] },
  }
}

describe('planLostNode', () => {
  it('PLUS-11 moves a lost node from Unreachable to Cleaned and back into service', () => {
    let node = aNode({ ready: 'Unknown' })
    const step = (change: Partial<NodeOptions>, fields: Partial<LostNodeFacts> = {}) => {
      const { conditions = [] } = node.status ?? {}
      const changed = aNode({ ready: conditions.find(({ type }) => type === 'Ready')?.status ?? '', ...change })
      node = {
        metadata: { ...node.metadata, ...(change.released ? changed.metadata : {}) },
        spec: change.taints ? changed.spec : node.spec,
        status: {
          conditions: [...(changed.status?.conditions ?? []), ...conditions.filter(({ type }) => type !== 'Ready')],
        },
      } as Node
      const plan = planLostNode(facts(node, fields), OPTIONS)
      node = applyPlan(node, plan)
      expect(phaseOf(node)).toBe(plan.phase)
      return plan.phase
    }
    expect(step({})).toBe('Unreachable')
    expect(step({ taints: [OUT_OF_SERVICE] }, { leavingPodCount: 1, attachmentCount: 2, ownObjectCount: 1 })).toBe(
      'Fenced',
    )
    expect(quarantineOf(node)).toBe('fence-7')
    expect(step({}, { attachmentCount: 1, ownObjectCount: 1 })).toBe('Fenced')
    expect(step({}, { ownObjectCount: 1 })).toBe('Lost')
    expect(step({})).toBe('Cleaned')
    expect(step({ ready: 'True' }, { staleVolumes: ['x'] })).toBe('Quarantined')
    expect(step({ released: 'fence-6' })).toBe('Quarantined') // an earlier fence
    expect(step({ released: 'fence-7' })).toBe('InService')
    expect(node.spec?.taints).toEqual([])
    expect(node.status?.conditions?.filter(({ status }) => status === 'True').map(({ type }) => type)).toEqual([
      'Ready',
    ])
  })

  it('PLUS-11 changes nothing on a node that was never lost, and does not fence a node that reports', () => {
    expect(planLostNode(facts(aNode({ ready: 'True' })), OPTIONS)).toMatchObject({ phase: 'InService', conditions: [] })
    expect(planLostNode(facts(aNode({})), OPTIONS)).toMatchObject({ phase: 'InService', conditions: [] })
    const tainted = planLostNode(facts(aNode({ ready: 'True', taints: [OUT_OF_SERVICE] })), OPTIONS)
    expect(tainted).toMatchObject({ phase: 'InService', conditions: [] })
    expect(tainted.taints).toBeUndefined()
  })

  const anyFacts = fc
    .record({
      ready: fc.constantFrom(undefined, 'True', 'False', 'Unknown'),
      isOutOfService: fc.boolean(),
      fence: fc.constantFrom(undefined, 'fence-1', 'fence-2'),
      released: fc.constantFrom(undefined, 'fence-1', 'fence-2', ''),
      isSilent: fc.boolean(),
      leavingPodCount: fc.nat(2),
      attachmentCount: fc.nat(2),
      ownObjectCount: fc.nat(2),
      staleVolumes: fc.subarray(['x', 'y']),
    })
    .map(({ ready, isOutOfService, fence, released, ...fields }) =>
      facts(
        aNode({
          ...(ready === undefined ? {} : { ready }),
          taints: [...(isOutOfService ? [OUT_OF_SERVICE] : []), ...(fence === undefined ? [] : [quarantine(fence)])],
          ...(released === undefined ? {} : { released }),
        }),
        fields,
      ),
    )
  const readyStatusOf = ({ node }: LostNodeFacts) =>
    node.status?.conditions?.find(({ type }) => type === 'Ready')?.status

  it('PLUS-11 removes nothing unless the machine is confirmed to be off and silent, and plans Lost only without pods or attachments', () => {
    fc.assert(
      fc.property(anyFacts, (given) => {
        const plan = planLostNode(given, OPTIONS)
        const isConfirmed = given.node.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE_TAINT)
        if (plan.removesOwnObjects) {
          expect(isConfirmed).toBe(true)
          expect(readyStatusOf(given)).toBe('Unknown')
          expect(given.isSilent).toBe(true)
        }
        if (plan.phase === 'Lost' || plan.phase === 'Cleaned')
          expect(given.attachmentCount + given.leavingPodCount).toBe(0)
      }),
    )
  })

  it('PLUS-11 ends a fence only if the node reports, its agent has confirmed this fence, and no stale volume is in use', () => {
    fc.assert(
      fc.property(anyFacts, (given) => {
        const fence = quarantineOf(given.node)
        const plan = planLostNode(given, OPTIONS)
        const after = applyPlan(given.node, plan)
        const mayEnd =
          readyStatusOf(given) === 'True' &&
          given.node.metadata.annotations?.[RELEASED_FENCE] === fence &&
          given.staleVolumes.length === 0
        if (fence !== undefined && quarantineOf(after) === undefined) expect(mayEnd).toBe(true)
        if (plan.phase !== 'InService' && plan.phase !== 'Unreachable') expect(quarantineOf(after)).toBeDefined()
      }),
    )
  })

  it('PLUS-11 plans no further change after its plan was written, and the conditions show the phase', () => {
    fc.assert(
      fc.property(anyFacts, (given) => {
        const plan = planLostNode(given, OPTIONS)
        const after = applyPlan(given.node, plan)
        expect(phaseOf(after)).toBe(plan.phase)
        if (plan.phase === 'InService' && plan.taints) return // a returned node has other facts
        const secondPlan = planLostNode({ ...given, node: after }, OPTIONS)
        expect(secondPlan).toMatchObject({ phase: plan.phase, conditions: [] })
        expect(secondPlan.taints).toBeUndefined()
      }),
    )
  })
})
