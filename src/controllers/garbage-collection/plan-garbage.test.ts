import { describe, expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import type { GraphNode } from './owner-graph.ts'
import { type OwnerState, planGarbage } from './plan-garbage.ts'

const DELETED_AT = '2026-01-01T00:00:00Z'

const aNode = (metadata: object = {}): GraphNode => ({
  kind: configMapKind,
  object: { metadata: { name: 'x', uid: 'x-uid', resourceVersion: '1', ...metadata } },
})
const ownersWithStates = (states: readonly OwnerState[]) =>
  states.map((state, index) => ({
    reference: { apiVersion: 'v1', kind: 'ConfigMap', name: `o${index}`, uid: `o${index}` },
    state,
  }))
const plan = (node: GraphNode, states: OwnerState[] = [], dependents: GraphNode[] = []) =>
  planGarbage({ node, owners: ownersWithStates(states), dependents })

describe('planGarbage', () => {
  it.each<[string, OwnerState[], object]>([
    ['does nothing without owners', [], { do: 'nothing' }],
    ['does nothing while all owners exist', ['present', 'present'], { do: 'nothing' }],
    ['does nothing if the kind of the owner is not served', ['unknown'], { do: 'nothing' }],
    [
      'deletes an object if none of its owners exists',
      ['absent', 'absent'],
      { do: 'delete', propagation: 'Background' },
    ],
    [
      'removes the reference to a deleted owner if the kind of the other owner is not served',
      ['absent', 'unknown'],
      { do: 'remove-owners', uids: ['o0'] },
    ],
    [
      'removes the reference to a deleted owner if another owner exists',
      ['present', 'absent'],
      { do: 'remove-owners', uids: ['o1'] },
    ],
    [
      'deletes an object whose only owner is in foreground deletion',
      ['terminating'],
      { do: 'delete', propagation: 'Background' },
    ],
    [
      'does nothing if one owner is in foreground deletion and another exists',
      ['terminating', 'present'],
      { do: 'nothing' },
    ],
  ])('%s', (_title, states, expected) => {
    expect(plan(aNode(), states)).toEqual(expected)
  })

  it('uses foreground deletion for an object that has dependents and whose owner is in foreground deletion', () => {
    expect(plan(aNode(), ['terminating'], [aNode()])).toEqual({ do: 'delete', propagation: 'Foreground' })
  })

  it('does nothing for an object in background deletion', () => {
    expect(plan(aNode({ deletionTimestamp: DELETED_AT }), ['absent'])).toEqual({ do: 'nothing' })
  })

  it('removes the foreground finalizer only if no dependent blocks the deletion', () => {
    const node = aNode({ deletionTimestamp: DELETED_AT, finalizers: ['foregroundDeletion'] })
    const aBlockingDependent = (metadata: object = {}) =>
      aNode({ ownerReferences: [{ uid: 'x-uid', blockOwnerDeletion: true }], ...metadata })
    const aNonBlockingDependent = aNode({ ownerReferences: [{ uid: 'x-uid' }] })
    expect(plan(node)).toEqual({ do: 'remove-finalizer', finalizer: 'foregroundDeletion' })
    expect(plan(node, [], [aNonBlockingDependent])).toMatchObject({ do: 'remove-finalizer' })
    expect(plan(node, [], [aBlockingDependent()])).toMatchObject({ do: 'delete-dependents' })
    expect(plan(node, [], [aBlockingDependent({ deletionTimestamp: DELETED_AT })])).toEqual({ do: 'nothing' })
  })

  it('orphans the dependents before removing the orphan finalizer', () => {
    const node = aNode({ deletionTimestamp: DELETED_AT, finalizers: ['orphan'] })
    expect(plan(node, [], [aNode()])).toMatchObject({ do: 'orphan-dependents' })
    expect(plan(node)).toEqual({ do: 'remove-finalizer', finalizer: 'orphan' })
  })
})
