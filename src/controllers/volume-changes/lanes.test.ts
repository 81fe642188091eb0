// Tests how the expansion and the modification of volumes of a lost node share the workers with those of other nodes.
import { afterEach, describe, expect, it } from 'vitest'
import type { FakeRule } from '../../csi/fake/index.ts'
import { SILENT_LANE_FAILURES } from '../../runtime/work-queue.ts'
import { createExpandingFixture } from '../expanding/expanding.fixture.ts'
import { createModifyingFixture } from '../modifying/modifying.fixture.ts'

const DEAD = Array.from({ length: 40 }, (_, index) => `dead-${index}`)
/** Half of the default workers. */
const LANE_WORKERS = 5
const SECOND = 1_000

const affinityTo = (node: string) => ({
  required: {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'topology.disks.example.com/node', operator: 'In', values: [node] }] },
    ],
  },
})

interface Harness {
  start(silentNodes?: ReturnType<typeof silentNode>['lanes']): void
  createClaim(name: string, node: string): Promise<void>
  /** Edits the claim so that its volume must be changed. */
  change(name: string): Promise<unknown>
  isChanged(name: string): Promise<boolean>
  setRules(rules: readonly Pick<FakeRule, 'volume' | 'effect'>[]): void
  /** Returns the number of calls for volumes of the lost node. */
  deadCalls(): number
  release(): void
  readonly hangingCount: number
  settle(): Promise<void>
  advance(ms: number): Promise<void>
  close(): Promise<void>
}

async function createExpansionHarness(): Promise<Harness> {
  const fixture = await createExpandingFixture()
  const { fake } = fixture
  return {
    start: (silentNodes) => void fixture.start(silentNodes ? { silentNodes } : {}),
    createClaim: async (name, node) =>
      void (await fixture.createClaim(name, { size: '1Gi', pv: { nodeAffinity: affinityTo(node) } })),
    change: (name) => fixture.request('2Gi', name),
    isChanged: async (name) => fixture.bytes(name) === 2 * 1024 ** 3,
    setRules: (rules) => fixture.setRules(...rules.map((rule) => ({ ...rule, method: 'ControllerExpandVolume' }))),
    deadCalls: () => DEAD.reduce((sum, name) => sum + fixture.expandCalls(name).length, 0),
    release: () => fake.script.release(),
    get hangingCount() {
      return fake.script.hangingCount
    },
    settle: async () => {
      for (let times = 0; times < 5; times++) await fixture.settle()
    },
    advance: (ms) => fixture.server.clock.advance(ms),
    close: fixture.close,
  }
}

async function createModificationHarness(): Promise<Harness> {
  const fixture = await createModifyingFixture()
  const { fake } = fixture
  await fixture.createClass('silver', { iops: '100' })
  await fixture.createClass('gold', { iops: '1000' })
  const attributes = { iops: '100' }
  return {
    start: (silentNodes) => void fixture.start(silentNodes ? { silentNodes } : {}),
    createClaim: (name, node) =>
      fixture.createClaim(name, { className: 'silver', attributes, nodeAffinity: affinityTo(node) }),
    change: (name) => fixture.setClass('gold', name),
    isChanged: async (name) => fixture.driverAttributes(name)?.iops === '1000',
    setRules: fixture.setRules,
    deadCalls: () =>
      fake.record.calls.filter(
        ({ method, volume }) => method === 'ControllerModifyVolume' && volume?.startsWith('dead-'),
      ).length,
    release: () => fake.script.release(),
    get hangingCount() {
      return fake.script.hangingCount
    },
    settle: async () => {
      for (let times = 0; times < 5; times++) await fixture.settle()
    },
    advance: (ms) => fixture.server.clock.advance(ms),
    close: fixture.close,
  }
}

function silentNode(name: string) {
  let isSilent = true
  const listeners = new Set<(lane: string) => void>()
  return {
    lanes: {
      has: (lane: string) => isSilent && lane === name,
      onReturn: (listener: (lane: string) => void) => {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    announceReturn() {
      isSilent = false
      for (const listener of listeners) listener(name)
    },
  }
}

const failing = DEAD.map((volume) => ({ volume, effect: { do: 'fail', code: 'UNAVAILABLE' } as const }))
const hanging = DEAD.map((volume) => ({ volume, effect: { do: 'hang' } as const }))

let harness: Harness
afterEach(() => harness.close())

describe.each([
  ['expansion', createExpansionHarness],
  ['modification', createModificationHarness],
])('the %s of volumes of a lost node', (_name, createHarness) => {
  const countChanged = async () => (await Promise.all(DEAD.map(harness.isChanged))).filter(Boolean).length

  /** Changes all claims of node-1, then one of node-2. */
  async function changeAll(): Promise<void> {
    for (const name of DEAD) await harness.createClaim(name, 'node-1')
    await harness.createClaim('live', 'node-2')
    for (const name of DEAD) await harness.change(name)
    await harness.settle()
    await harness.change('live')
    await harness.settle()
  }

  it('PLUS-11 leaves half of the workers to volumes of other nodes while its calls hang', async () => {
    harness = await createHarness()
    harness.setRules(hanging)
    harness.start()
    await changeAll()
    expect(harness.hangingCount).toBe(LANE_WORKERS)
    expect(await harness.isChanged('live')).toBe(true)
    harness.setRules([])
    harness.release()
    await harness.settle()
    expect(await countChanged()).toBe(DEAD.length)
  })

  it('PLUS-11 makes one call per second after several have failed, and all when the node has returned', async () => {
    harness = await createHarness()
    harness.setRules(failing)
    const { lanes, announceReturn } = silentNode('node-1')
    harness.start(lanes)
    await changeAll()
    expect(await harness.isChanged('live')).toBe(true)
    const firstCalls = harness.deadCalls()
    expect(firstCalls).toBeGreaterThanOrEqual(SILENT_LANE_FAILURES)
    expect(firstCalls).toBeLessThan(SILENT_LANE_FAILURES + LANE_WORKERS)
    for (let seconds = 1; seconds <= 10; seconds++) {
      await harness.advance(SECOND)
      await harness.settle()
      expect(harness.deadCalls() - firstCalls).toBeLessThanOrEqual(seconds)
    }
    expect(harness.deadCalls() - firstCalls).toBeGreaterThanOrEqual(9)
    harness.setRules([])
    announceReturn()
    await harness.settle()
    expect(await countChanged()).toBe(DEAD.length)
  })
})
