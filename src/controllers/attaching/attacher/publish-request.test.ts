import { describe, expect, it } from 'vitest'
import type { PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import { VolumeCapability_AccessMode_Mode as Mode } from '../../../csi/gen/csi_pb.js'
import type { ControllerCapability } from '../../../csi/index.ts'
import { buildPublishRequest } from './publish-request.ts'

const aSpec = (fields: object = {}): PersistentVolumeSpec =>
  ({ accessModes: ['ReadWriteOnce'], csi: { driver: 'd', volumeHandle: 'v', readOnly: true }, ...fields }) as never
const driverFacts = (...names: ControllerCapability[]) => ({ controller: new Set(names) })
const modeOf = (accessModes: string[], ...names: ControllerCapability[]) =>
  buildPublishRequest(aSpec({ accessModes }), driverFacts(...names), '').volumeCapability.accessMode?.mode

describe('buildPublishRequest', () => {
  it.each([
    [['ReadWriteOnce'], Mode.SINGLE_NODE_WRITER, Mode.SINGLE_NODE_MULTI_WRITER],
    [['ReadWriteOncePod'], Mode.SINGLE_NODE_WRITER, Mode.SINGLE_NODE_SINGLE_WRITER],
    [['ReadOnlyMany'], Mode.MULTI_NODE_READER_ONLY, Mode.MULTI_NODE_READER_ONLY],
    [['ReadWriteOnce', 'ReadWriteMany'], Mode.MULTI_NODE_MULTI_WRITER, Mode.MULTI_NODE_MULTI_WRITER],
  ])('SYS-18 maps %s to a CSI access mode that the driver supports', (modes, defaultMode, multiWriterMode) => {
    expect(modeOf(modes)).toBe(defaultMode)
    expect(modeOf(modes, 'SINGLE_NODE_MULTI_WRITER')).toBe(multiWriterMode)
  })

  it('SYS-18 rejects access modes that CSI cannot express', () => {
    expect(() => modeOf(['ReadOnlyMany', 'ReadWriteOnce'])).toThrow('CSI does not support')
    expect(() => modeOf(['ReadWriteOncePod', 'ReadWriteOnce'])).toThrow('cannot be combined')
    expect(() => modeOf([])).toThrow('unsupported access modes: none')
  })

  it('SYS-18 sets readonly only for a driver with PUBLISH_READONLY', () => {
    expect(buildPublishRequest(aSpec(), driverFacts(), '').readonly).toBe(false)
    expect(buildPublishRequest(aSpec(), driverFacts('PUBLISH_READONLY'), '').readonly).toBe(true)
  })

  it('SYS-18 omits the file system of a block volume and applies the default fsType', () => {
    const { volumeCapability: block } = buildPublishRequest(aSpec({ volumeMode: 'Block' }), driverFacts(), 'ext4')
    expect(block.accessType).toEqual({ case: 'block', value: {} })
    const { volumeCapability: mount } = buildPublishRequest(aSpec({ mountOptions: ['noatime'] }), driverFacts(), 'ext4')
    expect(mount.accessType).toEqual({ case: 'mount', value: { fsType: 'ext4', mountFlags: ['noatime'] } })
  })
})
