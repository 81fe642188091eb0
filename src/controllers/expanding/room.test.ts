import { describe, expect, it } from 'vitest'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { shortage } from './room.ts'

const aVolume = (...places: readonly Readonly<Record<string, readonly string[]>>[]): PersistentVolume => ({
  metadata: { name: 'pv' },
  spec: {
    capacity: { storage: '10Gi' },
    ...(places.length === 0
      ? {}
      : {
          nodeAffinity: {
            required: {
              nodeSelectorTerms: places.map((place) => ({
                matchExpressions: Object.entries(place).map(([key, values]) => ({
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

describe('whether a volume can grow', () => {
  it('PLUS-12 by as much as is free, and says what is missing beyond', () => {
    const free = [capacity({ capacity: '5Gi' })]
    expect(shortage(aVolume(), '15Gi', free)).toBeUndefined()
    expect(shortage(aVolume(), '15.5Gi', free)).toBe(
      'growing to 15.5Gi takes 5632Mi more, and 5Gi are free where the volume is: 512Mi are missing',
    )
  })

  it('PLUS-12 by no more than the largest new volume, whose size is no limit for its own', () => {
    const free = [capacity({ capacity: '50Gi', maximumVolumeSize: '5Gi' })]
    expect(shortage(aVolume(), '15Gi', free)).toBeUndefined()
    expect(shortage(aVolume(), '16Gi', free)).toMatch(/5Gi are free .* 1Gi are missing/)
    expect(shortage(aVolume(), '12Gi', [capacity({ capacity: '3Gi', maximumVolumeSize: '0' })])).toBeUndefined()
  })

  it('PLUS-12 only objects about the place of the volume tell, the roomiest of them', () => {
    const volume = aVolume({ zone: ['a', 'b'] })
    const here = [inZone('a', { capacity: '1Gi' }), inZone('b', { capacity: '3Gi' }), inZone('c', { capacity: '9Gi' })]
    expect(shortage(volume, '13Gi', here)).toBeUndefined()
    expect(shortage(volume, '14Gi', here)).toMatch(/3Gi are free/)
    expect(shortage(aVolume({ zone: ['d'] }), '14Gi', here)).toBeUndefined()
    expect(shortage(aVolume(), '14Gi', here)).toBeUndefined()
  })

  it('PLUS-12 what is not known is left to the driver', () => {
    expect(shortage(aVolume(), '14Gi', [])).toBeUndefined()
    expect(shortage(aVolume(), '14Gi', [capacity({})])).toBeUndefined()
    const { nodeTopology: _, ...nowhere } = capacity({ capacity: '0' })
    expect(shortage(aVolume(), '14Gi', [nowhere])).toBeUndefined()
    const many = Array.from({ length: 100 }, (_, index) => String(index))
    expect(shortage(aVolume({ zone: many }), '14Gi', [inZone('1', { capacity: '0' })])).toBeUndefined()
    expect(shortage(aVolume(), '9Gi', [capacity({ capacity: '0' })])).toBeUndefined()
  })
})
