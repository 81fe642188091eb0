import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Attachment } from './attachment-index.ts'
import { type AttachmentView, type DesiredAttachment, planVolume, type VolumeView } from './plan-volume.ts'

const SIX_MINUTES_MS = 360_000

const aPod = (name: string, namespace = 'default') => ({ metadata: { name, namespace, uid: name } }) as Pod
const aDesiredAttachment = (nodeName: string, fields: Partial<DesiredAttachment> = {}): DesiredAttachment => ({
  nodeName,
  attachmentName: `csi-${nodeName}`,
  pods: [aPod(`on-${nodeName}`)],
  nodeExists: true,
  volumesOnNode: 0,
  volumesMax: undefined,
  ...fields,
})
const anAttachment = (nodeName: string, isBeingDeleted = false): Attachment =>
  ({
    metadata: { name: `csi-${nodeName}`, ...(isBeingDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: { attacher: 'disks', nodeName, source: { persistentVolumeName: 'data' } },
  }) as Attachment
const anAttachmentView = (nodeName: string, fields: Partial<AttachmentView> = {}): AttachmentView => ({
  attachment: anAttachment(nodeName),
  isManaged: true,
  nodeState: 'ready',
  isMounted: false,
  deletedForMs: 0,
  ...fields,
})
const plan = (view: Partial<VolumeView>, forceAfterMs = SIX_MINUTES_MS) =>
  planVolume({ name: 'data', isSingleNode: true, desiredAttachments: [], attachments: [], ...view }, forceAfterMs)

describe('planVolume', () => {
  it('SYS-18 plans nothing if the volume is attached to the node that needs it', () => {
    expect(
      plan({
        desiredAttachments: [aDesiredAttachment('left')],
        attachments: [anAttachmentView('left', { isMounted: true })],
      }),
    ).toEqual([])
  })

  it('SYS-18 detaches an unneeded volume after it was unmounted', () => {
    expect(plan({ attachments: [anAttachmentView('left')] })).toMatchObject([{ do: 'detach' }])
    expect(plan({ attachments: [anAttachmentView('left', { isMounted: true })] })).toMatchObject([{ do: 'wait' }])
  })

  it('SYS-18 keeps an attachment that a user created and does not attach its volume to another node', () => {
    const userAttachment = anAttachmentView('left', { isManaged: false })
    expect(plan({ attachments: [userAttachment] })).toEqual([])
    expect(plan({ desiredAttachments: [aDesiredAttachment('right')], attachments: [userAttachment] })).toMatchObject([
      { do: 'wait' },
    ])
  })

  it('SYS-18 waits for an attachment that is being deleted', () => {
    const deletedView = anAttachmentView('left', { attachment: anAttachment('left', true) })
    expect(plan({ desiredAttachments: [aDesiredAttachment('left')], attachments: [deletedView] })).toMatchObject([
      { do: 'wait', message: 'the volume is being detached from node left and will be attached again afterwards' },
    ])
    expect(plan({ desiredAttachments: [aDesiredAttachment('right')], attachments: [deletedView] })).toMatchObject([
      { do: 'wait' },
    ])
  })

  it('PLUS-11 never force-detaches from a node that is not ready, regardless of how long it is silent', () => {
    const view = anAttachmentView('left', { nodeState: 'lost', isMounted: true, deletedForMs: 3_600_000 })
    const [wait] = plan({ attachments: [view] })
    expect(wait).toMatchObject({
      do: 'wait',
      message: expect.stringContaining('stowage node fence left --confirm-off'),
    })
    expect(wait).not.toHaveProperty('afterMs')
  })

  it('SYS-18 force-detaches from a deleted node after the timeout, and never if the timeout is infinite', () => {
    const deletedAttachments = (deletedForMs: number) => [
      anAttachmentView('left', { nodeState: 'deleted', isMounted: true, deletedForMs }),
    ]
    expect(plan({ attachments: deletedAttachments(60_000) })).toMatchObject([{ do: 'wait', afterMs: 300_000 }])
    expect(plan({ attachments: deletedAttachments(360_000) })).toMatchObject([{ do: 'detach', force: 'timeout' }])
    const [wait] = plan({ attachments: deletedAttachments(3_600_000) }, Number.POSITIVE_INFINITY)
    expect(wait).toMatchObject({ do: 'wait', target: { kind: 'node', nodeName: 'left' } })
    expect(wait).not.toHaveProperty('afterMs')
  })

  it('SYS-18 never attaches a single-node volume to two nodes and detaches a mounted volume only if its node is deleted or out of service', () => {
    const anyNodeName = fc.constantFrom('a', 'b', 'c')
    const desiredArbitrary = fc
      .uniqueArray(anyNodeName)
      .chain((names) =>
        fc.tuple(
          ...names.map((name) =>
            fc
              .record({ nodeExists: fc.boolean(), volumesOnNode: fc.nat(3), volumesMax: fc.constantFrom(undefined, 2) })
              .map((fields) => aDesiredAttachment(name, fields)),
          ),
        ),
      )
    const attachmentsArbitrary = fc.uniqueArray(anyNodeName).chain((names) =>
      fc.tuple(
        ...names.map((name) =>
          fc
            .record({
              isBeingDeleted: fc.boolean(),
              isManaged: fc.boolean(),
              nodeState: fc.constantFrom(
                'ready' as const,
                'lost' as const,
                'out of service' as const,
                'deleted' as const,
              ),
              isMounted: fc.boolean(),
              deletedForMs: fc.nat(720_000),
            })
            .map(({ isBeingDeleted, ...fields }) =>
              anAttachmentView(name, { ...fields, attachment: anAttachment(name, isBeingDeleted) }),
            ),
        ),
      ),
    )
    fc.assert(
      fc.property(
        desiredArbitrary,
        attachmentsArbitrary,
        fc.boolean(),
        (desiredAttachments, attachments, isSingleNode) => {
          const steps = plan({ desiredAttachments, attachments, isSingleNode })
          const attaches = steps.filter((step) => step.do === 'attach')
          if (isSingleNode) {
            expect(attaches.length + attachments.length).toBeLessThanOrEqual(Math.max(1, attachments.length))
          }
          for (const { desired: plannedAttachment } of attaches) {
            const { nodeName, nodeExists, volumesOnNode, volumesMax = Number.POSITIVE_INFINITY } = plannedAttachment
            expect(nodeExists && volumesOnNode < volumesMax).toBe(true)
            expect(attachments.some(({ attachment }) => attachment.spec.nodeName === nodeName)).toBe(false)
          }
          for (const step of steps) {
            if (step.do !== 'detach') continue
            const { attachment, nodeState, isMounted, isManaged, deletedForMs } = attachments.find(
              (existing) => existing.attachment === step.attachment,
            )!
            expect(desiredAttachments.some(({ nodeName }) => nodeName === attachment.spec.nodeName)).toBe(false)
            const mayDetach =
              !isMounted ||
              nodeState === 'out of service' ||
              (nodeState === 'deleted' && deletedForMs >= SIX_MINUTES_MS)
            expect(mayDetach && isManaged && attachment.metadata.deletionTimestamp === undefined).toBe(true)
          }
          // Every desired attachment exists, is planned, or has a reason to wait.
          for (const desiredAttachment of desiredAttachments) {
            const { attachmentName } = desiredAttachment
            const exists = attachments.some(({ attachment }) => attachment.metadata.name === attachmentName)
            const isPlanned = attaches.some((step) => step.desired === desiredAttachment)
            const isWaiting = steps.some((step) => step.do === 'wait')
            expect(exists || isPlanned || isWaiting).toBe(true)
          }
        },
      ),
    )
  })
})
