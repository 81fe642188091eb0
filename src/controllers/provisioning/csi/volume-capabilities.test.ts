import { describe, expect, it } from 'vitest'
import { VolumeCapability_AccessMode_Mode as Mode } from '../../../csi/gen/csi_pb.js'
import { volumeCapabilities } from './volume-capabilities.ts'

const options = { fsType: 'ext4', mountOptions: ['noatime'], supportsSingleNodeMultiWriter: false }
const modesOf = (accessModes: string[], overrides: Partial<typeof options> = {}) =>
  volumeCapabilities({ metadata: {}, spec: { accessModes } } as never, { ...options, ...overrides }).map(
    ({ accessMode }) => accessMode?.mode,
  )

describe('volumeCapabilities', () => {
  it('returns one capability per access mode', () => {
    expect(modesOf(['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany'])).toEqual([
      Mode.SINGLE_NODE_WRITER,
      Mode.MULTI_NODE_READER_ONLY,
      Mode.MULTI_NODE_MULTI_WRITER,
    ])
    expect(modesOf(['ReadWriteOncePod'])).toEqual([Mode.SINGLE_NODE_WRITER])
  })

  it('uses the single-node multi-writer modes if the driver supports them', () => {
    expect(modesOf(['ReadWriteOnce'], { supportsSingleNodeMultiWriter: true })).toEqual([Mode.SINGLE_NODE_MULTI_WRITER])
    expect(modesOf(['ReadWriteOncePod'], { supportsSingleNodeMultiWriter: true })).toEqual([
      Mode.SINGLE_NODE_SINGLE_WRITER,
    ])
    expect(modesOf(['ReadWriteMany'], { supportsSingleNodeMultiWriter: true })).toEqual([Mode.MULTI_NODE_MULTI_WRITER])
  })

  it('sets the file system and mount options, or block access', () => {
    const claim = { metadata: {}, spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem' } }
    expect(volumeCapabilities(claim as never, options)[0]!.accessType).toEqual({
      case: 'mount',
      value: { fsType: 'ext4', mountFlags: ['noatime'] },
    })
    const block = { ...claim, spec: { ...claim.spec, volumeMode: 'Block' } }
    expect(volumeCapabilities(block as never, options)[0]!.accessType).toEqual({ case: 'block', value: {} })
  })

  it('PROV-10 rejects unknown and missing access modes', () => {
    expect(() => modesOf(['ReadWriteTwice'])).toThrowError('invalid access mode: ReadWriteTwice')
    expect(() => modesOf(['toString'])).toThrowError('invalid access mode')
    expect(() => modesOf([])).toThrowError('names no access mode')
  })
})
