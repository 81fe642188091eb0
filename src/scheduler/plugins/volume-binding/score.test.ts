import { describe, expect, it } from 'vitest'
import type { Stored } from '../../../api/kind.ts'
import type { CSIStorageCapacity } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { aVolume } from '../../../volumes/claims-and-volumes.fixture.ts'
import { gi } from '../../scheduler.fixture.ts'
import { capacityReport } from './capacity/capacity-report.ts'
import type { NodePlan } from './node-planner.ts'
import { CAPACITY_PREFERENCE, scoreOf } from './score.ts'

const stored = { uid: 'u', resourceVersion: '1' }
const aClass = (name: string, preference?: string): Stored<StorageClass> => ({
  metadata: { ...stored, name, ...(preference ? { annotations: { [CAPACITY_PREFERENCE]: preference } } : {}) },
  provisioner: 'd.example.com',
})
const aClaim = (size: number, storageClass: Stored<StorageClass>) => ({
  key: `default/c${size}`,
  name: `c${size}`,
  claim: { metadata: { ...stored, name: `c${size}` }, spec: {} },
  storageClass,
  bytes: gi(size),
  selectedNode: undefined,
})
const aReport = (parts: Partial<CSIStorageCapacity>) =>
  capacityReport({ metadata: { namespace: 'd', name: 'r' }, storageClassName: 'x', nodeTopology: {}, ...parts })
const provisioning = (
  sizes: readonly number[],
  free: Partial<CSIStorageCapacity>,
  storageClass = aClass('x'),
): NodePlan => ({
  bind: [],
  provision: sizes.map((size) => ({ claim: aClaim(size, storageClass), report: aReport(free) })),
  shared: [],
})
const binding = (size: number, volumeSize: number, provision: NodePlan['provision'] = []): NodePlan => ({
  bind: [{ claim: aClaim(size, aClass('x')), volume: aVolume({ size: `${volumeSize}Gi` }) }],
  provision,
  shared: [],
})
const score = (plan: NodePlan) => scoreOf(plan, undefined)

describe('the score of a node for volumes', () => {
  it('PLUS-3 is highest for the emptiest node by default', () => {
    expect(['100Gi', '50Gi', '10Gi'].map((capacity) => score(provisioning([10], { capacity })))).toEqual([90, 80, 0])
  })

  it('PLUS-3 is highest for the fullest node if the class has the annotation value pack', () => {
    const pack = aClass('x', 'pack')
    expect(['100Gi', '20Gi', '10Gi'].map((capacity) => score(provisioning([10], { capacity }, pack)))).toEqual([
      10, 50, 100,
    ])
  })

  it('PLUS-3 sums the claims of one class', () => {
    expect(score(provisioning([50, 50], { capacity: '100Gi' }))).toBe(0)
  })

  it('PLUS-3 uses the maximum volume size of a report without capacity, and treats zero capacity as full', () => {
    expect(score(provisioning([10], { maximumVolumeSize: '40Gi' }))).toBe(75)
    expect(score(provisioning([10], { capacity: '0' }))).toBe(0)
  })

  it('PLUS-3 counts the used share of existing volumes, and ignores new ones beside them', () => {
    expect([score(binding(50, 200)), score(binding(50, 100))]).toEqual([75, 50])
    expect(score(binding(50, 100, provisioning([1], { capacity: '1Gi' }).provision))).toBe(50)
  })

  it('PLUS-3 is the rounded mean over the classes, and 0 for an empty plan', () => {
    const plan: NodePlan = {
      bind: [],
      shared: [],
      provision: [
        { claim: aClaim(10, aClass('a')), report: aReport({ capacity: '100Gi' }) },
        { claim: aClaim(10, aClass('b')), report: aReport({ capacity: '30Gi' }) },
      ],
    }
    expect(score(plan)).toBe(79) // of 90 and 67, rounded up from 78.5
    expect(score({ bind: [], provision: [], shared: [] })).toBe(0)
  })
})
