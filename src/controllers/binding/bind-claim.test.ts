import { describe, expect, it } from 'vitest'
import type { CommitWrite } from '../../client/index.ts'
import { aClaim, aVolume } from '../../volumes/claims-and-volumes.fixture.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import { bindingWrites } from './bind-claim.ts'

interface PatchBody {
  readonly metadata: { readonly resourceVersion?: string; readonly annotations?: Record<string, string> }
  readonly status?: Claim['status']
}

/** Returns the target (kind and subresource) and the body of each write. */
const describeWrites = (writes: readonly CommitWrite[]) =>
  writes.map((write) => {
    if (write.do !== 'patch') throw new Error(`unexpected ${write.do}`)
    const body = write.patch.body as PatchBody
    return [`${write.kind.kind}${write.subresource ? '/status' : ''}`, body] as const
  })
const describeBinding = (volume: Volume, claim: Claim) => describeWrites(bindingWrites(volume, claim))

describe('bindingWrites', () => {
  it('PROV-5 returns four writes in order, with the resourceVersion as a precondition of the first write of each object', () => {
    expect(describeBinding(aVolume(), aClaim())).toEqual([
      [
        'PersistentVolume',
        {
          metadata: { uid: 'uid-pv', resourceVersion: '8', annotations: { [BOUND_BY_CONTROLLER]: 'yes' } },
          spec: {
            claimRef: {
              kind: 'PersistentVolumeClaim',
              apiVersion: 'v1',
              namespace: 'default',
              name: 'c',
              uid: 'uid-c',
              resourceVersion: '7',
            },
          },
        },
      ],
      ['PersistentVolume/status', { metadata: { uid: 'uid-pv' }, status: { phase: 'Bound' } }],
      [
        'PersistentVolumeClaim',
        {
          metadata: {
            uid: 'uid-c',
            resourceVersion: '7',
            annotations: { [BIND_COMPLETED]: 'yes', [BOUND_BY_CONTROLLER]: 'yes' },
          },
          spec: { volumeName: 'pv' },
        },
      ],
      [
        'PersistentVolumeClaim/status',
        {
          metadata: { uid: 'uid-c' },
          status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
        },
      ],
    ])
  })

  const CLAIM_REF = { claim: { name: 'c', uid: 'uid-c' } }
  const VOLUME_NAME = { spec: { volumeName: 'pv' }, annotations: { [BIND_COMPLETED]: 'yes' } }
  const BOUND_STATUS = { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } }
  const REMAINING_WRITES: [string, Volume, Claim, string[]][] = [
    [
      'the volume',
      aVolume(CLAIM_REF),
      aClaim(),
      ['PersistentVolume/status', 'PersistentVolumeClaim', 'PersistentVolumeClaim/status'],
    ],
    [
      "the volume's status",
      aVolume({ ...CLAIM_REF, phase: 'Bound' }),
      aClaim(),
      ['PersistentVolumeClaim', 'PersistentVolumeClaim/status'],
    ],
    ['the claim', aVolume({ ...CLAIM_REF, phase: 'Bound' }), aClaim(VOLUME_NAME), ['PersistentVolumeClaim/status']],
    [
      "the claim's status",
      aVolume({ ...CLAIM_REF, phase: 'Bound' }),
      aClaim({ ...VOLUME_NAME, status: BOUND_STATUS }),
      [],
    ],
  ]
  for (const [target, volume, claim, remainingTargets] of REMAINING_WRITES) {
    it(`PROV-5 returns only the remaining writes after ${target} was written`, () => {
      const writes = describeBinding(volume, claim)
      expect(writes.map(([writeTarget]) => writeTarget)).toEqual(remainingTargets)
      // The first remaining write of each object has the resourceVersion that was read as a precondition.
      for (const kind of ['PersistentVolume', 'PersistentVolumeClaim']) {
        const firstWrite = writes.find(([writeTarget]) => String(writeTarget).split('/')[0] === kind)
        if (firstWrite) expect(firstWrite[1].metadata.resourceVersion).toBeDefined()
      }
    })
  }

  it('PROV-4 sets no bound-by-controller annotation on a volume with a claimRef or a claim with a volumeName set by a user', () => {
    const [volumeWrite] = describeBinding(aVolume({ claim: { name: 'c' } }), aClaim())
    expect(volumeWrite![1].metadata.annotations).toBeUndefined()
    const claimWrite = describeBinding(aVolume(), aClaim({ spec: { volumeName: 'pv' } }))[2]
    expect(claimWrite![1].metadata.annotations).toEqual({ [BIND_COMPLETED]: 'yes' })
  })

  it('removes the status message of the previous phase', () => {
    const volume = { ...aVolume(), status: { phase: 'Failed' as const, message: 'delete failed' } }
    expect(describeBinding(volume, aClaim())[1]?.[1]).toMatchObject({ status: { phase: 'Bound', message: null } })
  })

  const statusOf = (volume: Volume, claim: Claim) =>
    describeBinding(volume, claim).find(([target]) => target === 'PersistentVolumeClaim/status')?.[1].status

  it('replaces the capacity of the claim with that of the volume', () => {
    const volume = aVolume({ spec: { capacity: { storage: '5Gi', iops: '100' } } })
    const claim = aClaim({ status: { phase: 'Lost', capacity: { throughput: '1Mi' } } })
    expect(statusOf(volume, claim)?.capacity).toEqual({ storage: '5Gi', iops: '100', throughput: null })
  })

  it('ignores a pre-resize capacity that is not a quantity', () => {
    const annotations = { 'volume.alpha.kubernetes.io/pre-resize-capacity': 'lots' }
    expect(statusOf(aVolume({ annotations }), aClaim())?.capacity).toEqual({ storage: '1Gi' })
  })

  it('removes ReadyForFirstConsumer in the last write, and keeps other conditions', () => {
    const time = '2026-01-01T00:00:00Z'
    const ready = {
      type: 'ReadyForFirstConsumer',
      status: 'True',
      reason: 'WaitForFirstConsumer',
      message: 'm',
    } as const
    const other = { type: 'Other', status: 'True' } as const
    const claim = aClaim({ status: { phase: 'Pending', conditions: [{ ...ready, lastTransitionTime: time }, other] } })
    expect(describeBinding(aVolume(), claim)).toHaveLength(4)
    expect(statusOf(aVolume(), claim)?.conditions).toEqual([other])
    expect(statusOf(aVolume(), aClaim({ status: { phase: 'Pending', conditions: [ready] } }))?.conditions).toBeNull()
    expect(statusOf(aVolume(), aClaim())).not.toHaveProperty('conditions')
  })

  it('VAC-4 copies the attributes class in the last write, for a pending claim only', () => {
    const volume = aVolume({ spec: { volumeAttributesClassName: 'gold' } })
    expect(statusOf(volume, aClaim())?.currentVolumeAttributesClassName).toBe('gold')
    expect(statusOf(volume, aClaim({ status: { phase: 'Lost' } }))).not.toHaveProperty(
      'currentVolumeAttributesClassName',
    )
    expect(statusOf(volume, aClaim({ ...VOLUME_NAME, status: BOUND_STATUS }))).toBeUndefined()
    const claimWithOldClass = aClaim({ status: { currentVolumeAttributesClassName: 'old' } })
    expect(statusOf(aVolume(), claimWithOldClass)?.currentVolumeAttributesClassName).toBeNull()
  })
})
