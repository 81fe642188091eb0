import { describe, expect, it } from 'vitest'
import type { PersistentVolumeSpec } from '../../../api/kinds/volume/volume-schema.ts'
import { VolumeCapability_AccessMode_Mode as Mode } from '../../../csi/gen/csi_pb.js'
import type { ControllerCapability } from '../../../csi/index.ts'
import { publishFacts } from './publish-request.ts'

const aSpec = (more: object = {}): PersistentVolumeSpec =>
  ({ accessModes: ['ReadWriteOnce'], csi: { driver: 'd', volumeHandle: 'v', readOnly: true }, ...more }) as never
const facts = (...names: ControllerCapability[]) => ({ controller: new Set(names) })
const modeOf = (accessModes: string[], ...names: ControllerCapability[]) =>
  publishFacts(aSpec({ accessModes }), facts(...names), '').volumeCapability.accessMode?.mode

describe('a volume in the words of its driver', () => {
  it.each([
    [['ReadWriteOnce'], Mode.SINGLE_NODE_WRITER, Mode.SINGLE_NODE_MULTI_WRITER],
    [['ReadWriteOncePod'], Mode.SINGLE_NODE_WRITER, Mode.SINGLE_NODE_SINGLE_WRITER],
    [['ReadOnlyMany'], Mode.MULTI_NODE_READER_ONLY, Mode.MULTI_NODE_READER_ONLY],
    [['ReadWriteOnce', 'ReadWriteMany'], Mode.MULTI_NODE_MULTI_WRITER, Mode.MULTI_NODE_MULTI_WRITER],
  ])('SYS-18 %s is said by the widest mode the driver knows', (modes, plain, toldApart) => {
    expect(modeOf(modes)).toBe(plain)
    expect(modeOf(modes, 'SINGLE_NODE_MULTI_WRITER')).toBe(toldApart)
  })

  it('SYS-18 modes that cannot be said are refused', () => {
    expect(() => modeOf(['ReadOnlyMany', 'ReadWriteOnce'])).toThrow('CSI does not support')
    expect(() => modeOf(['ReadWriteOncePod', 'ReadWriteOnce'])).toThrow('cannot be combined')
    expect(() => modeOf([])).toThrow('unsupported access modes: none')
  })

  it('SYS-18 it is read-only only for a driver that can publish so', () => {
    expect(publishFacts(aSpec(), facts(), '').readonly).toBe(false)
    expect(publishFacts(aSpec(), facts('PUBLISH_READONLY'), '').readonly).toBe(true)
  })

  it('SYS-18 a block volume has no file system, and a file system that is not named is the default one', () => {
    const { volumeCapability: block } = publishFacts(aSpec({ volumeMode: 'Block' }), facts(), 'ext4')
    expect(block.accessType).toEqual({ case: 'block', value: {} })
    const { volumeCapability: mount } = publishFacts(aSpec({ mountOptions: ['noatime'] }), facts(), 'ext4')
    expect(mount.accessType).toEqual({ case: 'mount', value: { fsType: 'ext4', mountFlags: ['noatime'] } })
  })
})
