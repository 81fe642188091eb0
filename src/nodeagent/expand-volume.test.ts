// Tests NodeExpandVolume through the agent: when it is called, the claim status, and failures.
import { describe, expect, it, vi } from 'vitest'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import type { Clock } from '../base/clock.ts'
import type { Client } from '../client/index.ts'
import type { CsiFailureCode } from '../csi/index.ts'
import { type AgentFixtureOptions, CLAIMS, createAgentFixture, PODS, VOLUMES } from './agent.fixture.ts'
import { type CsiVolume, csiVolumeOf } from './csi/csi-volume.ts'
import { createExpandVolume, type ExpandDeps } from './csi/expand-volume.ts'

const GI = 1024 ** 3
const EXPANDED_TO_2GI = { capacity: { storage: '2Gi' } }
const failureRule = (code: CsiFailureCode, times?: number) => ({
  method: 'NodeExpandVolume',
  effect: { do: 'fail', code, message: 'injected' } as const,
  ...(times ? { times } : {}),
})
const withResizeState = (state: string, allocated = '2Gi') => ({
  allocatedResources: { storage: allocated },
  allocatedResourceStatuses: { storage: state },
  conditions: [{ type: 'Resizing', status: 'True' }],
})

async function createExpandFixture(options: AgentFixtureOptions = {}) {
  const fixture = await createAgentFixture(options)
  const expandCalls = () => fixture.fake.record.calls.filter(({ method }) => method === 'NodeExpandVolume')
  const status = async () => (await fixture.server.get(`${CLAIMS}/orders`)).json.status
  return {
    ...fixture,
    expandCalls,
    status,
    state: async () => (await status()).allocatedResourceStatuses?.storage,
    waitUntilExpanded: () =>
      fixture.waitUntil(async () => (await status()).capacity.storage === '2Gi', 'the claim to have a capacity of 2Gi'),
    /** Expands the device and updates PV and claim, as after ControllerExpandVolume. */
    async expandOnController(gi: number, claimStatus: object) {
      for (const volume of Object.values(fixture.fake.state.volumes)) volume.capacityBytes = gi * GI
      await fixture.server.patch(`${VOLUMES}/pv-orders`, { spec: { capacity: { storage: `${gi}Gi` } } }, 'merge')
      await fixture.server.patch(`${CLAIMS}/orders/status`, { status: claimStatus }, 'merge')
    },
    /** Changes a label of the pod, which triggers its reconcile. */
    triggerReconcile: () =>
      fixture.server.patch(
        `${PODS}/shop`,
        { metadata: { labels: { triggerReconcile: String(expandCalls().length) } } },
        'merge',
      ),
  }
}

describe('NodeExpandVolume', () => {
  it('REX-1 is called when a pod mounts a volume in NodeResizePending, and the claim is updated', async () => {
    const fixture = await createExpandFixture()
    const pendingCondition = { type: 'FileSystemResizePending', status: 'True' }
    const otherCondition = { type: 'ModifyingVolume', status: 'True' }
    const status = { ...withResizeState('NodeResizePending'), conditions: [pendingCondition, otherCondition] }
    await fixture.createVolume('orders', { pv: EXPANDED_TO_2GI, claimStatus: status })
    for (const volume of Object.values(fixture.fake.state.volumes)) volume.capacityBytes = 2 * GI
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.waitUntilExpanded()
    const statusAfter = await fixture.status()
    expect(statusAfter.allocatedResourceStatuses).toBeUndefined()
    expect(statusAfter.allocatedResources).toEqual({ storage: '2Gi' })
    expect(statusAfter.conditions.map(({ type }: { type: string }) => type)).toEqual(['ModifyingVolume'])
    expect(fixture.expandCalls().map(({ request }) => (request as { capacityRange?: unknown }).capacityRange)).toEqual([
      { requiredBytes: String(2 * GI) },
    ])
    for (const name of ['shop', 'orders']) {
      expect(await fixture.events(name)).toContainEqual(expect.stringMatching(/^FileSystemResizeSuccessful: /))
    }
  })

  it('REX-1 is called if only the condition FileSystemResizePending is set, as by older resizers', async () => {
    const fixture = await createExpandFixture()
    const conditions = [{ type: 'FileSystemResizePending', status: 'True' }]
    await fixture.createVolume('orders', { pv: EXPANDED_TO_2GI, claimStatus: { conditions } })
    for (const volume of Object.values(fixture.fake.state.volumes)) volume.capacityBytes = 2 * GI
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilExpanded()
    expect((await fixture.status()).conditions).toBeUndefined()
  })

  it('REX-9 is retried immediately, once for each start of a pod, in NodeResizeInfeasible', async () => {
    const fixture = await createExpandFixture()
    const claimStatus = withResizeState('NodeResizeInfeasible')
    await fixture.createVolume('orders', { pv: EXPANDED_TO_2GI, claimStatus })
    for (const volume of Object.values(fixture.fake.state.volumes)) volume.capacityBytes = 2 * GI
    fixture.setRules([failureRule('OUT_OF_RANGE', 1)])
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.waitUntil(() => fixture.expandCalls().length === 1, 'the first call')
    await fixture.waitUntil(async () => (await fixture.state()) === 'NodeResizeInfeasible', 'the infeasible state')
    await fixture.triggerReconcile()
    await fixture.waitUntilIdle()
    expect(fixture.expandCalls()).toHaveLength(1)
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilExpanded()
    expect(fixture.expandCalls()).toHaveLength(2)
  })

  for (const state of ['ControllerResizeInProgress', 'ControllerResizeInfeasible']) {
    it(`REX-9 is not called in ${state}, and the pod runs`, async () => {
      const fixture = await createExpandFixture()
      await fixture.createVolume('orders', { pv: EXPANDED_TO_2GI, claimStatus: withResizeState(state) })
      await fixture.createPod('shop', ['orders'])
      await fixture.waitUntilRunning('shop')
      await fixture.waitUntilIdle()
      expect(fixture.expandCalls()).toEqual([])
      expect(await fixture.status()).toMatchObject({ capacity: { storage: '1Gi' }, ...withResizeState(state) })
    })
  }

  it('REX-1 is called for a shared volume after another node has updated the claim, unless node expansion is not required', async () => {
    for (const annotations of [undefined, { 'volume.kubernetes.io/node-expansion-not-required': 'true' }]) {
      const fixture = await createExpandFixture()
      await fixture.createVolume('orders', {
        pv: { accessModes: ['ReadWriteMany'] },
        claim: { accessModes: ['ReadWriteMany'] },
      })
      await fixture.createPod('shop', ['orders'])
      await fixture.waitUntilRunning('shop')
      if (annotations) await fixture.server.patch(`${CLAIMS}/orders`, { metadata: { annotations } }, 'merge')
      await fixture.expandOnController(2, EXPANDED_TO_2GI) // another node has already updated the claim
      await fixture.waitUntilIdle()
      const version = (await fixture.server.get(`${CLAIMS}/orders`)).json.metadata.resourceVersion
      await fixture.triggerReconcile()
      await fixture.waitUntilIdle()
      expect(fixture.expandCalls()).toHaveLength(annotations ? 0 : 1)
      expect((await fixture.server.get(`${CLAIMS}/orders`)).json.metadata.resourceVersion).toBe(version)
    }
  })

  it('REX-1 is not called for an expanded volume that is not shared', async () => {
    const fixture = await createExpandFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.expandOnController(2, EXPANDED_TO_2GI)
    await fixture.triggerReconcile()
    await fixture.waitUntilIdle()
    expect(fixture.expandCalls()).toEqual([])
  })

  it('REX-1 is not called for a read-only volume, and an event is recorded', async () => {
    const fixture = await createExpandFixture()
    await fixture.createVolume('orders', {
      pv: EXPANDED_TO_2GI,
      csi: { readOnly: true },
      claimStatus: withResizeState('NodeResizePending'),
    })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.triggerReconcile()
    await fixture.waitUntilIdle()
    expect(fixture.expandCalls()).toEqual([])
    expect(await fixture.events('shop')).toContainEqual(expect.stringMatching(/^FileSystemResizeFailed: .*read-only/))
  })
})

describe('a successful expansion', () => {
  for (const [reportedSize, bytes] of [
    ['no size', 0],
    ['a smaller size', GI + 1],
  ] as const) {
    it(`REX-9 is complete even if the driver reports ${reportedSize}`, async () => {
      const fixture = await createExpandFixture()
      await fixture.createVolume('orders', { pv: EXPANDED_TO_2GI, claimStatus: withResizeState('NodeResizePending') })
      for (const volume of Object.values(fixture.fake.state.volumes)) volume.capacityBytes = 2 * GI
      fixture.setRules([{ method: 'NodeExpandVolume', effect: { do: 'overrideSize', bytes } }])
      await fixture.createPod('shop', ['orders'])
      await fixture.waitUntilExpanded()
      await fixture.triggerReconcile()
      await fixture.waitUntilIdle()
      expect(fixture.expandCalls()).toHaveLength(1)
    })
  }

  it('SYS-7 takes effect while the volume is mounted, and the claim is updated', async () => {
    const fixture = await createExpandFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    fixture.calls()
    await fixture.expandOnController(2, withResizeState('NodeResizePending'))
    await fixture.waitUntilExpanded()
    expect(fixture.calls()).toEqual(['NodeExpandVolume'])
    expect(await fixture.state()).toBeUndefined()
    expect(await fixture.events('shop')).toContainEqual(expect.stringMatching(/^FileSystemResizeSuccessful: /))
  })

  it('REX-8 is saved even if the claim is edited during the call', async () => {
    const fixture = await createExpandFixture()
    await fixture.createVolume('orders', { pv: EXPANDED_TO_2GI, claimStatus: withResizeState('NodeResizePending') })
    for (const volume of Object.values(fixture.fake.state.volumes)) volume.capacityBytes = 2 * GI
    fixture.setRules([{ method: 'NodeExpandVolume', times: 1, effect: { do: 'hang' } }])
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver call')
    await fixture.server.patch(`${CLAIMS}/orders`, { metadata: { labels: { edited: 'yes' } } }, 'merge')
    fixture.fake.script.release()
    await fixture.waitUntilExpanded()
    expect(fixture.expandCalls()).toHaveLength(1)
  })

  it('REX-8 calls the driver once for a volume that two pods use', async () => {
    const fixture = await createExpandFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.createPod('office', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.waitUntilRunning('office')
    await fixture.expandOnController(2, withResizeState('NodeResizePending'))
    await fixture.waitUntilExpanded()
    await fixture.waitUntilIdle()
    expect(fixture.expandCalls()).toHaveLength(1)
    expect(fixture.fake.record.overlaps).toEqual([])
  })
})

describe('the expansion of a volume that two pods of the node use', () => {
  /** An expansion without an agent: the test decides which version of the claim each pod reads. */
  async function createSharedFixture(state: string) {
    const rejections: unknown[] = []
    const fixture = await createAgentFixture({ autoStart: false })
    const { server } = fixture
    await fixture.createVolume('orders', { pv: EXPANDED_TO_2GI, claimStatus: withResizeState(state) })
    const client: Client = {
      ...fixture.client,
      patch: (...args) =>
        fixture.client.patch(...args).catch((error: unknown) => {
          rejections.push(error)
          throw error
        }),
    }
    const nodeExpandVolume = vi.fn(async () => ({}))
    const driver = { csi: { node: { nodeExpandVolume } }, capabilities: new Set(['EXPAND_VOLUME']) }
    const deps = {
      drivers: { get: () => driver },
      records: { publication: () => ({}), stagingOf: () => undefined },
      metrics: { measure: (_driver: string, _operation: string, work: () => Promise<unknown>) => work() },
      events: { record: () => {} },
    } as unknown as ExpandDeps
    const clock = { nowMs: () => 0, monotonicMs: () => 0 } as Clock
    const expand = createExpandVolume({ ...deps, client, clock, random: () => 0 })
    return {
      server,
      rejections,
      nodeExpandVolume,
      capacity: async () => (await server.get(`${CLAIMS}/orders`)).json.status.capacity.storage,
      async readVolume(): Promise<CsiVolume> {
        const pv = await fixture.client.get(persistentVolumeKind, { name: 'pv-orders' })
        const claim = await fixture.client.get(persistentVolumeClaimKind, { namespace: 'default', name: 'orders' })
        return csiVolumeOf(pv, claim, { isReadOnly: false })!
      },
      expandFor(uid: string, volume: CsiVolume) {
        const { driver, handle, mode, name: volumeName } = volume
        const publication = {
          uid,
          driver,
          handle,
          mode,
          volumeName,
          isInline: false,
          attachmentId: '',
          target: '/target',
        }
        const pod = { metadata: { namespace: 'default', name: uid, uid }, spec: { containers: [] } }
        return expand({ pod, volume, publication }, new AbortController().signal)
      },
    }
  }

  for (const state of ['NodeResizePending', 'NodeResizeInProgress']) {
    it(`REX-8 calls the driver once and has no write rejected, although both read the claim in ${state}`, async () => {
      const fixture = await createSharedFixture(state)
      const volume = await fixture.readVolume()
      await Promise.all([fixture.expandFor('shop', volume), fixture.expandFor('office', volume)])
      await fixture.expandFor('shop', volume) // the cache still has not caught up
      expect(fixture.nodeExpandVolume).toHaveBeenCalledTimes(1)
      expect(fixture.rejections).toEqual([])
      expect(await fixture.capacity()).toBe('2Gi')
    })
  }

  it('REX-8 follows the claim again when it has changed since the last expansion', async () => {
    const fixture = await createSharedFixture('NodeResizePending')
    await fixture.expandFor('shop', await fixture.readVolume())
    const status = withResizeState('NodeResizePending', '3Gi')
    await fixture.server.patch(`${VOLUMES}/pv-orders`, { spec: { capacity: { storage: '3Gi' } } }, 'merge')
    await fixture.server.patch(`${CLAIMS}/orders/status`, { status }, 'merge')
    await fixture.expandFor('office', await fixture.readVolume())
    expect(fixture.nodeExpandVolume).toHaveBeenCalledTimes(2)
    expect(fixture.rejections).toEqual([])
    expect(await fixture.capacity()).toBe('3Gi')
  })
})

describe('a failed expansion', () => {
  async function createFailingFixture(...rules: readonly ReturnType<typeof failureRule>[]) {
    const fixture = await createExpandFixture()
    const claim = { resources: { requests: { storage: '2Gi' } } }
    await fixture.createVolume('orders', {
      pv: EXPANDED_TO_2GI,
      claim,
      claimStatus: withResizeState('NodeResizePending'),
    })
    for (const volume of Object.values(fixture.fake.state.volumes)) volume.capacityBytes = 2 * GI
    fixture.setRules(rules)
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    return fixture
  }

  for (const code of ['OUT_OF_RANGE', 'INVALID_ARGUMENT', 'NOT_FOUND'] as const) {
    it(`REX-9 sets NodeResizeInfeasible after ${code}, and the pod runs`, async () => {
      const fixture = await createFailingFixture(failureRule(code))
      await fixture.waitUntil(async () => (await fixture.state()) === 'NodeResizeInfeasible', 'the infeasible state')
      await fixture.triggerReconcile()
      await fixture.waitUntilIdle()
      expect(fixture.expandCalls()).toHaveLength(1)
      const error = (await fixture.status()).conditions.find(({ type }: { type: string }) => type === 'NodeResizeError')
      expect(error).toMatchObject({ message: expect.stringMatching(/^failed to expand pvc with rpc error: code = /) })
      expect(error.lastProbeTime).toMatch(/Z$/)
      expect(await fixture.events('shop')).toContainEqual(expect.stringMatching(/^VolumeResizeFailed: /))
    })
  }

  it('REX-9 is retried with backoff after another error while the pod runs', async () => {
    const fixture = await createFailingFixture(failureRule('INTERNAL', 3))
    await fixture.waitUntil(async () => (await fixture.status()).conditions?.length === 2, 'the error condition')
    expect(await fixture.state()).toBe('NodeResizeInProgress')
    await fixture.waitUntilExpanded()
    expect(fixture.expandCalls()).toHaveLength(4)
    const times = fixture.expandCalls().map(({ startedMs }) => startedMs)
    expect(times[3]! - times[0]!).toBeGreaterThan(1_000)
    expect((await fixture.status()).conditions).toBeUndefined()
  })

  it('REX-9 is marked infeasible, for the controller to retry, if the request is lowered after a final error', async () => {
    const fixture = await createFailingFixture(failureRule('INTERNAL'))
    await fixture.waitUntil(async () => (await fixture.status()).conditions?.length === 2, 'the error condition')
    const calls = fixture.expandCalls().length
    await fixture.server.patch(`${CLAIMS}/orders`, { spec: { resources: { requests: { storage: '1Gi' } } } }, 'merge')
    await fixture.waitUntil(async () => (await fixture.state()) === 'NodeResizeInfeasible', 'the infeasible state')
    const { conditions = [] } = await fixture.status()
    const message = conditions.find(({ type }: { readonly type: string }) => type === 'NodeResizeError')?.message
    expect(message).toMatch(/^failed to expand pvc with rpc error: code = Internal .*the request was lowered since/)
    expect(fixture.expandCalls().length).toBeLessThanOrEqual(calls + 1)
    await fixture.expandOnController(2, withResizeState('NodeResizePending'))
    fixture.setRules([])
    await fixture.waitUntilExpanded()
  })

  it('REX-9 is retried after an uncertain error', async () => {
    const fixture = await createFailingFixture(failureRule('DEADLINE_EXCEEDED', 1))
    await fixture.waitUntilExpanded()
    expect(fixture.expandCalls()).toHaveLength(2)
  })

  it('REX-9 SYS-7 is not retried until the next mount if the volume is in use, and the pod runs', async () => {
    const fixture = await createFailingFixture(failureRule('FAILED_PRECONDITION'))
    await fixture.waitUntil(async () => (await fixture.status()).conditions?.length === 2, 'the error condition')
    expect(await fixture.state()).toBe('NodeResizeInProgress')
    await fixture.triggerReconcile()
    await fixture.waitUntilIdle()
    expect(fixture.expandCalls()).toHaveLength(1)
    expect(await fixture.events('shop')).toContainEqual(expect.stringMatching(/^VolumeResizeFailed: /))
    fixture.setRules([])
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilExpanded()
  })

  it('REX-9 sets NodeResizeInfeasible if the driver lacks EXPAND_VOLUME, and the pod runs', async () => {
    const fixture = await createExpandFixture({ settings: { node: ['STAGE_UNSTAGE_VOLUME'] } })
    await fixture.createVolume('orders', { pv: EXPANDED_TO_2GI, claimStatus: withResizeState('NodeResizePending') })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.waitUntil(async () => (await fixture.state()) === 'NodeResizeInfeasible', 'the infeasible state')
    expect(JSON.stringify(await fixture.status())).toContain('EXPAND_VOLUME')
  })
})
