// Tests that the expansion checker reports violations and accepts valid sequences.
import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { callDriver } from '../src/csi/driver.ts'
import { Controller } from '../src/csi/gen/csi_pb.js'
import { createCsiDriver } from '../src/csi/index.ts'
import { checkExpansion, type ExpansionRules } from './expansion-checker.ts'

const GI = 1024 ** 3

/** Creates a checker on a store and a driver whose content the test sets. */
async function createHarness({ followsRealSize = false } = {}) {
  const violations: string[] = []
  const driverVolume = { capacityBytes: GI, onNodes: { n: { fileSystemBytes: GI } } }
  let onEvents: (events: object[]) => void = () => {}
  let revision = 0
  const store = {
    list: async () => ({ entries: [], revision: 0 }),
    watch: (watch: { onEvents: typeof onEvents }) => {
      onEvents = watch.onEvents
    },
  }
  const checker = checkExpansion({
    cluster: { follow: (listener: (store: unknown) => void) => listener(store), simulation: { nowMs: 0 } },
    driver: { state: () => ({ volumes: { 'vol-a': driverVolume } }), settings: { expandsOnNode: true } },
    followsRealSize,
    maximumBytes: 10 * GI,
    reportViolation: (violation: string) => void violations.push(violation),
  } as unknown as ExpansionRules)
  await Promise.resolve()
  const commit = (...objects: [string, object][]) =>
    onEvents(
      objects.map(([key, object]) => ({
        key,
        revision: ++revision,
        entry: { value: Buffer.from(JSON.stringify(object)) },
      })),
    )
  const harness = {
    violations,
    checker,
    driverVolume,
    commitClaim(request: string, { mark = request, status = {} as object } = {}) {
      commit([
        'core/persistentvolumeclaims/default/a',
        {
          metadata: { name: 'a', uid: 'u' },
          spec: {
            volumeName: 'pv-a',
            resources: { requests: { storage: request } },
            allocatedResources: { storage: mark },
          },
          status: { capacity: { storage: '1Gi' }, ...status },
        },
      ])
    },
    commitVolume: (storage: string) =>
      commit([
        'core/persistentvolumes/pv-a',
        {
          metadata: { name: 'pv-a' },
          spec: { capacity: { storage }, csi: { volumeHandle: 'vol-a' }, claimRef: { uid: 'u' } },
        },
      ]),
    commitQuota: (hard: string, used: string) =>
      commit([
        'core/resourcequotas/default/q',
        {
          metadata: { name: 'q' },
          spec: { hard: { 'requests.storage': hard } },
          status: { used: { 'requests.storage': used } },
        },
      ]),
    /** Requests this size from the driver. */
    expand: (gi: number) =>
      callDriver(
        checker.wrapDriver(createCsiDriver(async (method) => create(method.output) as never)),
        Controller.method.controllerExpandVolume,
        { volumeId: 'vol-a', capacityRange: { requiredBytes: BigInt(gi * GI) } } as never,
        {},
      ),
  }
  harness.commitVolume('1Gi')
  harness.commitClaim('1Gi')
  expect(violations).toEqual([])
  return harness
}

describe('checkExpansion', () => {
  it('accepts an ordinary expansion', async () => {
    const harness = await createHarness()
    harness.commitQuota('10Gi', '1Gi')
    harness.commitClaim('3Gi')
    harness.commitQuota('10Gi', '3Gi')
    harness.violations.length = 0 // the server writes the claim and the quota at once, the harness one after the other
    await harness.expand(3)
    harness.driverVolume.capacityBytes = 3 * GI
    harness.commitVolume('3Gi')
    harness.driverVolume.onNodes.n.fileSystemBytes = 3 * GI
    harness.commitClaim('3Gi', { status: { capacity: { storage: '3Gi' } } })
    expect(harness.violations).toEqual([])
    expect(harness.checker.problems()).toEqual([])
  })

  it('reports a claim or volume whose size exceeds the actual one', async () => {
    const harness = await createHarness()
    harness.commitClaim('3Gi', { status: { capacity: { storage: '3Gi' } } })
    harness.commitVolume('3Gi')
    expect(harness.violations).toEqual([
      `a reports ${3 * GI}, but the device has ${GI}`,
      `a reports ${3 * GI}, but its file system has ${GI}`,
      `volume pv-a reports ${3 * GI}, but the device has ${GI}`,
    ])
  })

  it('reports sizes and marks that decrease', async () => {
    const harness = await createHarness()
    harness.driverVolume.capacityBytes = harness.driverVolume.onNodes.n.fileSystemBytes = 3 * GI
    harness.commitClaim('3Gi', { mark: '5Gi', status: { capacity: { storage: '3Gi' } } })
    harness.commitVolume('3Gi')
    harness.commitClaim('3Gi', { mark: '4Gi', status: { capacity: { storage: '2Gi' } } })
    harness.commitVolume('2Gi')
    expect(harness.violations).toEqual([
      'the capacity of a decreased',
      'the mark of a decreased',
      'the capacity of volume pv-a decreased',
    ])
  })

  it('accepts a mark that falls to the real size only at rest, if configured', async () => {
    const harness = await createHarness({ followsRealSize: true })
    harness.commitClaim('1Gi', { mark: '5Gi' })
    harness.commitClaim('1Gi', { mark: '1Gi' })
    expect(harness.violations).toEqual([])
    const inProgress = { allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' } }
    harness.commitClaim('1Gi', { mark: '5Gi', status: inProgress })
    harness.commitClaim('1Gi', { mark: '1Gi', status: inProgress })
    expect(harness.violations).toEqual(['the mark of a decreased'])
  })

  it('reports storage that is not charged, and calls with a wrong size', async () => {
    const harness = await createHarness()
    await harness.expand(2)
    harness.driverVolume.capacityBytes = 2 * GI
    harness.commitClaim('1Gi')
    await harness.expand(1)
    expect(harness.violations).toEqual([
      `the driver is called with ${2 * GI}, but ${GI} is charged`,
      `a has ${2 * GI} and is charged ${GI}`,
      `the driver is called with ${GI} for vol-a, which has ${2 * GI}`,
    ])
  })

  it('reports an exceeded quota, and one whose usage is wrong', async () => {
    const harness = await createHarness()
    harness.commitQuota('2Gi', '1Gi')
    harness.commitQuota('2Gi', '3Gi')
    expect(harness.violations).toEqual([
      `quota q was exceeded: ${3 * GI} of ${2 * GI}`,
      `the quota reports ${3 * GI}, but the claims add up to ${GI}`,
    ])
  })

  it('reports an incomplete expansion without a reason', async () => {
    const harness = await createHarness()
    harness.commitClaim('3Gi', { status: { allocatedResourceStatuses: { storage: 'NodeResizePending' } } })
    expect(harness.checker.problems()).toContain('a is still NodeResizePending')
    const infeasible = { allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' } }
    harness.commitClaim('50Gi', { status: infeasible })
    expect(harness.checker.problems()).toHaveLength(1)
    harness.commitClaim('50Gi', {
      status: { ...infeasible, conditions: [{ type: 'ControllerResizeError', message: 'too much' }] },
    })
    expect(harness.checker.problems()).toEqual([])
  })
})
