import { describe, expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import type { Node } from './owner-graph.ts'
import { type OwnerState, planGarbage } from './plan-garbage.ts'

const aNode = (metadata: object = {}): Node => ({
  kind: configMapKind,
  object: { metadata: { name: 'x', uid: 'x-uid', resourceVersion: '1', ...metadata } },
})
const owners = (...states: OwnerState[]) =>
  states.map((state, index) => ({
    reference: { apiVersion: 'v1', kind: 'ConfigMap', name: `o${index}`, uid: `o${index}` },
    state,
  }))
const plan = (node: Node, states: OwnerState[] = [], dependents: Node[] = []) =>
  planGarbage({ node, owners: owners(...states), dependents })

describe('planGarbage', () => {
  it.each<[string, OwnerState[], object]>([
    ['does nothing without owners', [], { do: 'nothing' }],
    ['does nothing while all owners exist', ['present', 'present'], { do: 'nothing' }],
    ['does nothing if the kind of the owner is not served', ['unknown'], { do: 'nothing' }],
    ['deletes an object without existing owners', ['absent', 'absent'], { do: 'delete', propagation: 'Background' }],
    [
      'removes a deleted owner beside one whose kind is not served',
      ['absent', 'unknown'],
      { do: 'remove-owners', uids: ['o0'] },
    ],
    ['removes a deleted owner beside one that exists', ['present', 'absent'], { do: 'remove-owners', uids: ['o1'] }],
    [
      'deletes a dependent whose only owner is in foreground deletion',
      ['leaving'],
      { do: 'delete', propagation: 'Background' },
    ],
    [
      'keeps a dependent with one owner in foreground deletion and another that stays',
      ['leaving', 'present'],
      { do: 'nothing' },
    ],
  ])('%s', (_title, states, action) => {
    expect(plan(aNode(), states)).toEqual(action)
  })

  it('deletes in the foreground a dependent that has dependents itself', () => {
    expect(plan(aNode(), ['leaving'], [aNode()])).toEqual({ do: 'delete', propagation: 'Foreground' })
  })

  it('does nothing for an object in background deletion', () => {
    expect(plan(aNode({ deletionTimestamp: '2026-01-01T00:00:00Z' }), ['absent'])).toEqual({ do: 'nothing' })
  })

  it('removes the foreground finalizer once no dependent blocks it', () => {
    const node = aNode({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] })
    const blocking = (extra: object = {}) =>
      aNode({ ownerReferences: [{ uid: 'x-uid', blockOwnerDeletion: true }], ...extra })
    expect(plan(node)).toEqual({ do: 'remove-finalizer', finalizer: 'foregroundDeletion' })
    expect(plan(node, [], [aNode({ ownerReferences: [{ uid: 'x-uid' }] })])).toMatchObject({ do: 'remove-finalizer' })
    expect(plan(node, [], [blocking()])).toMatchObject({ do: 'delete-dependents' })
    expect(plan(node, [], [blocking({ deletionTimestamp: '2026-01-01T00:00:00Z' })])).toEqual({ do: 'nothing' })
  })

  it('orphans dependents before it removes the orphan finalizer', () => {
    const node = aNode({ deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['orphan'] })
    expect(plan(node, [], [aNode()])).toMatchObject({ do: 'orphan-dependents' })
    expect(plan(node)).toEqual({ do: 'remove-finalizer', finalizer: 'orphan' })
  })
})
