import { describe, expect, it } from 'vitest'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { shortage } from './free-capacity.ts'

const aVolume = (...topologies: readonly Readonly<Record<string, readonly string[]>>[]): PersistentVolume => ({
  metadata: { name: 'pv' },
  spec: {
    capacity: { storage: '10Gi' },
    ...(topologies.length === 0
      ? {}
      : {
          nodeAffinity: {
            required: {
              nodeSelectorTerms: topologies.map((topology) => ({
                matchExpressions: Object.entries(topology).map(([key, values]) => ({
                  key,
                  operator: 'In' as const,
                  values: [...values],
                })),
              })),
            },
          },
        }),
  },
})

const capacity = (parts: Partial<CSIStorageCapacity>): CSIStorageCapacity => ({
  metadata: { name: 'c' },
  storageClassName: 'fast',
  nodeTopology: {},
  ...parts,
})
const inZone = (zone: string, parts: Partial<CSIStorageCapacity>) =>
  capacity({ nodeTopology: { matchLabels: { zone } }, ...parts })

describe('shortage', () => {
  it('PLUS-12 reports the missing amount beyond the free capacity', () => {
    const free = [capacity({ capacity: '5Gi' })]
    expect(shortage(aVolume(), '15Gi', free)).toBeUndefined()
    expect(shortage(aVolume(), '15.5Gi', free)).toBe(
      "expanding to 15.5Gi needs 5632Mi more, and 5Gi are free in the volume's topology: 512Mi are missing",
    )
  })

  it('PLUS-12 limits growth, not the size, to maximumVolumeSize', () => {
    const free = [capacity({ capacity: '50Gi', maximumVolumeSize: '5Gi' })]
    expect(shortage(aVolume(), '15Gi', free)).toBeUndefined()
    expect(shortage(aVolume(), '16Gi', free)).toMatch(/5Gi are free .* 1Gi are missing/)
    expect(shortage(aVolume(), '12Gi', [capacity({ capacity: '3Gi', maximumVolumeSize: '0' })])).toBeUndefined()
  })

  it('PLUS-12 uses the largest capacity in the volume’s topology', () => {
    const volume = aVolume({ zone: ['a', 'b'] })
    const here = [inZone('a', { capacity: '1Gi' }), inZone('b', { capacity: '3Gi' }), inZone('c', { capacity: '9Gi' })]
    expect(shortage(volume, '13Gi', here)).toBeUndefined()
    expect(shortage(volume, '14Gi', here)).toMatch(/3Gi are free/)
    expect(shortage(aVolume({ zone: ['d'] }), '14Gi', here)).toBeUndefined()
    expect(shortage(aVolume(), '14Gi', here)).toBeUndefined()
  })

  it('PLUS-12 reports nothing if the capacity is not known', () => {
    expect(shortage(aVolume(), '14Gi', [])).toBeUndefined()
    expect(shortage(aVolume(), '14Gi', [capacity({})])).toBeUndefined()
    const { nodeTopology: _, ...nowhere } = capacity({ capacity: '0' })
    expect(shortage(aVolume(), '14Gi', [nowhere])).toBeUndefined()
    const many = Array.from({ length: 100 }, (_, index) => String(index))
    expect(shortage(aVolume({ zone: many }), '14Gi', [inZone('1', { capacity: '0' })])).toBeUndefined()
    expect(shortage(aVolume(), '9Gi', [capacity({ capacity: '0' })])).toBeUndefined()
  })
})
