import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  attachedVolumeNameOf,
  attacherFinalizerOf,
  attachmentNameOf,
  isAttachmentName,
  parseAttachedVolumeName,
} from './attachment-names.ts'

describe('attachment names', () => {
  it("SYS-18 hashes volumeHandle, driver and node into an attachment's name", () => {
    const name = attachmentNameOf({ driver: 'disks.example.com', handle: 'vol-1', nodeName: 'left' })
    // printf 'vol-1disks.example.comleft' | sha256sum
    expect(name).toBe('csi-68e5bb0f5e55135d657ffb968e7f332d62cabd21dc679e436a31764dbff73190')
    expect(isAttachmentName(name)).toBe(true)
    expect(isAttachmentName('manual')).toBe(false)
  })

  it('SYS-18 parses the driver and handle of an attached CSI volume from its name', () => {
    const driver = fc.stringMatching(/^[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?$/)
    fc.assert(
      fc.property(driver, fc.string(), (name, handle) => {
        expect(parseAttachedVolumeName(attachedVolumeNameOf({ driver: name, handle }))).toEqual({
          driver: name,
          handle,
        })
      }),
    )
    expect(parseAttachedVolumeName('kubernetes.io/aws-ebs/vol-1')).toBeUndefined()
  })

  it('SYS-18 derives the same finalizer as external-attacher', () => {
    expect(attacherFinalizerOf('disks.example.com')).toBe('external-attacher/disks-example-com')
    expect(attacherFinalizerOf('odd.')).toBe('external-attacher/odd-X')
  })
})
