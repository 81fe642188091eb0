// NodeExpandVolume: when it is called, what the claim's status reports, and that a failure leaves the volume usable.
import { describe, expect, it } from 'vitest'
import type { CsiFailureCode } from '../csi/index.ts'
import { type AgentFixtureOptions, CLAIMS, createAgentFixture, PODS, VOLUMES } from './agent.fixture.ts'

const GI = 1024 ** 3
const GROWN = { capacity: { storage: '2Gi' } }
const fails = (code: CsiFailureCode, times?: number) => ({
  method: 'NodeExpandVolume',
  effect: { do: 'fail', code, message: 'not here' } as const,
  ...(times ? { times } : {}),
})
const inState = (state: string, alloc = '2Gi') => ({
  allocatedResources: { storage: alloc },
  allocatedResourceStatuses: { storage: state },
  conditions: [{ type: 'Resizing', status: 'True' }],
})

async function aWorld(options: AgentFixtureOptions = {}) {
  const world = await createAgentFixture(options)
  const growths = () => world.fake.record.calls.filter(({ method }) => method === 'NodeExpandVolume')
  const status = async () => (await world.server.get(`${CLAIMS}/orders`)).json.status
  return {
    ...world,
    growths,
    status,
    state: async () => (await status()).allocatedResourceStatuses?.storage,
    /** The state after ControllerExpandVolume: a larger device, and a claim that waits for the node. */
    async grownTo(gi: number, claimStatus: object) {
      for (const volume of Object.values(world.fake.state.volumes)) volume.capacityBytes = gi * GI
      await world.server.patch(`${VOLUMES}/pv-orders`, { spec: { capacity: { storage: `${gi}Gi` } } }, 'merge')
      await world.server.patch(`${CLAIMS}/orders/status`, { status: claimStatus }, 'merge')
    },
    /** Wakes the reconcile of all pods. */
    look: () =>
      world.server.patch(`${PODS}/shop`, { metadata: { labels: { look: String(growths().length) } } }, 'merge'),
  }
}

describe('when a volume is expanded', () => {
  it('REX-1 (24) (37) NodeResizePending: expands when the next pod mounts the volume, and updates the claim', async () => {
    const world = await aWorld()
    const waiting = { type: 'FileSystemResizePending', status: 'True' }
    const other = { type: 'ModifyingVolume', status: 'True' }
    const status = { ...inState('NodeResizePending'), conditions: [waiting, other] }
    await world.aVolume('orders', { pv: GROWN, claimStatus: status })
    for (const volume of Object.values(world.fake.state.volumes)) volume.capacityBytes = 2 * GI
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    await world.until(async () => (await world.status()).capacity.storage === '2Gi', 'the claim to have grown')
    const after = await world.status()
    expect(after.allocatedResourceStatuses).toBeUndefined()
    expect(after.allocatedResources).toEqual({ storage: '2Gi' })
    expect(after.conditions.map(({ type }: { type: string }) => type)).toEqual(['ModifyingVolume'])
    expect(world.growths().map(({ request }) => (request as { capacityRange?: unknown }).capacityRange)).toEqual([
      { requiredBytes: String(2 * GI) },
    ])
    for (const name of ['shop', 'orders']) {
      expect(await world.events(name)).toContainEqual(expect.stringMatching(/^FileSystemResizeSuccessful: /))
    }
  })

  it('REX-1 (24) expands by the condition alone, as older resizers set it', async () => {
    const world = await aWorld()
    const conditions = [{ type: 'FileSystemResizePending', status: 'True' }]
    await world.aVolume('orders', { pv: GROWN, claimStatus: { conditions } })
    for (const volume of Object.values(world.fake.state.volumes)) volume.capacityBytes = 2 * GI
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.status()).capacity.storage === '2Gi', 'the claim to have grown')
    expect((await world.status()).conditions).toBeUndefined()
  })

  for (const state of ['NodeResizeInfeasible', 'ControllerResizeInProgress', 'ControllerResizeInfeasible']) {
    it(`REX-9 (23) ${state}: makes no call and no change, and the pod runs`, async () => {
      const world = await aWorld()
      await world.aVolume('orders', { pv: GROWN, claimStatus: inState(state) })
      await world.aPod('shop', ['orders'])
      await world.untilRunning('shop')
      await world.untilQuiet()
      expect(world.growths()).toEqual([])
      expect(await world.status()).toMatchObject({ capacity: { storage: '1Gi' }, ...inState(state) })
    })
  }

  it('REX-1 (27) expands a shared volume on each node, unless node expansion is not required', async () => {
    for (const annotations of [undefined, { 'volume.kubernetes.io/node-expansion-not-required': 'true' }]) {
      const world = await aWorld()
      await world.aVolume('orders', {
        pv: { accessModes: ['ReadWriteMany'] },
        claim: { accessModes: ['ReadWriteMany'] },
      })
      await world.aPod('shop', ['orders'])
      await world.untilRunning('shop')
      if (annotations) await world.server.patch(`${CLAIMS}/orders`, { metadata: { annotations } }, 'merge')
      await world.grownTo(2, GROWN) // another node was faster
      await world.untilQuiet()
      const version = (await world.server.get(`${CLAIMS}/orders`)).json.metadata.resourceVersion
      await world.look()
      await world.untilQuiet()
      expect(world.growths()).toHaveLength(annotations ? 0 : 1)
      expect((await world.server.get(`${CLAIMS}/orders`)).json.metadata.resourceVersion).toBe(version)
    }
  })

  it('REX-1 (27) makes no call for an expanded volume mounted on one node', async () => {
    const world = await aWorld()
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    await world.grownTo(2, GROWN)
    await world.look()
    await world.untilQuiet()
    expect(world.growths()).toEqual([])
  })

  it('REX-1 records one event for a read-only volume', async () => {
    const world = await aWorld()
    await world.aVolume('orders', { pv: GROWN, csi: { readOnly: true }, claimStatus: inState('NodeResizePending') })
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    await world.look()
    await world.untilQuiet()
    expect(world.growths()).toEqual([])
    expect(await world.events('shop')).toContainEqual(expect.stringMatching(/^FileSystemResizeFailed: .*read-only/))
  })
})

describe('the reported size', () => {
  for (const [what, bytes] of [
    ['none', 0],
    ['a smaller size', GI + 1],
  ] as const) {
    it(`REX-9 ${what}: ends the expansion`, async () => {
      const world = await aWorld()
      await world.aVolume('orders', { pv: GROWN, claimStatus: inState('NodeResizePending') })
      for (const volume of Object.values(world.fake.state.volumes)) volume.capacityBytes = 2 * GI
      world.script([{ method: 'NodeExpandVolume', effect: { do: 'overrideSize', bytes } }])
      await world.aPod('shop', ['orders'])
      await world.until(async () => (await world.status()).capacity.storage === '2Gi', 'the claim to have grown')
      await world.look()
      await world.untilQuiet()
      expect(world.growths()).toHaveLength(1)
    })
  }
})

describe('a failed expansion', () => {
  async function failing(...rules: readonly ReturnType<typeof fails>[]) {
    const world = await aWorld()
    const claim = { resources: { requests: { storage: '2Gi' } } }
    await world.aVolume('orders', { pv: GROWN, claim, claimStatus: inState('NodeResizePending') })
    for (const volume of Object.values(world.fake.state.volumes)) volume.capacityBytes = 2 * GI
    world.script(rules)
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    return world
  }

  for (const code of ['OUT_OF_RANGE', 'INVALID_ARGUMENT', 'NOT_FOUND'] as const) {
    it(`REX-9 (25) ${code}: NodeResizeInfeasible, and the pod runs`, async () => {
      const world = await failing(fails(code))
      await world.until(async () => (await world.state()) === 'NodeResizeInfeasible', 'the refusal')
      await world.look()
      await world.untilQuiet()
      expect(world.growths()).toHaveLength(1)
      const error = (await world.status()).conditions.find(({ type }: { type: string }) => type === 'NodeResizeError')
      expect(error).toMatchObject({ message: expect.stringMatching(/^failed to expand pvc with rpc error: code = /) })
      expect(error.lastProbeTime).toMatch(/Z$/)
      expect(await world.events('shop')).toContainEqual(expect.stringMatching(/^VolumeResizeFailed: /))
    })
  }

  it('REX-9 (26) another error: retried with backoff while the pod runs', async () => {
    const world = await failing(fails('INTERNAL', 3))
    await world.until(async () => (await world.status()).conditions?.length === 2, 'the error')
    expect(await world.state()).toBe('NodeResizeInProgress')
    await world.until(async () => (await world.status()).capacity.storage === '2Gi', 'the claim to have grown')
    expect(world.growths()).toHaveLength(4)
    const times = world.growths().map(({ startedMs }) => startedMs)
    expect(times[3]! - times[0]!).toBeGreaterThan(1_000)
    expect((await world.status()).conditions).toBeUndefined()
  })

  it('REX-9 (33) after a final error, a lowered request is left to the controller', async () => {
    const world = await failing(fails('INTERNAL'))
    await world.until(async () => (await world.status()).conditions?.length === 2, 'the error')
    const calls = world.growths().length
    await world.server.patch(`${CLAIMS}/orders`, { spec: { resources: { requests: { storage: '1Gi' } } } }, 'merge')
    await world.until(async () => (await world.state()) === 'NodeResizeInfeasible', 'the hand-over')
    expect(world.growths().length).toBeLessThanOrEqual(calls + 1)
    await world.grownTo(2, inState('NodeResizePending'))
    world.script([])
    await world.until(async () => (await world.status()).capacity.storage === '2Gi', 'the next try')
  })

  it('REX-9 an uncertain error is retried without an error condition', async () => {
    const world = await failing(fails('DEADLINE_EXCEEDED', 1))
    await world.until(async () => (await world.status()).capacity.storage === '2Gi', 'the claim to have grown')
    expect(world.growths()).toHaveLength(2)
  })

  it('REX-9 (28) in use: not repeated until the next mount', async () => {
    const world = await failing(fails('FAILED_PRECONDITION'))
    await world.until(async () => (await world.status()).conditions?.length === 2, 'the error')
    expect(await world.state()).toBe('NodeResizeInProgress')
    await world.look()
    await world.untilQuiet()
    expect(world.growths()).toHaveLength(1)
    world.script([])
    await world.server.delete(`${PODS}/shop`)
    await world.untilGone('shop')
    await world.aPod('shop', ['orders'])
    await world.until(async () => (await world.status()).capacity.storage === '2Gi', 'the claim to have grown')
  })

  it('REX-9 a driver without node expansion: reported, and the pod runs', async () => {
    const world = await aWorld({ settings: { node: ['STAGE_UNSTAGE_VOLUME'] } })
    await world.aVolume('orders', { pv: GROWN, claimStatus: inState('NodeResizePending') })
    await world.aPod('shop', ['orders'])
    await world.untilRunning('shop')
    await world.until(async () => (await world.state()) === 'NodeResizeInfeasible', 'the refusal')
    expect(JSON.stringify(await world.status())).toContain('EXPAND_VOLUME')
  })

  it('REX-8 saves the result despite an edit during the call', async () => {
    const world = await aWorld()
    await world.aVolume('orders', { pv: GROWN, claimStatus: inState('NodeResizePending') })
    for (const volume of Object.values(world.fake.state.volumes)) volume.capacityBytes = 2 * GI
    world.script([{ method: 'NodeExpandVolume', times: 1, effect: { do: 'hang' } }])
    await world.aPod('shop', ['orders'])
    await world.until(() => world.fake.script.hanging === 1, 'the node to be at work')
    await world.server.patch(`${CLAIMS}/orders`, { metadata: { labels: { edited: 'yes' } } }, 'merge')
    world.fake.script.release()
    await world.until(async () => (await world.status()).capacity.storage === '2Gi', 'the claim to have grown')
    expect(world.growths()).toHaveLength(1)
  })

  it('REX-8 expands a volume of two pods once', async () => {
    const world = await aWorld()
    await world.aVolume('orders')
    await world.aPod('shop', ['orders'])
    await world.aPod('office', ['orders'])
    await world.untilRunning('shop')
    await world.untilRunning('office')
    await world.grownTo(2, inState('NodeResizePending'))
    await world.until(async () => (await world.status()).capacity.storage === '2Gi', 'the claim to have grown')
    await world.untilQuiet()
    expect(world.growths()).toHaveLength(1)
    expect(world.fake.record.overlaps).toEqual([])
  })
})
