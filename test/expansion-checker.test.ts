// Feeds the expansion checker the violations it must find.
import { describe, expect, it } from 'vitest'
import { callDriver } from '../src/csi/driver.ts'
import { Controller } from '../src/csi/gen/csi_pb.js'
import { createCsiDriver } from '../src/csi/index.ts'
import { checkExpansion, type ExpansionRules } from './expansion-checker.ts'

const GI = 1024 ** 3

/** A store and a driver whose content the test sets. */
async function aWorld({ followsRealSize = false } = {}) {
  const violations: string[] = []
  const held = { capacityBytes: GI, onNodes: { n: { fileSystemBytes: GI } } }
  let onEvents: (events: object[]) => void = () => {}
  let revision = 0
  const store = {
    list: async () => ({ entries: [], revision: 0 }),
    watch: (watch: { onEvents: typeof onEvents }) => {
      onEvents = watch.onEvents
    },
  }
  const checker = checkExpansion({
    cluster: { follow: (tell: (one: unknown) => void) => tell(store), world: { nowMs: 0 } },
    driver: { state: () => ({ volumes: { 'vol-a': held } }), settings: { expandsOnNode: true } },
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
  const world = {
    violations,
    checker,
    held,
    claim(request: string, { mark = request, status = {} as object } = {}) {
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
    volume: (storage: string) =>
      commit([
        'core/persistentvolumes/pv-a',
        {
          metadata: { name: 'pv-a' },
          spec: { capacity: { storage }, csi: { volumeHandle: 'vol-a' }, claimRef: { uid: 'u' } },
        },
      ]),
    quota: (hard: string, used: string) =>
      commit([
        'core/resourcequotas/default/q',
        {
          metadata: { name: 'q' },
          spec: { hard: { 'requests.storage': hard } },
          status: { used: { 'requests.storage': used } },
        },
      ]),
    /** The size requested from the driver. */
    ask: (gi: number) =>
      callDriver(
        checker.wrapDriver(createCsiDriver(async () => ({}) as never)),
        Controller.method.controllerExpandVolume,
        { volumeId: 'vol-a', capacityRange: { requiredBytes: BigInt(gi * GI) } } as never,
        {},
      ),
  }
  world.volume('1Gi')
  world.claim('1Gi')
  expect(violations).toEqual([])
  return world
}

describe('the expansion checker', () => {
  it('SYS-14 accepts an ordinary expansion', async () => {
    const world = await aWorld()
    world.quota('10Gi', '1Gi')
    world.claim('3Gi')
    world.quota('10Gi', '3Gi')
    world.violations.length = 0 // here the charge follows the claim; the server writes both at once
    await world.ask(3)
    world.held.capacityBytes = 3 * GI
    world.volume('3Gi')
    world.held.onNodes.n.fileSystemBytes = 3 * GI
    world.claim('3Gi', { status: { capacity: { storage: '3Gi' } } })
    expect(world.violations).toEqual([])
    expect(world.checker.problems()).toEqual([])
  })

  it('SYS-14 reports a claim or volume whose size exceeds the actual one', async () => {
    const world = await aWorld()
    world.claim('3Gi', { status: { capacity: { storage: '3Gi' } } })
    world.volume('3Gi')
    expect(world.violations).toEqual([
      `a reports ${3 * GI}, the device has ${GI}`,
      `a reports ${3 * GI}, its file system has ${GI}`,
      `volume pv-a reports ${3 * GI}, the device has ${GI}`,
    ])
  })

  it('SYS-14 reports sizes and marks that decrease', async () => {
    const world = await aWorld()
    world.held.capacityBytes = world.held.onNodes.n.fileSystemBytes = 3 * GI
    world.claim('3Gi', { mark: '5Gi', status: { capacity: { storage: '3Gi' } } })
    world.volume('3Gi')
    world.claim('3Gi', { mark: '4Gi', status: { capacity: { storage: '2Gi' } } })
    world.volume('2Gi')
    expect(world.violations).toEqual([
      'the capacity of a fell',
      'the mark of a fell',
      'the capacity of volume pv-a fell',
    ])
  })

  it('SYS-14 accepts a mark that falls to the real size only if configured and at rest', async () => {
    const world = await aWorld({ followsRealSize: true })
    world.claim('1Gi', { mark: '5Gi' })
    world.claim('1Gi', { mark: '1Gi' })
    expect(world.violations).toEqual([])
    const underWay = { allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' } }
    world.claim('1Gi', { mark: '5Gi', status: underWay })
    world.claim('1Gi', { mark: '1Gi', status: underWay })
    expect(world.violations).toEqual(['the mark of a fell'])
  })

  it('SYS-14 reports storage that is not charged, and calls with a wrong size', async () => {
    const world = await aWorld()
    await world.ask(2)
    world.held.capacityBytes = 2 * GI
    world.claim('1Gi')
    await world.ask(1)
    expect(world.violations).toEqual([
      `the driver is called with ${2 * GI}, but ${GI} is charged`,
      `a has ${2 * GI} and is charged ${GI}`,
      `the driver is called with ${GI} for vol-a, which has ${2 * GI}`,
    ])
  })

  it('SYS-14 reports an exceeded quota, and one whose usage is wrong', async () => {
    const world = await aWorld()
    world.quota('2Gi', '1Gi')
    world.quota('2Gi', '3Gi')
    expect(world.violations).toEqual([
      `quota q was exceeded: ${3 * GI} of ${2 * GI}`,
      `the quota says ${3 * GI}, the claims add up to ${GI}`,
    ])
  })

  it('SYS-14 reports an incomplete expansion without a reason', async () => {
    const world = await aWorld()
    world.claim('3Gi', { status: { allocatedResourceStatuses: { storage: 'NodeResizePending' } } })
    expect(world.checker.problems()).toContain('a is still NodeResizePending')
    const infeasible = { allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' } }
    world.claim('50Gi', { status: infeasible })
    expect(world.checker.problems()).toHaveLength(1)
    world.claim('50Gi', {
      status: { ...infeasible, conditions: [{ type: 'ControllerResizeError', message: 'too much' }] },
    })
    expect(world.checker.problems()).toEqual([])
  })
})
