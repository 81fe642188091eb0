import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Attachment } from './attachment-index.ts'
import { type AttachmentView, type DesiredAttachment, planVolume, type VolumeView } from './plan-volume.ts'

const SIX_MINUTES_MS = 360_000

const aPod = (name: string, namespace = 'default') => ({ metadata: { name, namespace, uid: name } }) as Pod
const desiredOn = (nodeName: string, more: Partial<DesiredAttachment> = {}): DesiredAttachment => ({
  nodeName,
  attachmentName: `csi-${nodeName}`,
  pods: [aPod(`on-${nodeName}`)],
  nodeExists: true,
  volumesOnNode: 0,
  volumesMax: undefined,
  ...more,
})
const anAttachment = (nodeName: string, isBeingDeleted = false): Attachment =>
  ({
    metadata: { name: `csi-${nodeName}`, ...(isBeingDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: { attacher: 'disks', nodeName, source: { persistentVolumeName: 'data' } },
  }) as Attachment
const attachedTo = (nodeName: string, more: Partial<AttachmentView> = {}): AttachmentView => ({
  attachment: anAttachment(nodeName),
  isOurs: true,
  node: 'ready',
  isMounted: false,
  lostForMs: 0,
  ...more,
})
const plan = (view: Partial<VolumeView>, forceAfterMs = SIX_MINUTES_MS) =>
  planVolume({ name: 'data', isSingleNode: true, desired: [], attachments: [], ...view }, forceAfterMs)

describe('planVolume', () => {
  it('SYS-18 does nothing while the volume is attached where it is needed', () => {
    expect(plan({ desired: [desiredOn('left')], attachments: [attachedTo('left', { isMounted: true })] })).toEqual([])
  })

  it('SYS-18 detaches an unneeded volume once it is unmounted', () => {
    expect(plan({ attachments: [attachedTo('left')] })).toMatchObject([{ do: 'detach' }])
    expect(plan({ attachments: [attachedTo('left', { isMounted: true })] })).toMatchObject([{ do: 'wait' }])
  })

  it('SYS-18 keeps an attachment that a user created, which still holds the volume', () => {
    const foreign = attachedTo('left', { isOurs: false })
    expect(plan({ attachments: [foreign] })).toEqual([])
    expect(plan({ desired: [desiredOn('right')], attachments: [foreign] })).toMatchObject([{ do: 'wait' }])
  })

  it('SYS-18 waits for an attachment that is being deleted', () => {
    const deleting = attachedTo('left', { attachment: anAttachment('left', true) })
    expect(plan({ desired: [desiredOn('left')], attachments: [deleting] })).toMatchObject([
      { do: 'wait', because: 'the volume is being detached from node left and is attached again afterwards' },
    ])
    expect(plan({ desired: [desiredOn('right')], attachments: [deleting] })).toMatchObject([{ do: 'wait' }])
  })

  it('SYS-18 force-detaches from a lost node after the timeout, or never', () => {
    const lost = (lostForMs: number) => [attachedTo('left', { node: 'lost', isMounted: true, lostForMs })]
    expect(plan({ attachments: lost(60_000) })).toMatchObject([{ do: 'wait', afterMs: 300_000 }])
    expect(plan({ attachments: lost(360_000) })).toMatchObject([{ do: 'detach', force: 'timeout' }])
    const [never] = plan({ attachments: lost(3_600_000) }, Number.POSITIVE_INFINITY)
    expect(never).toMatchObject({ do: 'wait', for: { what: 'node', nodeName: 'left' } })
    expect(never).not.toHaveProperty('afterMs')
  })

  it('SYS-18 never attaches a single-node volume twice and never detaches a mounted one', () => {
    const nodeName = fc.constantFrom('a', 'b', 'c')
    const desiredOnes = fc
      .uniqueArray(nodeName)
      .chain((names) =>
        fc.tuple(
          ...names.map((name) =>
            fc
              .record({ nodeExists: fc.boolean(), volumesThere: fc.nat(3), volumesMax: fc.constantFrom(undefined, 2) })
              .map((more) => desiredOn(name, more)),
          ),
        ),
      )
    const attachments = fc.uniqueArray(nodeName).chain((names) =>
      fc.tuple(
        ...names.map((name) =>
          fc
            .record({
              isBeingDeleted: fc.boolean(),
              isOurs: fc.boolean(),
              node: fc.constantFrom('ready' as const, 'lost' as const, 'out of service' as const),
              isMounted: fc.boolean(),
              lostForMs: fc.nat(720_000),
            })
            .map(({ isBeingDeleted, ...more }) =>
              attachedTo(name, { ...more, attachment: anAttachment(name, isBeingDeleted) }),
            ),
        ),
      ),
    )
    fc.assert(
      fc.property(desiredOnes, attachments, fc.boolean(), (desired, present, isSingleNode) => {
        const steps = plan({ desired, attachments: present, isSingleNode })
        const attaches = steps.filter((step) => step.do === 'attach')
        if (isSingleNode) {
          expect(attaches.length + present.length).toBeLessThanOrEqual(Math.max(1, present.length))
        }
        for (const { desired: one } of attaches) {
          expect(one.nodeExists && one.volumesOnNode < (one.volumesMax ?? Number.POSITIVE_INFINITY)).toBe(true)
          expect(present.some(({ attachment }) => attachment.spec.nodeName === one.nodeName)).toBe(false)
        }
        for (const step of steps) {
          if (step.do !== 'detach') continue
          const it = present.find(({ attachment }) => attachment === step.attachment)!
          const name = it.attachment.spec.nodeName
          expect(desired.some((one) => one.nodeName === name)).toBe(false)
          const isAllowed =
            !it.isMounted || it.node === 'out of service' || (it.node === 'lost' && it.lostForMs >= SIX_MINUTES_MS)
          expect(isAllowed && it.isOurs && it.attachment.metadata.deletionTimestamp === undefined).toBe(true)
        }
        // Every desired attachment exists, is planned, or has a reason.
        for (const one of desired) {
          const exists = present.some(({ attachment }) => attachment.metadata.name === one.attachmentName)
          const isPlanned = attaches.some((step) => step.desired === one)
          const hasReason = steps.some((step) => step.do === 'wait')
          expect(exists || isPlanned || hasReason).toBe(true)
        }
      }),
    )
  })
})
