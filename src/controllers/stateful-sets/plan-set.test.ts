import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isInRange, ordinalOf, parseMemberName, podReference, setReference } from './identity.ts'
import { maxUnavailableOf, planSet, type SetAction, type SetPlan } from './plan-set.ts'
import { isAvailable } from './pod-state.ts'
import {
  createClaim,
  createPod,
  createSet,
  createSituation,
  NEW,
  NOW_MS,
  OLD,
  type PodSketch,
} from './stateful-sets.fixture.ts'

/** Formats actions as `create-pod web-0`. */
const describePlan = ({ actions }: SetPlan): string[] =>
  actions.map((action) => `${action.do} ${nameOf(action)}${action.do === 'delete-pod' ? ` ${action.because}` : ''}`)

function nameOf(action: SetAction): string | undefined {
  if (action.do === 'report') return action.reason
  return 'pod' in action ? action.pod.metadata.name : action.claim.metadata.name
}

const planOf = (
  spec: Parameters<typeof createSet>[0],
  sketches: Readonly<Record<number, PodSketch>>,
  options: Parameters<typeof createSituation>[2] = {},
): SetPlan => {
  const set = createSet(spec)
  const pods = Object.entries(sketches).map(([ordinal, sketch]) => createPod(set, Number(ordinal), sketch))
  return planSet(createSituation(set, pods, options))
}
const PARALLEL = { podManagementPolicy: 'Parallel' } as const
const UPDATE = { updateRevision: NEW }

describe('planSet with OrderedReady', () => {
  it('SYS-27 creates the claims and the pod of the first missing ordinal only', () => {
    expect(describePlan(planOf({}, {}))).toEqual(['create-claim data-web-0', 'create-pod web-0'])
    expect(describePlan(planOf({}, { 0: {} }))).toEqual(['create-claim data-web-1', 'create-pod web-1'])
    expect(describePlan(planOf({}, { 0: {}, 2: {} }))).toEqual(['create-claim data-web-1', 'create-pod web-1'])
    expect(describePlan(planOf({}, { 0: {}, 1: {}, 2: {} }))).toEqual([])
  })

  it.each<[string, PodSketch]>([
    ['pending', { state: 'pending' }],
    ['running and not ready', { state: 'running' }],
    ['terminating', { isTerminating: true }],
    ['ready for less than minReadySeconds', { readySeconds: 9 }],
  ])('SYS-27 waits while a predecessor is %s', (_state, sketch) => {
    const plan = planOf({ minReadySeconds: 10 }, { 0: {}, 1: sketch })
    expect(describePlan(plan)).toEqual([])
    expect(plan.waitsFor).toContain('pod web-1')
  })

  it('SYS-27 starts at ordinals.start', () => {
    const spec = { replicas: 2, ordinals: { start: 5 } }
    expect(describePlan(planOf(spec, { 5: {} }))).toEqual(['create-claim data-web-6', 'create-pod web-6'])
    expect(describePlan(planOf(spec, { 0: {}, 5: {}, 6: {} }))).toEqual(['delete-pod web-0 scale-down'])
  })

  it('SYS-27 deletes a terminated pod, and recreates the pod after it is removed', () => {
    expect(describePlan(planOf({}, { 0: { state: 'failed' } }))).toEqual(['delete-pod web-0 terminated'])
    expect(describePlan(planOf({}, { 0: { state: 'failed', isTerminating: true } }))).toEqual([])
  })

  it('SYS-27 scales down one pod after the other, from the highest ordinal', () => {
    const spec = { replicas: 1 }
    expect(describePlan(planOf(spec, { 0: {}, 1: {}, 2: {} }))).toEqual(['delete-pod web-2 scale-down'])
    expect(describePlan(planOf(spec, { 0: {}, 1: {}, 2: { isTerminating: true } }))).toEqual([])
    expect(describePlan(planOf(spec, { 0: {}, 1: { state: 'running' }, 2: {} }))).toEqual([
      'delete-pod web-2 scale-down',
    ])
    expect(describePlan(planOf(spec, { 0: {}, 1: { state: 'running' }, 2: { state: 'running' } }))).toEqual([])
    expect(describePlan(planOf(spec, { 0: { state: 'running' }, 1: {}, 2: {} }))).toEqual([])
    expect(describePlan(planOf(spec, { 0: {}, 1: { state: 'running' } }))).toEqual(['delete-pod web-1 scale-down'])
  })

  it('SYS-27 updates from the highest ordinal down to the partition', () => {
    const pods = { 0: {}, 1: {}, 2: {} }
    expect(describePlan(planOf({}, pods, UPDATE))).toEqual(['delete-pod web-2 update'])
    const updated = { revision: NEW.name }
    expect(describePlan(planOf({}, { ...pods, 2: updated }, UPDATE))).toEqual(['delete-pod web-1 update'])
    expect(describePlan(planOf({}, { ...pods, 2: { ...updated, state: 'pending' } }, UPDATE))).toEqual([])
    const rollingUpdate = { partition: 2, maxUnavailable: 1 }
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate } as const
    expect(describePlan(planOf({ updateStrategy }, { ...pods, 2: updated }, UPDATE))).toEqual([])
  })

  it('SYS-27 updates as many pods as maxUnavailable allows', () => {
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition: 0, maxUnavailable: '70%' } } as const
    expect(describePlan(planOf({ updateStrategy }, { 0: {}, 1: {}, 2: {} }, UPDATE))).toEqual([
      'delete-pod web-2 update',
      'delete-pod web-1 update',
    ])
    expect([
      maxUnavailableOf('1%', 3),
      maxUnavailableOf('70%', 3),
      maxUnavailableOf(5, 3),
      maxUnavailableOf(undefined, 3),
    ]).toEqual([1, 2, 5, 1])
  })

  it('SYS-27 does not update pods with the strategy OnDelete, and creates new pods from the new template', () => {
    const spec = { updateStrategy: { type: 'OnDelete' } } as const
    expect(describePlan(planOf(spec, { 0: {}, 1: {}, 2: {} }, UPDATE))).toEqual([])
    const { actions } = planOf(spec, { 0: {}, 1: {} }, UPDATE)
    expect(actions.at(-1)).toMatchObject({ pod: { metadata: { labels: { 'controller-revision-hash': NEW.name } } } })
  })

  it.each([
    [1, OLD.name],
    [2, NEW.name],
  ])('SYS-27 recreates pod %i from the revision that the partition assigns to it', (ordinal, revision) => {
    const updateStrategy = { type: 'RollingUpdate', rollingUpdate: { partition: 2, maxUnavailable: 1 } } as const
    const pods = Object.fromEntries([0, 1, 2].filter((other) => other !== ordinal).map((other) => [other, {}]))
    const { actions } = planOf({ updateStrategy }, pods, UPDATE)
    expect(actions.at(-1)).toMatchObject({ pod: { metadata: { labels: { 'controller-revision-hash': revision } } } })
  })

  it('SYS-27 does not replace an unready pod after its template was reverted', () => {
    const pods = { 0: {}, 1: {}, 2: { state: 'running', revision: NEW.name } } as const
    expect(describePlan(planOf({}, pods))).toEqual([])
  })

  it('SYS-27 changes nothing while the set is being deleted', () => {
    const set = createSet()
    set.metadata.deletionTimestamp = '2026-01-02T03:04:05Z'
    expect(planSet(createSituation(set, []))).toEqual({ actions: [] })
  })
})

describe('planSet with Parallel', () => {
  it('SYS-27 creates, deletes and replaces pods in parallel', () => {
    expect(
      describePlan(planOf({ ...PARALLEL, volumeClaimTemplates: [] }, { 1: { state: 'failed' }, 3: {}, 4: {} })),
    ).toEqual([
      'create-pod web-0',
      'delete-pod web-1 terminated',
      'create-pod web-2',
      'delete-pod web-4 scale-down',
      'delete-pod web-3 scale-down',
    ])
  })

  it('SYS-27 updates within maxUnavailable, and replaces outdated pods that are already unavailable', () => {
    expect(describePlan(planOf(PARALLEL, { 0: {}, 1: {}, 2: {} }, UPDATE))).toEqual(['delete-pod web-2 update'])
    const pods = { 0: { state: 'running' }, 1: { state: 'pending' }, 2: {} } as const
    expect(describePlan(planOf(PARALLEL, pods, UPDATE))).toEqual(['delete-pod web-1 update', 'delete-pod web-0 update'])
  })
})

describe('planSet and claims', () => {
  const set = createSet({ replicas: 1 })

  it('SYS-27 reuses a claim that exists', () => {
    const plan = planSet(createSituation(set, [], { claims: [createClaim(set, 0)] }))
    expect(describePlan(plan)).toEqual(['create-pod web-0'])
  })

  it.each<[string, ReturnType<typeof createClaim>]>([
    ['is being deleted', createClaim(set, 0, [], { deletionTimestamp: '2026-01-02T03:04:05Z' })],
    [
      'belongs to an earlier pod with the same name',
      createClaim(set, 0, [podReference(createPod(set, 0, { uid: 'gone' }))]),
    ],
    ['belongs to an earlier set with the same name', createClaim(set, 0, [{ ...setReference(set), uid: 'gone' }])],
  ])('SYS-27 does not create the pod while a claim %s', (_state, claim) => {
    const plan = planSet(createSituation(set, [], { claims: [claim] }))
    expect(describePlan(plan)).toEqual(['report FailedCreate'])
    expect(plan.waitsFor).toContain('claim data-web-0')
  })

  it('SYS-27 recreates a missing claim of a pending pod, but not of a running one', () => {
    const planFor = (sketch: PodSketch) => planSet(createSituation(set, [createPod(set, 0, sketch)], { claims: [] }))
    expect(describePlan(planFor({ state: 'pending' }))).toEqual(['create-claim data-web-0'])
    expect(describePlan(planFor({}))).toEqual([])
  })

  it('SYS-27 does not create a pod whose name belongs to a pod of another controller', () => {
    const plan = planSet(createSituation(set, [], { isOccupied: () => true }))
    expect(plan).toEqual({ actions: [], waitsFor: 'pod web-0, which does not belong to the set, to be deleted' })
  })

  it('SYS-27 makes the pod the owner of its claims before it scales the pod down', () => {
    const spec = { replicas: 0, persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete' } } as const
    const plan = planOf(spec, { 0: {}, 1: {} })
    expect(describePlan(plan)).toEqual([
      'set-claim-owners data-web-1',
      'set-claim-owners data-web-0',
      'delete-pod web-1 scale-down',
    ])
  })
})

const sketches = fc.record({
  state: fc.constantFrom('pending', 'running', 'ready', 'failed' as const),
  isTerminating: fc.boolean(),
  revision: fc.constantFrom(OLD.name, NEW.name),
  readySeconds: fc.integer({ min: 0, max: 20 }),
}) as fc.Arbitrary<PodSketch>

const situations = fc
  .record({
    replicas: fc.integer({ min: 0, max: 5 }),
    start: fc.integer({ min: 0, max: 2 }),
    policy: fc.constantFrom('OrderedReady', 'Parallel' as const),
    strategy: fc.constantFrom('RollingUpdate', 'OnDelete' as const),
    partition: fc.integer({ min: 0, max: 5 }),
    maxUnavailable: fc.integer({ min: 1, max: 3 }),
    minReadySeconds: fc.constantFrom(0, 10),
    whenScaled: fc.constantFrom('Retain', 'Delete' as const),
    whenDeleted: fc.constantFrom('Retain', 'Delete' as const),
    pods: fc.dictionary(fc.integer({ min: 0, max: 8 }).map(String), sketches, { maxKeys: 8 }),
    claims: fc.uniqueArray(fc.integer({ min: 0, max: 8 })),
  })
  .map(
    ({
      replicas,
      start,
      policy,
      strategy,
      partition,
      maxUnavailable,
      minReadySeconds,
      whenScaled,
      whenDeleted,
      pods,
      claims,
    }) => {
      const rollingUpdate = strategy === 'RollingUpdate' ? { rollingUpdate: { partition, maxUnavailable } } : {}
      const set = createSet({
        replicas,
        ordinals: { start },
        podManagementPolicy: policy as 'Parallel',
        updateStrategy: { type: strategy as 'OnDelete', ...rollingUpdate },
        minReadySeconds,
        persistentVolumeClaimRetentionPolicy: {
          whenScaled: whenScaled as 'Retain',
          whenDeleted: whenDeleted as 'Retain',
        },
      })
      const storedPods = Object.entries(pods).map(([ordinal, sketch]) => createPod(set, Number(ordinal), sketch))
      return createSituation(set, storedPods, {
        updateRevision: NEW,
        claims: claims.map((ordinal) => createClaim(set, ordinal)),
      })
    },
  )

describe('planSet in any situation', () => {
  it('SYS-27 keeps the invariants of identity, order, budget and retention', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const { set, pods } = situation
        const { actions, waitsFor } = planSet(situation)
        const spec = set.spec!
        const isOrdered = spec.podManagementPolicy === 'OrderedReady'
        const isPodAvailable = (pod: (typeof pods)[number] | undefined) =>
          pod !== undefined && !pod.metadata.deletionTimestamp && isAvailable(pod, spec.minReadySeconds ?? 0, NOW_MS)
        const created = actions.flatMap((action) => (action.do === 'create-pod' ? [ordinalOf(action.pod)] : []))
        const deletions = actions.flatMap((action) => (action.do === 'delete-pod' ? [action] : []))
        const deleted = deletions.map(({ pod }) => ordinalOf(pod))

        // Identity: a pod is created only in range and if no pod has its name, and no pod is deleted twice.
        for (const ordinal of created) {
          expect(isInRange(set, ordinal)).toBe(true)
          expect(pods.some((pod) => ordinalOf(pod) === ordinal)).toBe(false)
        }
        expect(new Set([...created, ...deleted]).size).toBe(created.length + deleted.length)
        for (const { pod } of deletions) expect(pod.metadata.deletionTimestamp).toBeUndefined()

        // Order: one pod at a time unless the budget of an update allows more, and only after its predecessors.
        if (isOrdered) {
          const notUpdates = [...created, ...deletions.filter(({ because }) => because !== 'update')]
          expect(notUpdates.length).toBeLessThanOrEqual(1)
          if (notUpdates.length > 0) expect(deletions.filter(({ because }) => because === 'update')).toEqual([])
          for (const ordinal of created)
            for (let lower = spec.ordinals!.start; lower < ordinal; lower++)
              expect(isPodAvailable(pods.find((pod) => ordinalOf(pod) === lower))).toBe(true)
          for (const { pod, because } of deletions)
            if (because === 'scale-down')
              expect(pods.some((other) => !isInRange(set, ordinalOf(other)) && ordinalOf(other) > ordinalOf(pod))).toBe(
                false,
              )
        }

        // Budget: an update takes down no more available pods than maxUnavailable allows, and none below the partition.
        const updates = deletions.filter(({ because }) => because === 'update')
        if (spec.updateStrategy?.type === 'OnDelete') expect(updates).toEqual([])
        const { partition = 0, maxUnavailable = 1 } = spec.updateStrategy?.rollingUpdate ?? {}
        const available = pods.filter((pod) => isInRange(set, ordinalOf(pod)) && isPodAvailable(pod)).length
        const takenDown = updates.filter(({ pod }) => isPodAvailable(pod)).length
        if (takenDown > 0) expect(spec.replicas! - available + takenDown).toBeLessThanOrEqual(Number(maxUnavailable))
        for (const { pod } of updates) expect(ordinalOf(pod)).toBeGreaterThanOrEqual(spec.ordinals!.start + partition)

        // Retention: no claim has an owner that the policy does not name.
        const { whenScaled, whenDeleted } = spec.persistentVolumeClaimRetentionPolicy!
        for (const action of actions) {
          if (action.do !== 'set-claim-owners' && action.do !== 'create-claim') continue
          const owners = action.do === 'create-claim' ? (action.claim.metadata.ownerReferences ?? []) : action.owners
          const { ordinal } = parseMemberName(action.claim.metadata.name!)!
          for (const { kind } of owners) {
            if (kind === 'Pod') expect([whenScaled, isInRange(set, ordinal)]).toEqual(['Delete', false])
            else expect(whenDeleted).toBe('Delete')
          }
        }

        // Progress: if a plan has no actions, it waits, or the set is as specified.
        if (actions.length === 0 && waitsFor === undefined) {
          const inRange = pods.filter((pod) => isInRange(set, ordinalOf(pod)))
          expect([inRange.length, pods.length - inRange.length]).toEqual([spec.replicas, 0])
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
