import { describe, expect, it } from 'vitest'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { explainShortage } from './free-capacity.ts'

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

const aCapacity = (fields: Partial<CSIStorageCapacity>): CSIStorageCapacity => ({
  metadata: { name: 'c' },
  storageClassName: 'fast',
  nodeTopology: {},
  ...fields,
})
const aCapacityInZone = (zone: string, fields: Partial<CSIStorageCapacity>) =>
  aCapacity({ nodeTopology: { matchLabels: { zone } }, ...fields })

describe('explainShortage', () => {
  it('PLUS-12 reports the missing amount if the size exceeds the free capacity', () => {
    const capacities = [aCapacity({ capacity: '5Gi' })]
    expect(explainShortage(aVolume(), '15Gi', capacities)).toBeUndefined()
    expect(explainShortage(aVolume(), '15.5Gi', capacities)).toBe(
      "expanding to 15.5Gi needs 5632Mi more, but only 5Gi is free in the volume's topology (512Mi short)",
    )
  })

  it('PLUS-12 limits the growth, not the size, to maximumVolumeSize', () => {
    const capacities = [aCapacity({ capacity: '50Gi', maximumVolumeSize: '5Gi' })]
    expect(explainShortage(aVolume(), '15Gi', capacities)).toBeUndefined()
    expect(explainShortage(aVolume(), '16Gi', capacities)).toMatch(/5Gi is free .* .1Gi short/)
    expect(explainShortage(aVolume(), '12Gi', [aCapacity({ capacity: '3Gi', maximumVolumeSize: '0' })])).toBeUndefined()
  })

  it("PLUS-12 uses the largest capacity in the volume's topology", () => {
    const volume = aVolume({ zone: ['a', 'b'] })
    const capacities = [
      aCapacityInZone('a', { capacity: '1Gi' }),
      aCapacityInZone('b', { capacity: '3Gi' }),
      aCapacityInZone('c', { capacity: '9Gi' }),
    ]
    expect(explainShortage(volume, '13Gi', capacities)).toBeUndefined()
    expect(explainShortage(volume, '14Gi', capacities)).toMatch(/3Gi is free/)
    expect(explainShortage(aVolume({ zone: ['d'] }), '14Gi', capacities)).toBeUndefined()
    expect(explainShortage(aVolume(), '14Gi', capacities)).toBeUndefined()
  })

  it('PLUS-12 reports no shortage if the capacity is unknown or the volume does not grow', () => {
    expect(explainShortage(aVolume(), '14Gi', [])).toBeUndefined()
    expect(explainShortage(aVolume(), '14Gi', [aCapacity({})])).toBeUndefined()
    const { nodeTopology: _, ...capacityWithoutTopology } = aCapacity({ capacity: '0' })
    expect(explainShortage(aVolume(), '14Gi', [capacityWithoutTopology])).toBeUndefined()
    const manyZones = Array.from({ length: 100 }, (_, index) => String(index))
    expect(
      explainShortage(aVolume({ zone: manyZones }), '14Gi', [aCapacityInZone('1', { capacity: '0' })]),
    ).toBeUndefined()
    expect(explainShortage(aVolume(), '9Gi', [aCapacity({ capacity: '0' })])).toBeUndefined()
  })
})
