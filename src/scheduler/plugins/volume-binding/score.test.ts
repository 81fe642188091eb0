import { describe, expect, it } from 'vitest'
import type { Stored } from '../../../api/kind.ts'
import type { CSIStorageCapacity } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import { aVolume } from '../../../volumes/claims-and-volumes.fixture.ts'
import type { Placement } from '../../../volumes/placement.ts'
import { NodeInfo } from '../../cluster/node-info.ts'
import { gi } from '../../scheduler.fixture.ts'
import { parseCapacityReport } from './capacity/capacity-report.ts'
import type { NodePlan } from './node-planner.ts'
import { scoreNodes } from './score.ts'

const storedMetadata = { uid: 'u', resourceVersion: '1' }
const aClass = (name: string): Stored<StorageClass> => ({
  metadata: { ...storedMetadata, name },
  provisioner: 'd.example.com',
})
const aClaim = (size: number, storageClass: Stored<StorageClass>) => ({
  key: `default/c${size}`,
  name: `c${size}`,
  claim: { metadata: { ...storedMetadata, name: `c${size}` }, spec: {} },
  storageClass,
  bytes: gi(size),
  selectedNode: undefined,
})
const aReport = (fields: Partial<CSIStorageCapacity>) =>
  parseCapacityReport({ metadata: { namespace: 'd', name: 'r' }, storageClassName: 'x', nodeTopology: {}, ...fields })
const aProvisioningPlan = (
  sizes: readonly number[],
  free: Partial<CSIStorageCapacity>,
  storageClass = aClass('x'),
): NodePlan => ({
  bindings: [],
  provisions: sizes.map((size) => ({ claim: aClaim(size, storageClass), report: aReport(free) })),
  sharedClaims: [],
})
const aBindingPlan = (size: number, volumeSize: number, provisions: NodePlan['provisions'] = []): NodePlan => ({
  bindings: [{ claim: aClaim(size, aClass('x')), volume: aVolume({ size: `${volumeSize}Gi` }) }],
  provisions,
  sharedClaims: [],
})
const scoreAll = (plans: readonly NodePlan[], placements: readonly (readonly [string, Placement])[] = []) =>
  scoreNodes(
    plans.map((plan, index) => ({ node: new NodeInfo(`node-${index}`), plan })),
    { reservations: undefined, placements: new Map(placements), usedBytes: () => gi(60) },
  )
const score = (plan: NodePlan) => scoreAll([plan])[0]!

describe('the score of a node for volumes', () => {
  it('PLUS-3 is highest for the node with the most free capacity by default', () => {
    expect(['100Gi', '50Gi', '10Gi'].map((capacity) => score(aProvisioningPlan([10], { capacity })))).toEqual([
      90, 80, 0,
    ])
  })

  it('PLUS-18 ranks nodes by the placement policy of the class', () => {
    const plans = ['100Gi', '20Gi', '11Gi'].map((capacity) => aProvisioningPlan([10], { capacity }))
    expect(scoreAll(plans, [['x', { policy: 'spread' }]])).toEqual([100, 50, 0])
    expect(scoreAll(plans, [['x', { policy: 'pack' }]])).toEqual([0, 50, 100])
    // 90 GiB of 160 GiB, 10 of 80 and 1 of 71 stay free: the total is the capacity plus the 60 GiB of existing volumes.
    expect(scoreAll(plans, [['x', { policy: 'headroom', freePercent: 10 }]])).toEqual([50, 100, 0])
    expect(scoreAll(plans, [['x', { policy: 'headroom', freePercent: 20 }]])).toEqual([100, 50, 0])
  })

  it('PLUS-18 applies the policy to its class only, and not to existing volumes', () => {
    const mixedPlan = (capacity: string): NodePlan => ({
      ...aProvisioningPlan([10], { capacity }),
      provisions: [
        ...aProvisioningPlan([10], { capacity }).provisions,
        ...aProvisioningPlan([10], { capacity: '20Gi' }, aClass('y')).provisions,
      ],
    })
    expect(scoreAll([mixedPlan('100Gi'), mixedPlan('20Gi')], [['x', { policy: 'pack' }]])).toEqual([25, 75])
    expect(scoreAll([aBindingPlan(50, 200), aBindingPlan(50, 100)], [['x', { policy: 'pack' }]])).toEqual([75, 50])
  })

  it('PLUS-3 sums the claims of one class', () => {
    expect(score(aProvisioningPlan([50, 50], { capacity: '100Gi' }))).toBe(0)
  })

  it('PLUS-3 uses the maximum volume size of a report without capacity, and treats zero capacity as full', () => {
    expect(score(aProvisioningPlan([10], { maximumVolumeSize: '40Gi' }))).toBe(75)
    expect(score(aProvisioningPlan([10], { capacity: '0' }))).toBe(0)
  })

  it('PLUS-3 uses the requested share of existing volumes and then ignores new volumes', () => {
    expect([score(aBindingPlan(50, 200)), score(aBindingPlan(50, 100))]).toEqual([75, 50])
    expect(score(aBindingPlan(50, 100, aProvisioningPlan([1], { capacity: '1Gi' }).provisions))).toBe(50)
  })

  it('PLUS-3 is the rounded mean over the classes, and 0 for an empty plan', () => {
    const plan: NodePlan = {
      bindings: [],
      sharedClaims: [],
      provisions: [
        { claim: aClaim(10, aClass('a')), report: aReport({ capacity: '100Gi' }) },
        { claim: aClaim(10, aClass('b')), report: aReport({ capacity: '30Gi' }) },
      ],
    }
    expect(score(plan)).toBe(79) // the mean of 90 and 67 is 78.5
    expect(score({ bindings: [], provisions: [], sharedClaims: [] })).toBe(0)
  })
})
