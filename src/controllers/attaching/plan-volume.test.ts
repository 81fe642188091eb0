import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Attachment } from './attachment-index.ts'
import { type AttachmentView, planVolume, type VolumeView, type Wish } from './plan-volume.ts'

const SIX_MINUTES_MS = 360_000

const aPod = (name: string, namespace = 'default') => ({ metadata: { name, namespace, uid: name } }) as Pod
const aWish = (nodeName: string, more: Partial<Wish> = {}): Wish => ({
  nodeName,
  attachmentName: `csi-${nodeName}`,
  pods: [aPod(`on-${nodeName}`)],
  isNodeThere: true,
  volumesThere: 0,
  volumesMax: undefined,
  ...more,
})
const anAttachment = (nodeName: string, isGoing = false): Attachment =>
  ({
    metadata: { name: `csi-${nodeName}`, ...(isGoing ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    spec: { attacher: 'disks', nodeName, source: { persistentVolumeName: 'data' } },
  }) as Attachment
const attachedTo = (nodeName: string, more: Partial<AttachmentView> = {}): AttachmentView => ({
  attachment: anAttachment(nodeName),
  isOurs: true,
  node: 'answering',
  isMounted: false,
  lostForMs: 0,
  ...more,
})
const plan = (view: Partial<VolumeView>, forceAfterMs = SIX_MINUTES_MS) =>
  planVolume({ name: 'data', isSingleNode: true, wishes: [], attachments: [], ...view }, forceAfterMs)

describe('what should happen to a volume', () => {
  it('SYS-18 is nothing while it is where it is needed', () => {
    expect(plan({ wishes: [aWish('left')], attachments: [attachedTo('left', { isMounted: true })] })).toEqual([])
  })

  it('SYS-18 an attachment that nobody needs goes once it is unmounted', () => {
    expect(plan({ attachments: [attachedTo('left')] })).toMatchObject([{ do: 'detach' }])
    expect(plan({ attachments: [attachedTo('left', { isMounted: true })] })).toMatchObject([{ do: 'wait' }])
  })

  it('SYS-18 one that someone else made under another name is left alone, and still holds the volume', () => {
    const theirs = attachedTo('left', { isOurs: false })
    expect(plan({ attachments: [theirs] })).toEqual([])
    expect(plan({ wishes: [aWish('right')], attachments: [theirs] })).toMatchObject([{ do: 'wait' }])
  })

  it('SYS-18 one that is being deleted is waited for, also by the node that wants it back', () => {
    const going = attachedTo('left', { attachment: anAttachment('left', true) })
    expect(plan({ wishes: [aWish('left')], attachments: [going] })).toMatchObject([
      { do: 'wait', because: 'it is first detached from node left, then attached again' },
    ])
    expect(plan({ wishes: [aWish('right')], attachments: [going] })).toMatchObject([{ do: 'wait' }])
  })

  it('SYS-18 a lost node is waited for as long as it was said, or for ever', () => {
    const lost = (lostForMs: number) => [attachedTo('left', { node: 'lost', isMounted: true, lostForMs })]
    expect(plan({ attachments: lost(60_000) })).toMatchObject([{ do: 'wait', afterMs: 300_000 }])
    expect(plan({ attachments: lost(360_000) })).toMatchObject([{ do: 'detach', force: 'timeout' }])
    const [never] = plan({ attachments: lost(3_600_000) }, Number.POSITIVE_INFINITY)
    expect(never).toMatchObject({ do: 'wait', for: { what: 'node', nodeName: 'left' } })
    expect(never).not.toHaveProperty('afterMs')
  })

  it('SYS-18 whatever the situation, a volume of one node is never put on a second one, and never torn from a mount', () => {
    const nodeName = fc.constantFrom('a', 'b', 'c')
    const wishes = fc
      .uniqueArray(nodeName)
      .chain((names) =>
        fc.tuple(
          ...names.map((name) =>
            fc
              .record({ isNodeThere: fc.boolean(), volumesThere: fc.nat(3), volumesMax: fc.constantFrom(undefined, 2) })
              .map((more) => aWish(name, more)),
          ),
        ),
      )
    const attachments = fc.uniqueArray(nodeName).chain((names) =>
      fc.tuple(
        ...names.map((name) =>
          fc
            .record({
              isGoing: fc.boolean(),
              isOurs: fc.boolean(),
              node: fc.constantFrom('answering' as const, 'lost' as const, 'out of service' as const),
              isMounted: fc.boolean(),
              lostForMs: fc.nat(720_000),
            })
            .map(({ isGoing, ...more }) => attachedTo(name, { ...more, attachment: anAttachment(name, isGoing) })),
        ),
      ),
    )
    fc.assert(
      fc.property(wishes, attachments, fc.boolean(), (wished, present, isSingleNode) => {
        const steps = plan({ wishes: wished, attachments: present, isSingleNode })
        const attaches = steps.filter((step) => step.do === 'attach')
        if (isSingleNode) {
          expect(attaches.length + present.length).toBeLessThanOrEqual(Math.max(1, present.length))
        }
        for (const { wish } of attaches) {
          expect(wish.isNodeThere && wish.volumesThere < (wish.volumesMax ?? Number.POSITIVE_INFINITY)).toBe(true)
          expect(present.some(({ attachment }) => attachment.spec.nodeName === wish.nodeName)).toBe(false)
        }
        for (const step of steps) {
          if (step.do !== 'detach') continue
          const it = present.find(({ attachment }) => attachment === step.attachment)!
          const name = it.attachment.spec.nodeName
          expect(wished.some((wish) => wish.nodeName === name)).toBe(false)
          const isAllowed =
            !it.isMounted || it.node === 'out of service' || (it.node === 'lost' && it.lostForMs >= SIX_MINUTES_MS)
          expect(isAllowed && it.isOurs && it.attachment.metadata.deletionTimestamp === undefined).toBe(true)
        }
        // Every wish is met, planned, or explained.
        for (const wish of wished) {
          const isThere = present.some(({ attachment }) => attachment.metadata.name === wish.attachmentName)
          const isPlanned = attaches.some((step) => step.wish === wish)
          const isExplained = steps.some((step) => step.do === 'wait')
          expect(isThere || isPlanned || isExplained).toBe(true)
        }
      }),
    )
  })
})
