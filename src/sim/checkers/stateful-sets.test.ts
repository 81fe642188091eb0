// Tests the checkers of stateful sets with planted violations.
import { describe, expect, it } from 'vitest'
import { findStatefulSetProblems } from './at-rest/stateful-sets.ts'
import { createFixture } from './checkers.fixture.ts'
import { checkStatefulSets } from './stateful-sets.ts'

const READY = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }

const createSet = (spec: object = {}, fields: object = {}) => ({
  metadata: { namespace: 'team-a', name: 'set0', generation: 1 },
  spec: {
    replicas: 2,
    podManagementPolicy: 'OrderedReady',
    updateStrategy: { type: 'RollingUpdate' },
    persistentVolumeClaimRetentionPolicy: { whenScaled: 'Retain', whenDeleted: 'Retain' },
    ...spec,
  },
  ...fields,
})
const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'set0', uid: 'uid-set0', controller: true }
const createPod = (ordinal: number, status: object = READY, claimOrdinal = ordinal) => ({
  metadata: {
    namespace: 'team-a',
    name: `set0-${ordinal}`,
    ownerReferences: [owner],
    labels: { 'controller-revision-hash': 'r1' },
  },
  spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `data-set0-${claimOrdinal}` } }] },
  status,
})
const createClaim = (ownerReferences?: object[]) => ({
  metadata: { namespace: 'team-a', name: 'data-set0-0', ...(ownerReferences ? { ownerReferences } : {}) },
})

describe('checkStatefulSets', () => {
  const start = () => {
    const fixture = createFixture()
    checkStatefulSets(fixture.context)
    return fixture
  }

  it('order: reports a pod whose predecessor is not ready', () => {
    const fixture = start()
    fixture.put(['set', createSet()], ['pod', createPod(0)])
    fixture.put(['pod', createPod(1)])
    expect(fixture.violations).toEqual([])
    const early = start()
    early.put(['set', createSet()], ['pod', createPod(0, { phase: 'Pending' })])
    early.put(['pod', createPod(1)])
    expect(early.violations).toEqual(['order: pod team-a/set0-1 was created, but team-a/set0-0 is not ready'])
    const parallel = start()
    parallel.put(['set', createSet({ podManagementPolicy: 'Parallel' })])
    parallel.put(['pod', createPod(1)])
    expect(parallel.violations).toEqual([])
  })

  it('identity: reports a pod that uses the claim of another ordinal', () => {
    const fixture = start()
    fixture.put(['set', createSet()], ['pod', createPod(0)])
    fixture.put(['pod', createPod(1, READY, 0)])
    expect(fixture.violations).toEqual([
      'identity: pod team-a/set0-1 uses the claim team-a/data-set0-0',
      'identity: pods team-a/set0-1 and team-a/set0-0 use the claim team-a/data-set0-0',
    ])
  })

  it('retention: reports an owner of a retained claim, and its deletion', () => {
    const fixture = start()
    fixture.put(['set', createSet()], ['claim', createClaim()])
    fixture.put(['claim', createClaim([owner])])
    expect(fixture.violations).toEqual([
      'retention: claim team-a/data-set0-0 got an owner of kind StatefulSet, although whenDeleted is Retain',
    ])
    const deleted = start()
    deleted.put(['set', createSet()], ['claim', createClaim()])
    deleted.put(['claim', { metadata: { ...createClaim().metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }])
    expect(deleted.violations).toEqual(['retention: claim team-a/data-set0-0 was deleted, although it had no owner'])
    const allowed = start()
    const policy = { whenScaled: 'Retain', whenDeleted: 'Delete' }
    allowed.put(['set', createSet({ persistentVolumeClaimRetentionPolicy: policy })], ['claim', createClaim()])
    allowed.put(['claim', createClaim([owner])])
    expect(allowed.violations).toEqual([])
  })
})

describe('findStatefulSetProblems', () => {
  const STATUS = { observedGeneration: 1, updateRevision: 'r1', currentRevision: 'r1' }
  const counts = (count: number) => ({
    status: { ...STATUS, replicas: count, readyReplicas: count, updatedReplicas: count, currentReplicas: count },
  })
  function problemsWith(set: object, pods: readonly object[]): string[] {
    const fixture = createFixture()
    fixture.put(['set', set as never], ...pods.map((pod) => ['pod', pod] as never))
    const [storedSet] = fixture.context.view.sets.values()
    return findStatefulSetProblems(storedSet!, fixture.context as never).map(({ rule }) => rule)
  }

  it('set status, missing, not deleted, needless wait: reports sets that are not as specified', () => {
    expect(problemsWith(createSet({}, counts(2)), [createPod(0), createPod(1)])).toEqual([])
    expect(problemsWith(createSet({}, counts(1)), [createPod(0), createPod(1)])).toEqual(['set status'])
    expect(problemsWith(createSet({}, counts(1)), [createPod(0)])).toEqual(['missing'])
    expect(problemsWith(createSet({ replicas: 1 }, counts(2)), [createPod(0), createPod(1)])).toEqual(['not deleted'])
    const { status } = counts(2)
    const outdated = { status: { ...status, updateRevision: 'r2', updatedReplicas: 0 } }
    expect(problemsWith(createSet({}, outdated), [createPod(0), createPod(1)])).toEqual(['needless wait'])
  })
})
