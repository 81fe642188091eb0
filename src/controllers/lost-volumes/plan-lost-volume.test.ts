// Tests planLostVolume with one volume under each policy, and with properties that hold for arbitrary facts.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OUT_OF_SERVICE_TAINT } from '../../api/kinds/node/fencing.ts'
import type { LostVolumePolicy } from '../../volumes/lost-volume-policy.ts'
import {
  CLAIM_PROTECTION_FINALIZER,
  EXTERNAL_PROVISIONER_FINALIZER,
  VOLUME_PROTECTION_FINALIZER,
} from '../../volumes/names.ts'
import { type LostVolumeFacts, planLostVolume, VOLUME_LOST } from './plan-lost-volume.ts'

const LOST_MS = Date.parse('2026-01-01T00:00:00Z')
const HOUR_MS = 3_600_000
const MARK_LOST: LostVolumePolicy = { do: 'mark-lost' }
const DELETE: LostVolumePolicy = { do: 'delete', afterMs: HOUR_MS, after: '1h' }

const aNode = ({ isLost = true, ready = 'Unknown', isOutOfService = true, time = '2026-01-01T00:00:00Z' } = {}) =>
  ({
    metadata: { name: 'a', uid: 'node', resourceVersion: '1' },
    spec: { taints: isOutOfService ? [{ key: OUT_OF_SERVICE_TAINT, effect: 'NoExecute' }] : [] },
    status: {
      conditions: [
        { type: 'Ready', status: ready },
        { type: 'Lost', status: isLost ? 'True' : 'False', lastTransitionTime: time },
      ],
    },
  }) as LostVolumeFacts['node']

const aVolume = ({ reclaim = 'Delete', isDeleted = false, finalizers = [EXTERNAL_PROVISIONER_FINALIZER] } = {}) =>
  ({
    metadata: {
      name: 'v',
      uid: 'volume',
      resourceVersion: '1',
      finalizers,
      ...(isDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { persistentVolumeReclaimPolicy: reclaim },
  }) as LostVolumeFacts['volume']

const aClaim = ({ isMarked = false, isDeleted = false } = {}) =>
  ({
    metadata: {
      namespace: 'shop',
      name: 'data',
      uid: 'claim',
      resourceVersion: '1',
      finalizers: [CLAIM_PROTECTION_FINALIZER],
      ...(isDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    status: {
      phase: 'Bound',
      conditions: [{ type: 'Resizing', status: 'True' }, ...(isMarked ? [{ type: VOLUME_LOST, status: 'True' }] : [])],
    },
  }) as unknown as NonNullable<LostVolumeFacts['claim']>

const facts = (fields: Partial<LostVolumeFacts> = {}): LostVolumeFacts => ({
  volume: aVolume(),
  claim: aClaim(),
  node: aNode(),
  policy: MARK_LOST,
  attachedTo: undefined,
  nowMs: LOST_MS,
  ...fields,
})

describe('planLostVolume', () => {
  it('PLUS-11 changes nothing with the policy wait', () => {
    expect(planLostVolume(facts({ policy: { do: 'wait' } }))).toMatchObject({
      do: 'wait',
      message: 'the volume v exists only on the node a, which is lost; waiting until the node returns',
    })
  })

  it('PLUS-11 marks the claim with the command that recreates it, keeps its other conditions, and removes the mark when the node returns', () => {
    const plan = planLostVolume(facts())
    expect(plan).toMatchObject({
      do: 'mark',
      conditions: [{ type: 'Resizing' }, { type: VOLUME_LOST, status: 'True', reason: 'NodeLost' }],
      message:
        'The volume v exists only on the node a, which is lost. To recreate the claim with an empty volume or from a backup: kubectl -n shop delete pvc data',
    })
    expect(planLostVolume(facts({ claim: aClaim({ isMarked: true }) })).do).toBe('wait')
    const returned = { claim: aClaim({ isMarked: true }), node: aNode({ ready: 'True' }) }
    expect(planLostVolume(facts(returned))).toMatchObject({ do: 'unmark', conditions: [{ type: 'Resizing' }] })
    const withoutNode = { claim: aClaim({ isMarked: true }), node: undefined }
    expect(planLostVolume(facts(withoutNode))).toMatchObject({ do: 'wait' })
  })

  it('PLUS-11 deletes the claim when the time is up, and then the volume with the finalizers of its provisioner', () => {
    const marked = { policy: DELETE, claim: aClaim({ isMarked: true }) }
    expect(planLostVolume(facts({ policy: DELETE }))).toMatchObject({
      do: 'mark',
      message: expect.stringContaining('the claim and the volume are deleted at 2026-01-01T01:00:00Z'),
    })
    expect(planLostVolume(facts({ ...marked, nowMs: LOST_MS + HOUR_MS - 5_000 }))).toEqual({
      do: 'wait',
      message: 'the volume v exists only on the node a, which is lost; the claim and the volume are deleted in 5 s',
      afterMs: 5_000,
    })
    const nowMs = LOST_MS + HOUR_MS
    expect(planLostVolume(facts({ ...marked, nowMs }))).toMatchObject({ do: 'delete claim' })
    expect(planLostVolume(facts({ ...marked, nowMs, attachedTo: 'b' }))).toMatchObject({ do: 'wait' })
    const beingDeleted = { policy: DELETE, nowMs, claim: aClaim({ isMarked: true, isDeleted: true }) }
    expect(planLostVolume(facts(beingDeleted))).toMatchObject({ do: 'wait' })
    const finalizers = [EXTERNAL_PROVISIONER_FINALIZER, VOLUME_PROTECTION_FINALIZER, 'example.com/backup']
    const released = { policy: DELETE, nowMs, claim: undefined, volume: aVolume({ finalizers }) }
    const keptFinalizers = [VOLUME_PROTECTION_FINALIZER, 'example.com/backup']
    expect(planLostVolume(facts(released))).toMatchObject({ do: 'delete volume', keptFinalizers })
    const volume = aVolume({ isDeleted: true, finalizers: keptFinalizers })
    expect(planLostVolume(facts({ ...released, volume }))).toMatchObject({
      do: 'wait',
      message: expect.stringContaining('example.com/backup'),
    })
  })

  it('PLUS-11 marks the claim of a volume whose reclaim policy is not Delete, and deletes nothing', () => {
    const retained = { policy: DELETE, volume: aVolume({ reclaim: 'Retain' }), nowMs: LOST_MS + 100 * HOUR_MS }
    expect(planLostVolume(facts(retained))).toMatchObject({
      do: 'mark',
      message: expect.stringContaining("The volume's reclaim policy is Retain, so nothing is deleted."),
    })
    expect(planLostVolume(facts({ ...retained, volume: aVolume({ reclaim: 'Recycle' }) }))).toMatchObject({
      message: expect.stringContaining("The volume's reclaim policy is Recycle, so nothing is deleted."),
    })
    expect(planLostVolume(facts({ ...retained, claim: aClaim({ isDeleted: true }) }))).toMatchObject({
      message: expect.stringContaining('the claim is being deleted'),
    })
    expect(planLostVolume(facts({ ...retained, claim: aClaim({ isMarked: true }) }))).toMatchObject({ do: 'wait' })
    expect(planLostVolume(facts({ ...retained, claim: undefined }))).toMatchObject({ do: 'wait' })
  })

  const anyFacts = fc
    .record({
      node: fc.option(
        fc.record({
          isLost: fc.boolean(),
          ready: fc.constantFrom('True', 'False', 'Unknown'),
          isOutOfService: fc.boolean(),
          time: fc.constantFrom('2026-01-01T00:00:00Z', '2030-01-01T00:00:00Z', 'invalid'),
        }),
      ),
      volume: fc.record({
        reclaim: fc.constantFrom('Delete', 'Retain', 'Recycle'),
        isDeleted: fc.boolean(),
        finalizers: fc.subarray([EXTERNAL_PROVISIONER_FINALIZER, VOLUME_PROTECTION_FINALIZER, 'example.com/backup']),
      }),
      claim: fc.option(fc.record({ isMarked: fc.boolean(), isDeleted: fc.boolean() })),
      policy: fc.constantFrom<LostVolumePolicy>({ do: 'wait' }, MARK_LOST, DELETE),
      attachedTo: fc.constantFrom(undefined, 'a'),
      afterMs: fc.integer({ min: -HOUR_MS, max: 3 * HOUR_MS }),
    })
    .map(({ node, volume, claim, policy, attachedTo, afterMs }) => ({
      given: facts({
        node: node ? aNode(node) : undefined,
        volume: aVolume(volume),
        claim: claim ? aClaim(claim) : undefined,
        policy,
        attachedTo,
        nowMs: LOST_MS + afterMs,
      }),
      isLost: node?.isLost === true && node.ready === 'Unknown' && node.isOutOfService,
      isTimeUp: node?.time === '2026-01-01T00:00:00Z' && afterMs >= HOUR_MS,
      volume,
      claim,
    }))

  it('PLUS-11 marks and deletes nothing unless the node is lost, and deletes only detached volumes with the reclaim policy Delete, after the time of the lost-volume policy', () => {
    fc.assert(
      fc.property(anyFacts, ({ given, isLost, isTimeUp, volume, claim }) => {
        const plan = planLostVolume(given)
        if (plan.do === 'mark') expect(isLost && given.policy.do !== 'wait').toBe(true)
        if (plan.do === 'delete claim' || plan.do === 'delete volume') {
          expect([isLost, given.policy.do, isTimeUp, given.attachedTo, volume.reclaim]).toEqual([
            ...[true, 'delete', true],
            undefined,
            'Delete',
          ])
          expect(claim === null).toBe(plan.do === 'delete volume')
        }
        if (plan.do === 'delete volume')
          expect(plan.keptFinalizers).toEqual(
            volume.finalizers.filter((name) => name !== EXTERNAL_PROVISIONER_FINALIZER),
          )
      }),
    )
  })

  it('PLUS-11 writes conditions at most once', () => {
    fc.assert(
      fc.property(anyFacts, ({ given }) => {
        const plan = planLostVolume(given)
        if (plan.do !== 'mark' && plan.do !== 'unmark') return
        const claim = { ...given.claim!, status: { ...given.claim!.status, conditions: [...plan.conditions] } }
        expect(['mark', 'unmark']).not.toContain(planLostVolume({ ...given, claim }).do)
      }),
    )
  })
})
