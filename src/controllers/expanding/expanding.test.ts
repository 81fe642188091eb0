// Tests the expansion of volumes on a real API server with a fake CSI driver and a simulated node.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { quantityToBytes } from '../../api/quantity.ts'
import type { CommitWrite } from '../../client/index.ts'
import type { CsiFailureCode } from '../../csi/index.ts'
import { done } from '../../runtime/index.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import type { VolumeChange } from '../volume-changes/index.ts'
import {
  createExpandingFixture,
  DRIVER,
  type ExpandingFixture,
  type ExpandingFixtureOptions,
} from './expanding.fixture.ts'

const GI = 1024 ** 3
const failWith = (code: CsiFailureCode, message = 'injected') => ({ do: 'fail', code, message }) as const

let fixture: ExpandingFixture
const openFixture = async (options: ExpandingFixtureOptions = {}) => {
  await fixture?.close()
  fixture = await createExpandingFixture(options)
}
beforeEach(() => openFixture())
afterEach(() => fixture.close())

/** A volume whose device has 20Gi and whose file system has 10Gi. */
const PARTLY_EXPANDED_VOLUME = {
  pv: { capacity: { storage: '20Gi' } },
  pvMetadata: { annotations: { [PRE_RESIZE_CAPACITY]: '10Gi' } },
}

describe('expanding a claim', () => {
  it('does not enqueue a claim that has the requested size', async () => {
    await fixture.createClaim('idle')
    await fixture.createClaim('data')
    const keys = new Set<string>()
    fixture.start({ onQueueChange: (key) => keys.add(key) })
    await fixture.request('20Gi')
    await fixture.waitForState('NodeResizePending')
    expect([...keys]).toEqual(['default/data#expanding'])
  })

  it('REX-1 calls the driver, then waits for the node', async () => {
    await fixture.createClaim('data', { size: '1G' })
    fixture.start()
    await fixture.request('2G')
    await fixture.waitForState('NodeResizePending')
    expect(await fixture.view()).toMatchObject({ alloc: '2G', cap: '1G', pvcap: '2G', preResize: '1G' })
    expect(await fixture.isNodeExpansionNotRequired()).toBe(false)
    expect(fixture.expandCalls()).toEqual([2_000_000_000])
    expect(fixture.eventReasons()).toEqual(['Resizing', 'FileSystemResizeRequired'])
    expect(fixture.events[0]?.message).toBe('External resizer is resizing volume data')
  })

  it('REX-1 finishes without the node if the driver needs no node expansion, and removes the annotation at the next expansion', async () => {
    await openFixture({ driver: { expandsOnNode: false } })
    await fixture.createClaim('data', { size: '1G' })
    fixture.start()
    await fixture.request('2G')
    await fixture.waitUntil(async () => (await fixture.view()).cap === '2G', 'the expansion to finish')
    const view = await fixture.view()
    expect(view).toMatchObject({ alloc: '2G', pvcap: '2G', conditions: [] })
    expect([view.state, view.preResize]).toEqual([undefined, undefined])
    expect(await fixture.isNodeExpansionNotRequired()).toBe(true)
    expect(fixture.eventReasons()).toEqual(['Resizing', 'VolumeResizeSuccessful'])

    await openFixture()
    await fixture.createClaim('data', {
      metadata: { annotations: { 'volume.kubernetes.io/node-expansion-not-required': 'true' } },
    })
    fixture.start()
    await fixture.request('20Gi')
    await fixture.waitForState('NodeResizePending')
    expect(await fixture.isNodeExpansionNotRequired(), 'the next expansion may need the node').toBe(false)
  })

  it("REX-1 records the driver's size if it is larger than requested", async () => {
    await openFixture({ driver: { expandsOnNode: false, roundToBytes: GI } })
    await fixture.createClaim()
    fixture.start()
    await fixture.request('11.5Gi')
    await fixture.waitUntil(async () => (await fixture.view()).cap === '12Gi', 'the expansion to finish')
    expect(await fixture.view()).toMatchObject({ pvcap: '12Gi', alloc: '11776Mi' })
  })

  it('sends the volume capability to the driver', async () => {
    await fixture.createClaim('files', { pv: { mountOptions: ['noatime'] } })
    await fixture.createClaim('device', { pv: { volumeMode: 'Block' } })
    fixture.start()
    await fixture.request('20Gi', 'files')
    await fixture.request('20Gi', 'device')
    await fixture.waitUntil(
      () => fixture.expandCalls('files').length + fixture.expandCalls('device').length === 2,
      'both expand calls',
    )
    const capabilityOf = (name: string) =>
      (fixture.fake.record.calls.find((call) => call.volume === name)!.request as { volumeCapability?: unknown })
        .volumeCapability
    expect(capabilityOf('files')).toMatchObject({ mount: { fsType: 'ext4' } })
    expect(capabilityOf('device')).toMatchObject({ block: {} })
  })

  it('records an event for access modes that CSI cannot express', async () => {
    await fixture.createClaim('data', { accessModes: ['ReadWriteOnce', 'ReadOnlyMany'] })
    const instance = fixture.start()
    await fixture.request('20Gi')
    await fixture.waitUntil(() => instance.queueState()?.is === 'stuck', 'the claim to be stuck')
    expect(fixture.expandCalls()).toEqual([])
    expect(fixture.events.at(-1)?.message).toMatch(/ReadOnlyMany and ReadWriteOnce/)
    expect((await fixture.view()).conditions).toEqual([])
  })

  it('PROV-16 sends secrets to the driver and strips them from events', async () => {
    await openFixture({ driver: { secretKeys: ['token'] } })
    const secretRef = { controllerExpandSecretRef: { namespace: 'default', name: 'key' } }
    await fixture.createClaim('data', {
      pv: { csi: { driver: DRIVER, volumeHandle: 'vol-data', fsType: 'ext4', ...secretRef } },
    })
    const instance = fixture.start()
    await fixture.request('20Gi')
    await fixture.waitUntil(() => instance.queueState()?.is === 'waiting', 'the backoff after the missing secret')
    expect(fixture.events.at(-1)?.message).toMatch(/error getting secret key in namespace default/)
    expect((await fixture.view()).state, 'nothing was started').toBeUndefined()

    const token = Buffer.from('s3cr3t-token').toString('base64')
    await fixture.server.post('/api/v1/namespaces/default/secrets', { metadata: { name: 'key' }, data: { token } })
    fixture.setExpandEffect(failWith('INTERNAL', 'the token s3cr3t-token has expired'), 1)
    await fixture.waitForState('NodeResizePending')
    expect(fixture.fake.record.calls.at(-1)?.secretKeys).toEqual(['token'])
    expect(JSON.stringify(fixture.events)).not.toContain('s3cr3t')
    expect(JSON.stringify(fixture.events)).toContain('***')
  })

  it('keeps status fields of other resources', async () => {
    await fixture.createClaim('data', {
      status: {
        allocatedResourceStatuses: { 'example.com/x': 'NodeResizePending' },
        allocatedResources: { 'example.com/x': '7' },
        conditions: [{ type: 'ModifyingVolume', status: 'True' }],
      },
    })
    fixture.start()
    await fixture.request('20Gi')
    await fixture.waitForState('NodeResizePending')
    await fixture.completeNodeExpansion('20Gi')
    const { status } = (await fixture.claim())!
    expect(status?.allocatedResourceStatuses).toEqual({ 'example.com/x': 'NodeResizePending' })
    expect(status?.allocatedResources).toEqual({ 'example.com/x': '7', storage: '20Gi' })
    expect(status?.conditions?.map(({ type }) => type)).toEqual(['ModifyingVolume'])
  })

  it('REX-1 removes the pre-resize capacity after the node has finished, even after a restart', async () => {
    await fixture.createClaim()
    const firstProcess = fixture.start()
    await fixture.request('20Gi')
    await fixture.waitForState('NodeResizePending')
    await firstProcess.stop()
    await fixture.completeNodeExpansion('20Gi')
    expect((await fixture.view()).preResize).toBe('10Gi')
    fixture.start()
    await fixture.waitUntil(async () => (await fixture.view()).preResize === undefined, 'the annotation to be removed')
  })

  it('ignores claims whose volume belongs to another claim or driver', async () => {
    const pv = (claimRef: object | undefined, driver = DRIVER) => ({
      ...(claimRef ? { claimRef } : { claimRef: undefined }),
      csi: { driver, volumeHandle: 'vol-data' },
    })
    await fixture.createClaim('other-uid', { pv: pv({ namespace: 'default', name: 'other-uid', uid: 'other' }) })
    await fixture.createClaim('other-namespace', {
      pv: pv({ namespace: 'kube-system', name: 'other-namespace', uid: 'x' }),
    })
    await fixture.createClaim('without-claim-ref', { pv: pv(undefined) })
    await fixture.createClaim('foreign', { pv: { csi: { driver: 'else.example.com', volumeHandle: 'vol-foreign' } } })
    fixture.start()
    for (const name of ['other-uid', 'other-namespace', 'without-claim-ref', 'foreign'])
      await fixture.request('20Gi', name)
    await fixture.settle()
    expect(fixture.fake.record.calls.filter(({ method }) => method === 'ControllerExpandVolume')).toEqual([])
    expect(fixture.events).toEqual([])
  })

  it('expands only volumes on the node that the instance serves', async () => {
    await openFixture({ driver: { pools: [{ name: 'pool', capacityBytes: 100 * GI, segments: { host: 'a' } }] } })
    const affinityTo = (host: string) => ({
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'host', operator: 'In', values: [host] }] }] },
      },
    })
    await fixture.createClaim('on-node', { pv: affinityTo('a') })
    await fixture.createClaim('elsewhere', { pv: affinityTo('b') })
    fixture.start({ node: { name: 'node-a', segments: { host: 'a' } } })
    await fixture.request('20Gi', 'on-node')
    await fixture.request('20Gi', 'elsewhere')
    await fixture.waitForState('NodeResizePending', 'on-node')
    await fixture.settle()
    expect(fixture.expandCalls('elsewhere')).toEqual([])
  })

  it('records an event if the driver does not support expansion', async () => {
    await openFixture({ driver: { controller: ['CREATE_DELETE_VOLUME'], node: ['STAGE_UNSTAGE_VOLUME'] } })
    await fixture.createClaim()
    const instance = fixture.start()
    await fixture.request('20Gi')
    await fixture.settle()
    expect((await fixture.view()).conditions).toEqual([])
    expect(fixture.events).toEqual([
      expect.objectContaining({ reason: 'VolumeResizeFailed', message: expect.stringMatching(/EXPAND_VOLUME.*10Gi$/) }),
    ])
    await fixture.request('10Gi')
    await fixture.waitUntil(() => instance.queueState() === undefined, 'the queue to be empty')
  })

  it('REX-1 makes no call to a node-only driver, and lowers the size after the node has rejected it', async () => {
    await openFixture({ driver: { controller: ['CREATE_DELETE_VOLUME'] } })
    await fixture.createClaim('data', { size: '3Gi' })
    fixture.start()
    await fixture.request('9Gi')
    await fixture.waitForState('NodeResizePending')
    expect(await fixture.view()).toMatchObject({ alloc: '9Gi', pvcap: '9Gi', preResize: '3Gi' })
    await fixture.rejectNodeExpansion()
    await fixture.request('5Gi')
    await fixture.waitUntil(async () => (await fixture.view()).alloc === '5Gi', 'the smaller size to be requested')
    await fixture.waitForState('NodeResizePending')
    expect(await fixture.view()).toMatchObject({ pvcap: '5Gi', cap: '3Gi', preResize: '3Gi' })
    await fixture.rejectNodeExpansion()
    await fixture.request('3Gi')
    await fixture.waitUntil(async () => (await fixture.view()).state === undefined, 'the expansion to be cancelled')
    expect(await fixture.view()).toMatchObject({ pvcap: '3Gi', cap: '3Gi', conditions: [] })
    expect((await fixture.view()).preResize).toBeUndefined()
    expect(fixture.fake.record.calls.filter(({ method }) => method === 'ControllerExpandVolume')).toEqual([])
  })

  it('REX-1 waits for the node before it expands further', async () => {
    await fixture.createClaim('data', { size: '10Gi' })
    fixture.start()
    await fixture.request('20Gi')
    await fixture.waitForState('NodeResizePending')
    await fixture.request('30Gi')
    await fixture.settle()
    expect(fixture.expandCalls()).toEqual([20 * GI])
    await fixture.completeNodeExpansion('20Gi')
    await fixture.waitUntil(async () => (await fixture.view()).alloc === '30Gi', 'the next expansion')
    await fixture.waitForState('NodeResizePending')
    expect(fixture.expandCalls()).toEqual([20 * GI, 30 * GI])
  })

  it('REX-1 requests node expansion of a volume that an earlier claim left partly expanded', async () => {
    await fixture.createClaim('data', { size: '20Gi', pvMetadata: { annotations: { [PRE_RESIZE_CAPACITY]: '10Gi' } } })
    await fixture.patchStatus(persistentVolumeClaimKind, 'data', { capacity: { storage: '10Gi' } })
    fixture.start()
    await fixture.waitForState('NodeResizePending')
    expect(await fixture.view()).toMatchObject({ cap: '10Gi', pvcap: '20Gi', alloc: '20Gi', preResize: '10Gi' })
    await fixture.completeNodeExpansion('20Gi')
    await fixture.waitUntil(async () => (await fixture.view()).preResize === undefined, 'the annotation to be removed')
    expect(await fixture.view()).toMatchObject({ cap: '20Gi', pvcap: '20Gi', conditions: [] })
  })

  it('REX-1 requests only node expansion if the claim requests less than the size of a partly expanded volume', async () => {
    await fixture.createClaim('data', { size: '5Gi', actualBytes: 20 * GI, ...PARTLY_EXPANDED_VOLUME })
    await fixture.patchStatus(persistentVolumeClaimKind, 'data', { capacity: { storage: '10Gi' } })
    fixture.start()
    await fixture.waitUntil(async () => (await fixture.view()).conditions.length > 0, 'the resize condition')
    await fixture.settle()
    const expectedView = { req: '5Gi', cap: '10Gi', pvcap: '20Gi', preResize: '10Gi', quota: '5Gi' }
    expect(await fixture.view()).toEqual({ ...expectedView, mark: '5Gi', conditions: ['FileSystemResizePending'] })
    expect(fixture.eventReasons()).toEqual(['FileSystemResizeRequired'])
    expect(fixture.expandCalls()).toEqual([])
    await fixture.completeNodeExpansion('20Gi')
    await fixture.waitUntil(async () => (await fixture.view()).preResize === undefined, 'the annotation to be removed')
    expect(await fixture.view()).toMatchObject({ cap: '20Gi', pvcap: '20Gi', conditions: [] })
  })

  it('REX-7 requests node expansion after an infeasible expansion of a partly expanded volume was cancelled', async () => {
    await fixture.createClaim('data', { size: '5Gi', actualBytes: 20 * GI, ...PARTLY_EXPANDED_VOLUME })
    await fixture.patchStatus(persistentVolumeClaimKind, 'data', { capacity: { storage: '10Gi' } })
    fixture.start()
    fixture.setExpandEffect(failWith('OUT_OF_RANGE'))
    await fixture.request('30Gi')
    await fixture.waitForState('ControllerResizeInfeasible')
    await fixture.request('10Gi')
    await fixture.waitForState(undefined)
    await fixture.waitUntil(async () => (await fixture.view()).conditions.length > 0, 'the resize condition')
    expect(await fixture.view()).toMatchObject({ cap: '10Gi', pvcap: '20Gi', conditions: ['FileSystemResizePending'] })
  })

  it('PLUS-12 limits a size that automatic growth requested to its maximum, but not a size that a user requested', async () => {
    await openFixture({ driver: { roundToBytes: 8 * GI } })
    await fixture.createClaim('data', {
      size: '8Gi',
      metadata: { annotations: { 'stowage.dev/auto-grown': `2026-01-01T00:00:00Z ${8 * GI} 10Gi 12Gi` } },
    })
    fixture.start()
    await fixture.request('10Gi')
    await fixture.waitForState('ControllerResizeInfeasible')
    expect(fixture.bytes()).toBe(8 * GI)
    await fixture.request('11Gi')
    await fixture.waitUntil(() => fixture.bytes() === 16 * GI, 'the driver to expand the volume')
  })

  it("writes the claim's steps with its resourceVersion as a precondition, and failures and the volume without one", async () => {
    const bodies: [string, { metadata: Record<string, unknown> }][] = []
    fixture.setExpandEffect(failWith('INTERNAL'), 1)
    await fixture.createClaim()
    const intercept = (verb: string, args: readonly unknown[]) => {
      if (verb !== 'commit') return
      for (const { patch, kind } of args[0] as Extract<CommitWrite, { do: 'patch' }>[]) {
        bodies.push([kind.kind, patch.body as (typeof bodies)[0][1]])
      }
    }
    fixture.start({ intercept })
    await fixture.request('20Gi')
    await fixture.waitForState('NodeResizePending')
    expect(
      bodies.map(([kind, { metadata }]) => `${kind} ${metadata.resourceVersion === undefined ? 'any' : 'read'}`),
    ).toEqual([
      'PersistentVolumeClaim read', // started
      'PersistentVolumeClaim any', // failed
      'PersistentVolume any', // expanded
      'PersistentVolumeClaim read', // NodeResizePending
    ])
    expect(bodies.every(([, { metadata }]) => metadata.uid !== undefined)).toBe(true)
  })

  it('needs three writes per expansion, two with atomic commits', async () => {
    for (const isAtomic of [true, false]) {
      await openFixture({ driver: { expandsOnNode: false } })
      await fixture.createClaim()
      const instance = fixture.start({ isAtomic })
      await fixture.request('20Gi')
      await fixture.waitUntil(async () => (await fixture.view()).cap === '20Gi', 'the expansion to finish')
      await fixture.settle()
      const writes = instance.calls.filter((call) => call === 'patch' || call === 'commit')
      expect(writes).toEqual(isAtomic ? ['commit', 'commit'] : ['patch', 'patch', 'patch'])
    }
  })
})

describe('failures', () => {
  const startExpansionTo = async (size: string) => {
    await fixture.createClaim('data', { size: '3Gi' })
    const instance = fixture.start()
    await fixture.request(size)
    return instance
  }

  for (const code of ['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND'] as const) {
    it(`REX-7 marks the size infeasible and retries after slowRetryMs if the driver returns ${code}`, async () => {
      fixture.setExpandEffect(failWith(code))
      const instance = await startExpansionTo('11Gi')
      await fixture.waitForState('ControllerResizeInfeasible')
      await fixture.settle()
      expect(fixture.expandCalls()).toEqual([11 * GI])
      expect(fixture.events.at(-1)).toMatchObject({ type: 'Warning', reason: 'VolumeResizeFailed' })
      expect(fixture.events.at(-1)?.message).toMatch(
        /^resize volume "data" by resizer "disks.example.com" failed: rpc error: code = /,
      )
      const message = (await fixture.claim())?.status?.conditions?.find(
        ({ type }) => type === 'ControllerResizeError',
      )?.message
      expect(message).toMatch(/^failed to expand pvc with rpc error/)
      expect(instance.queueState()).toMatchObject({ is: 'waiting' })
      await fixture.server.clock.advance(299_000)
      await fixture.settle()
      expect(fixture.expandCalls()).toHaveLength(1)
      await fixture.server.clock.advance(2_000)
      await fixture.waitUntil(() => fixture.expandCalls().length === 2, 'the second attempt')
      await fixture.waitForState('ControllerResizeInfeasible')

      await fixture.request('4Gi')
      await fixture.waitUntil(async () => (await fixture.view()).alloc === '4Gi', 'the smaller size to be requested', {
        shouldAdvanceClock: false,
      })
    })
  }

  it('REX-7 keeps the retry delay of an infeasible size after a restart', async () => {
    fixture.setExpandEffect(failWith('OUT_OF_RANGE'))
    const firstProcess = await startExpansionTo('11Gi')
    await fixture.waitForState('ControllerResizeInfeasible')
    await firstProcess.stop()
    const secondProcess = fixture.start()
    await fixture.waitUntil(() => secondProcess.queueState()?.is === 'waiting', 'the claim to wait')
    expect(fixture.expandCalls()).toHaveLength(1)
  })

  it('REX-7 backs off after a final error, and requests a new size immediately', async () => {
    fixture.setExpandEffect(failWith('PERMISSION_DENIED'))
    const instance = await startExpansionTo('11Gi')
    await fixture.waitUntil(
      async () => (await fixture.view()).conditions.includes('ControllerResizeError'),
      'the error condition',
    )
    await fixture.waitUntil(() => instance.queueState()?.is === 'waiting', 'the backoff')
    expect(fixture.expandCalls()).toHaveLength(1)
    expect((await fixture.view()).state).toBe('ControllerResizeInProgress')
    fixture.setRules()
    await fixture.request('4Gi')
    await fixture.waitUntil(
      async () => (await fixture.view()).state === 'NodeResizePending',
      'the node expansion to be pending',
      {
        shouldAdvanceClock: false,
      },
    )
    expect(fixture.expandCalls()).toEqual([11 * GI, 4 * GI])
    expect(await fixture.view()).toMatchObject({
      alloc: '4Gi',
      pvcap: '4Gi',
      conditions: ['FileSystemResizePending', 'Resizing'],
    })
  })

  it('REX-7 reports errors for a smaller size like errors for any other', async () => {
    fixture.setRules(
      { method: 'ControllerExpandVolume', nth: 1, effect: failWith('INTERNAL') },
      { method: 'ControllerExpandVolume', nth: 2, effect: failWith('FAILED_PRECONDITION') },
      { method: 'ControllerExpandVolume', nth: 3, effect: failWith('INVALID_ARGUMENT') },
    )
    const instance = await startExpansionTo('11Gi')
    await fixture.waitUntil(
      () => fixture.expandCalls().length === 1 && instance.queueState()?.is === 'waiting',
      'the first attempt',
    )
    await fixture.request('5Gi')
    await fixture.waitUntil(
      () => fixture.expandCalls().length === 2 && instance.queueState()?.is === 'waiting',
      'the second attempt',
    )
    expect(await fixture.view()).toMatchObject({ alloc: '5Gi', state: 'ControllerResizeInProgress' })
    await fixture.waitForState('ControllerResizeInfeasible')
    expect((await fixture.view()).alloc).toBe('5Gi')
    expect(fixture.expandCalls()).toEqual([11 * GI, 5 * GI, 5 * GI])
  })

  for (const code of ['RESOURCE_EXHAUSTED', 'UNAVAILABLE', 'DEADLINE_EXCEEDED', 'ABORTED', 'CANCELLED'] as const) {
    it(`REX-7 requests a lowered size immediately after ${code}, and never the earlier one again`, async () => {
      fixture.setExpandEffect(failWith(code))
      const instance = await startExpansionTo('100Gi')
      await fixture.waitUntil(() => instance.queueState()?.is === 'waiting', 'a call without final response')
      await fixture.request('30Gi')
      await fixture.waitUntil(() => fixture.expandCalls().includes(30 * GI), 'the lower size to be requested', {
        shouldAdvanceClock: false,
      })
      expect(await fixture.view()).toMatchObject({ alloc: '30Gi', state: 'ControllerResizeInProgress' })
      fixture.setRules()
      await fixture.waitForState('NodeResizePending')
      const [firstCall, ...laterCalls] = fixture.expandCalls()
      expect(firstCall).toBe(100 * GI)
      expect(new Set(laterCalls)).toEqual(new Set([30 * GI]))
      expect(await fixture.view()).toMatchObject({ req: '30Gi', alloc: '30Gi', pvcap: '30Gi', mark: '100Gi' })
    })

    it(`REX-7 cancels immediately after ${code} when the request is lowered to the capacity, and does not grow later`, async () => {
      fixture.setRules({ method: 'ControllerExpandVolume', nth: 1, effect: failWith(code) })
      const instance = await startExpansionTo('100Gi')
      await fixture.waitUntil(() => instance.queueState()?.is === 'waiting', 'a call without final response')
      await fixture.request('3Gi')
      await fixture.waitUntil(async () => (await fixture.view()).state === undefined, 'the expansion to be cancelled', {
        shouldAdvanceClock: false,
      })
      await fixture.server.clock.advance(3_600_000)
      await fixture.settle()
      expect(fixture.expandCalls()).toEqual([100 * GI, 3 * GI])
      expect(fixture.bytes()).toBe(3 * GI)
      expect(await fixture.view()).toMatchObject({ req: '3Gi', cap: '3Gi', pvcap: '3Gi', conditions: [] })
      expect(fixture.eventReasons().at(-1)).toBe('VolumeResizeCancelled')
    })
  }

  it('REX-7 requests the lowered size after a restart', async () => {
    fixture.setExpandEffect(failWith('UNAVAILABLE'))
    const firstProcess = await startExpansionTo('11Gi')
    await fixture.waitUntil(() => firstProcess.queueState()?.is === 'waiting', 'a call without response')
    await firstProcess.stop()
    await fixture.request('5Gi')
    fixture.setRules()
    fixture.start()
    await fixture.waitForState('NodeResizePending')
    expect(fixture.expandCalls()).toEqual([11 * GI, 5 * GI])
    expect(await fixture.view()).toMatchObject({ req: '5Gi', alloc: '5Gi', pvcap: '5Gi' })
  })

  it('REX-7 requests the recorded size before a restarted process cancels', async () => {
    fixture.setExpandEffect({ do: 'loseReply', as: 'unavailable' }, 1)
    const firstProcess = await startExpansionTo('11Gi')
    await fixture.waitUntil(() => firstProcess.queueState()?.is === 'waiting', 'a call without response')
    await firstProcess.stop()
    await fixture.request('3Gi')
    fixture.start()
    await fixture.waitForState('NodeResizePending')
    expect(fixture.expandCalls()).toEqual([11 * GI, 3 * GI])
    expect(await fixture.view()).toMatchObject({ req: '3Gi', alloc: '11Gi', pvcap: '11Gi' })
  })

  it('REX-7 reports a transient error that lasts as a condition, written once', async () => {
    fixture.setExpandEffect(failWith('RESOURCE_EXHAUSTED'))
    await startExpansionTo('11Gi')
    await fixture.waitUntil(() => fixture.expandCalls().length === 1, 'the first call')
    await fixture.settle()
    expect((await fixture.view()).conditions).toEqual(['Resizing'])
    await fixture.waitUntil(() => fixture.expandCalls().length >= 2, 'the second call')
    await fixture.settle()
    expect(await fixture.view()).toMatchObject({
      state: 'ControllerResizeInProgress',
      conditions: ['ControllerResizeError', 'Resizing'],
    })
    const writes = fixture.recordedViews.length
    await fixture.waitUntil(() => fixture.expandCalls().length >= 4, 'further calls')
    expect(fixture.recordedViews).toHaveLength(writes)
    fixture.setRules()
    await fixture.waitForState('NodeResizePending')
    expect((await fixture.view()).conditions).toEqual(['FileSystemResizePending', 'Resizing'])
  })

  it('REX-8 accepts the actual size if a call without a response has expanded the volume beyond the lowered request', async () => {
    fixture.setRules(
      { method: 'ControllerExpandVolume', nth: 1, effect: failWith('OUT_OF_RANGE') },
      { method: 'ControllerExpandVolume', nth: 2, effect: { do: 'loseReply', as: 'unavailable' } },
      { method: 'ControllerExpandVolume', effect: failWith('ABORTED') },
    )
    await startExpansionTo('11Gi')
    await fixture.waitForState('ControllerResizeInfeasible')
    await fixture.server.clock.advance(301_000)
    await fixture.waitUntil(() => fixture.expandCalls().length > 2, 'calls without a final response')
    expect((await fixture.view()).state).toBe('ControllerResizeInProgress')
    await fixture.request('5Gi')
    fixture.setRules()
    await fixture.waitForState('NodeResizePending')
    expect(await fixture.view()).toMatchObject({ alloc: '11Gi', pvcap: '11Gi', req: '5Gi' })
    expect(fixture.expandCalls().at(-1)).toBe(5 * GI)
  })

  it('REX-7 marks the size infeasible if the driver returns OK with a smaller size', async () => {
    fixture.setExpandEffect({ do: 'overrideSize', bytes: 3 * GI }, 1)
    await startExpansionTo('11Gi')
    await fixture.waitForState('ControllerResizeInfeasible')
    await fixture.settle()
    expect(fixture.expandCalls()).toHaveLength(1)
    expect(fixture.events.at(-1)?.message).toMatch(/reports success, but a size of 3Gi instead of the requested 11Gi$/)
    expect((await fixture.view()).pvcap).toBe('3Gi')
    await fixture.request('4Gi')
    await fixture.waitForState('NodeResizePending')
    expect((await fixture.view()).pvcap).toBe('4Gi')
  })

  it('REX-7 REX-2 cancels the expansion immediately when the request is lowered to the capacity', async () => {
    fixture.setExpandEffect(failWith('OUT_OF_RANGE'))
    await startExpansionTo('11Gi')
    await fixture.waitForState('ControllerResizeInfeasible')
    await fixture.request('3Gi')
    await fixture.waitUntil(async () => (await fixture.view()).state === undefined, 'the expansion to be cancelled', {
      shouldAdvanceClock: false,
    })
    expect(await fixture.view()).toEqual({
      ...{ req: '3Gi', cap: '3Gi', pvcap: '3Gi', conditions: [], mark: '11Gi', quota: '11Gi' },
    })
    expect(fixture.eventReasons().at(-1)).toBe('VolumeResizeCancelled')
    await fixture.server.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.expandCalls()).toHaveLength(1)
  })

  it('REX-7 REX-8 checks for an expansion with a lost response before it cancels', async () => {
    // The volume is expanded, but the response is lost; the check of its size fails twice.
    fixture.setRules(
      { method: 'ControllerExpandVolume', nth: 1, effect: { do: 'loseReply', as: 'unavailable' } },
      { method: 'ControllerExpandVolume', nth: 2, effect: failWith('INTERNAL') },
      { method: 'ControllerExpandVolume', nth: 3, effect: failWith('UNAVAILABLE') },
    )
    await startExpansionTo('11Gi')
    await fixture.waitUntil(() => fixture.expandCalls().length === 1, 'the first expand call')
    await fixture.request('3Gi')
    await fixture.waitForState('NodeResizePending')
    expect(fixture.expandCalls()).toEqual([11 * GI, 3 * GI, 3 * GI, 3 * GI])
    expect(await fixture.view()).toMatchObject({ req: '3Gi', alloc: '11Gi', pvcap: '11Gi' })
    expect(fixture.eventReasons()).not.toContain('VolumeResizeCancelled')
  })

  it('REX-7 reports why a cancellation waits for the driver', async () => {
    fixture.setExpandEffect(failWith('UNAVAILABLE'))
    await startExpansionTo('11Gi')
    await fixture.waitUntil(() => fixture.expandCalls().length === 1, 'the first expand call')
    await fixture.request('3Gi')
    await fixture.waitUntil(
      async () => (await fixture.view()).conditions.includes('ControllerResizeError'),
      'the condition',
    )
    const { message } = (await fixture.claim())!.status!.conditions!.find(
      ({ type }) => type === 'ControllerResizeError',
    )!
    expect(message).toMatch(/cancelled as soon as the driver reports the volume's size: rpc error: code = Unavailable/)
    fixture.setRules()
    await fixture.waitUntil(async () => (await fixture.view()).state === undefined, 'the expansion to be cancelled')
    expect(new Set(fixture.expandCalls().slice(1))).toEqual(new Set([3 * GI]))
  })

  it('REX-7 cancels if the driver keeps rejecting even the current size', async () => {
    fixture.setRules(
      { method: 'ControllerExpandVolume', nth: 1, effect: failWith('UNAVAILABLE') },
      { method: 'ControllerExpandVolume', effect: failWith('INTERNAL') },
    )
    await startExpansionTo('11Gi')
    await fixture.waitUntil(() => fixture.expandCalls().length === 1, 'the first expand call')
    await fixture.request('3Gi')
    await fixture.waitUntil(async () => (await fixture.view()).state === undefined, 'the expansion to be cancelled')
    expect(fixture.expandCalls()).toEqual([11 * GI, ...Array.from({ length: 5 }, () => 3 * GI)])
  })

  it('REX-7 uses a request lowered during the call as soon as the call fails', async () => {
    fixture.setRules({ method: 'ControllerExpandVolume', nth: 1, afterMs: 5_000, effect: failWith('INTERNAL') })
    await startExpansionTo('11Gi')
    await fixture.waitUntil(() => fixture.expandCalls().length === 1, 'the first expand call', {
      shouldAdvanceClock: false,
    })
    await fixture.request('5Gi')
    await fixture.server.clock.advance(5_000)
    await fixture.waitUntil(
      async () => (await fixture.view()).state === 'NodeResizePending',
      'the node expansion to be pending',
      {
        shouldAdvanceClock: false,
      },
    )
    expect(fixture.expandCalls()).toEqual([11 * GI, 5 * GI])
  })

  it('REX-8 saves the result of a call without a second call if the claim is edited during the call', async () => {
    fixture.setRules({ method: 'ControllerExpandVolume', nth: 1, afterMs: 5_000 })
    await startExpansionTo('11Gi')
    await fixture.waitUntil(() => fixture.expandCalls().length === 1, 'the first expand call', {
      shouldAdvanceClock: false,
    })
    await fixture.request('20Gi')
    await fixture.request('15Gi')
    await fixture.server.clock.advance(5_000)
    await fixture.waitForState('NodeResizePending')
    expect(await fixture.view()).toMatchObject({ req: '15Gi', alloc: '11Gi', pvcap: '11Gi' })
    expect(fixture.expandCalls()).toEqual([11 * GI])
  })

  it('REX-9 retries an infeasible node expansion once after each edit to the claim, otherwise after slowRetryMs', async () => {
    await startExpansionTo('9Gi')
    await fixture.waitForState('NodeResizePending')
    await fixture.rejectNodeExpansion()
    await fixture.settle()
    expect(fixture.expandCalls()).toHaveLength(1)
    await fixture.request('5Gi')
    await fixture.waitUntil(
      async () => (await fixture.view()).state === 'NodeResizePending',
      'the retry after the edit',
      { shouldAdvanceClock: false },
    )
    expect(fixture.expandCalls()).toEqual([9 * GI, 9 * GI])
    await fixture.rejectNodeExpansion()
    await fixture.settle()
    expect(await fixture.view()).toMatchObject({ state: 'NodeResizeInfeasible', alloc: '9Gi', pvcap: '9Gi' })
    expect(fixture.expandCalls()).toHaveLength(2)
    await fixture.server.clock.advance(301_000)
    await fixture.waitForState('NodeResizePending')
    expect(fixture.expandCalls()).toHaveLength(3)
  })

  it('REX-7 retries and cancels many failing claims independently', async () => {
    fixture.setRules({ method: 'ControllerExpandVolume', effect: failWith('INTERNAL') })
    const names = Array.from({ length: 20 }, (_, index) => `claim-${index}`)
    for (const name of names) await fixture.createClaim(name, { size: '3Gi' })
    fixture.start()
    for (const name of names) await fixture.request('11Gi', name)
    await fixture.waitUntil(() => names.every((name) => fixture.expandCalls(name).length >= 3), 'a few attempts each')
    for (const name of names) await fixture.request('3Gi', name)
    for (const name of names) {
      await fixture.waitUntil(async () => (await fixture.view(name)).state === undefined, `${name} to be cancelled`)
    }
    expect(fixture.fake.record.overlaps).toEqual([])
  })
})

describe('a driver that supports only offline expansion', () => {
  const createClaimOfOfflineDriver = () => {
    fixture.setExpandEffect(failWith('FAILED_PRECONDITION', 'in use'))
    return fixture.createClaim()
  }

  it('is called again when the last pod has terminated, without a timer', async () => {
    await createClaimOfOfflineDriver()
    await fixture.createPod('user')
    await fixture.createPod('terminated')
    await fixture.terminatePod('terminated', 'Failed')
    const instance = fixture.start()
    await fixture.request('20Gi')
    await fixture.waitUntil(() => instance.queueState()?.is === 'stuck', 'the claim to wait for pods')
    expect(fixture.expandCalls()).toHaveLength(1)
    expect(instance.queueState()?.message).toBe(
      'Unable to expand default/data because CSI driver disks.example.com only supports offline expansion and volume is currently in-use',
    )
    await fixture.server.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.expandCalls()).toHaveLength(1)
    fixture.setRules()
    await fixture.terminatePod('user')
    await fixture.waitUntil(
      async () => (await fixture.view()).state === 'NodeResizePending',
      'the node expansion to be pending',
      {
        shouldAdvanceClock: false,
      },
    )
  })

  it('is called again when the pod is deleted', async () => {
    await createClaimOfOfflineDriver()
    await fixture.createPod('user')
    const instance = fixture.start()
    await fixture.request('20Gi')
    await fixture.waitUntil(() => instance.queueState()?.is === 'stuck', 'the claim to wait for pods')
    fixture.setRules()
    await fixture.deletePod('user')
    await fixture.waitUntil(
      async () => (await fixture.view()).state === 'NodeResizePending',
      'the node expansion to be pending',
      {
        shouldAdvanceClock: false,
      },
    )
  })

  it('is called again with backoff if no pod uses the volume or handlesInUse is false', async () => {
    await createClaimOfOfflineDriver()
    const instance = fixture.start()
    await fixture.request('20Gi')
    await fixture.waitUntil(() => instance.queueState()?.is === 'waiting', 'the backoff')
    await fixture.waitUntil(() => fixture.expandCalls().length >= 3, 'more attempts')
    await instance.stop()
    await fixture.createPod('user')
    fixture.start({ options: { handlesInUse: false } })
    await fixture.waitUntil(() => fixture.expandCalls().length >= 6, 'more attempts')
  })

  it('REX-7 does not delay a cancellation until the pod has terminated', async () => {
    await createClaimOfOfflineDriver()
    await fixture.createPod('user')
    const instance = fixture.start()
    await fixture.request('20Gi')
    await fixture.waitUntil(() => instance.queueState()?.is === 'stuck', 'the claim to wait for pods')
    await fixture.request('10Gi')
    await fixture.waitUntil(async () => (await fixture.view()).state === undefined, 'the expansion to be cancelled', {
      shouldAdvanceClock: false,
    })
    expect((await fixture.view()).conditions).toEqual([])
  })
})

describe('checking the free capacity', () => {
  it('PLUS-12 rejects a size beyond the free capacity without calling the driver', async () => {
    await fixture.setCapacityTracking()
    await fixture.createCapacity('everywhere', { capacity: '15Gi' })
    await fixture.createClaim()
    const instance = fixture.start()
    await fixture.request('30Gi')
    await fixture.waitForState('ControllerResizeInfeasible')
    expect(fixture.expandCalls()).toEqual([])
    expect(fixture.events).toEqual([
      expect.objectContaining({ reason: 'VolumeResizeFailed', message: expect.stringContaining('5Gi short') }),
    ])
    expect(await fixture.view()).toMatchObject({ alloc: '30Gi', conditions: ['ControllerResizeError', 'Resizing'] })
    await fixture.waitUntil(() => instance.queueState()?.is === 'stuck', 'the claim to wait for capacity')

    await fixture.setCapacity('everywhere', '18Gi')
    await fixture.waitUntil(() => fixture.events.length === 2, 'the event with the new amount')
    expect(fixture.events[1]?.message).toContain('2Gi short')
    await fixture.request('20Gi')
    await fixture.waitUntil(
      async () => (await fixture.view()).state === 'NodeResizePending',
      'the node expansion to be pending',
      {
        shouldAdvanceClock: false,
      },
    )
    expect(fixture.expandCalls()).toEqual([20 * GI])
  })

  it('PLUS-12 expands when capacity becomes free, even after a restart', async () => {
    await fixture.setCapacityTracking()
    await fixture.createCapacity('everywhere', { capacity: '15Gi' })
    await fixture.createClaim()
    const firstProcess = fixture.start()
    await fixture.request('30Gi')
    await fixture.waitForState('ControllerResizeInfeasible')
    await firstProcess.stop()
    const secondProcess = fixture.start()
    await fixture.waitUntil(() => secondProcess.queueState()?.is === 'stuck', 'the claim to wait')
    await fixture.setCapacity('everywhere', '25Gi')
    await fixture.waitUntil(
      async () => (await fixture.view()).state === 'NodeResizePending',
      'the node expansion to be pending',
      {
        shouldAdvanceClock: false,
      },
    )
  })

  it('PLUS-12 calls the driver if it does not track capacity', async () => {
    await fixture.setCapacityTracking(false)
    await fixture.createCapacity('everywhere', { capacity: '1Gi' })
    await fixture.createClaim()
    fixture.start()
    await fixture.request('30Gi')
    await fixture.waitForState('NodeResizePending')
  })
})

describe('lowering the request', () => {
  const loweredEvents = () => fixture.events.filter(({ reason }) => reason === 'StorageRequestLowered')

  it('REX-6 records an event on the claim and the volume', async () => {
    fixture.setExpandEffect(failWith('OUT_OF_RANGE'))
    await fixture.createClaim()
    fixture.start()
    await fixture.request('100Gi')
    await fixture.waitForState('ControllerResizeInfeasible')
    await fixture.request('20Gi')
    await fixture.waitUntil(() => loweredEvents().length === 2, 'the events to be recorded')
    expect(loweredEvents().map(({ objectName }) => objectName)).toEqual([
      'PersistentVolumeClaim data',
      'PersistentVolume data',
    ])
    expect(loweredEvents()[0]?.message).toBe(
      'The storage requested by claim default/data was lowered from 100Gi to 20Gi; its volume has 10Gi and does not ' +
        'shrink. Quota continues to charge 100Gi.',
    )
  })

  it('REX-6 records one event per edit, even after restarts and for edits made while no controller was running', async () => {
    fixture.setExpandEffect(failWith('UNAVAILABLE'))
    await fixture.createClaim()
    const firstProcess = fixture.start()
    await fixture.request('100Gi')
    await fixture.waitUntil(() => firstProcess.queueState()?.is === 'waiting', 'a call without response')
    await firstProcess.stop()
    await fixture.request('20Gi')
    const secondProcess = fixture.start()
    await fixture.waitUntil(() => loweredEvents().length === 2, 'the events to be recorded')
    await fixture.waitUntil(() => fixture.expandCalls().length >= 4, 'a few attempts')
    await secondProcess.stop()
    expect(loweredEvents()).toHaveLength(2)

    const claim = (await fixture.claim())!
    const { message, reason } = loweredEvents()[0]!
    const involvedObject = {
      kind: 'PersistentVolumeClaim',
      namespace: 'default',
      name: 'data',
      uid: claim.metadata.uid,
    }
    await fixture.client.create(eventKind, {
      metadata: { namespace: 'default', name: 'data.1' },
      ...{ involvedObject, reason, message, type: 'Normal' },
    } as never)
    const thirdProcess = fixture.start()
    await fixture.waitUntil(() => fixture.expandCalls().length >= 7, 'a few more attempts')
    await thirdProcess.stop()
    expect(loweredEvents(), 'an event exists already').toHaveLength(2)
  })
})

describe('expansion and modification of one volume', () => {
  it('VAC-14 run one after the other, and a failed expansion does not delay the modification', async () => {
    fixture.setRules({ method: 'ControllerExpandVolume', nth: 1, afterMs: 5_000, effect: failWith('INTERNAL') })
    const reconciles: string[] = []
    const modification: VolumeChange = {
      name: 'modifying',
      matters: (next, old) => next.metadata.labels?.tier !== old.metadata.labels?.tier,
      async reconcile({ claim }) {
        reconciles.push(`${claim.metadata.labels?.tier} after ${fixture.expandCalls().length}`)
        return done
      },
    }
    await fixture.createClaim()
    const instance = fixture.start({ changes: [modification] })
    await fixture.waitUntil(() => reconciles.length === 1, 'the first reconcile')
    const body = { metadata: { labels: { tier: 'gold' } }, spec: { resources: { requests: { storage: '20Gi' } } } }
    await fixture.client.patch(
      persistentVolumeClaimKind,
      { namespace: 'default', name: 'data' },
      { type: 'merge', body },
    )
    await fixture.waitUntil(() => fixture.expandCalls().length === 1, 'the first expand call', {
      shouldAdvanceClock: false,
    })
    await fixture.settle()
    expect(reconciles).toHaveLength(1)
    expect(instance.queueState('data', 'modifying')).toMatchObject({ is: 'stuck' })
    await fixture.server.clock.advance(5_000)
    await fixture.waitUntil(() => reconciles.length === 2, 'the modification to be reconciled', {
      shouldAdvanceClock: false,
    })
    expect(reconciles[1]).toBe('gold after 1')
    expect(instance.queueState()).toMatchObject({ is: 'waiting' })
  })
})

describe('the process after a crash at any call', () => {
  for (const isAtomic of [true, false]) {
    it(`REX-8 requests the lowered size and records the actual one (${isAtomic ? 'commits' : 'single writes'})`, async () => {
      let calls = 1
      for (let call = 0; call < calls; call++) {
        for (const when of ['before', 'after'] as const) {
          await openFixture()
          await fixture.createClaim()
          const firstProcess = fixture.start({ isAtomic, killAt: { call, when } })
          await fixture.request('20Gi')
          await fixture.waitUntil(
            async () => firstProcess.hasCrashed || (await fixture.view()).state === 'NodeResizePending',
            'the end of the expansion',
          )
          if (!firstProcess.hasCrashed) continue
          calls = Math.max(calls, firstProcess.calls.length + 1)
          await fixture.request('15Gi')
          fixture.start({ isAtomic })
          await fixture.waitForState('NodeResizePending')
          const { alloc, pvcap } = await fixture.view()
          expect(alloc).toBe(pvcap)
          expect(fixture.bytes()).toBe(Math.max(...fixture.expandCalls()))
          expect(fixture.bytes()).toBe(Number(quantityToBytes(pvcap)))
          // 20Gi is requested again only to complete an expansion that is recorded in the volume but not in the claim.
          const [firstCall, ...laterCalls] = fixture.expandCalls()
          const isFinished = laterCalls.length === 0 && firstCall === 20 * GI
          const isRecorded = !isAtomic && laterCalls.length > 0 && laterCalls.every((bytes) => bytes === 20 * GI)
          expect(isFinished || isRecorded || fixture.expandCalls().at(-1) === 15 * GI).toBe(true)
        }
      }
      expect(calls).toBeGreaterThan(isAtomic ? 3 : 4)
    })
  }
})

describe('a process that is no longer the leader', () => {
  it('neither calls the driver nor writes', async () => {
    await fixture.createClaim()
    const election = {
      assertStillLeader() {
        throw new Error('this process no longer leads')
      },
      fence() {
        throw new Error('this process no longer leads')
      },
    }
    const instance = fixture.start({ election })
    await fixture.request('20Gi')
    await fixture.waitUntil(() => instance.queueState()?.is === 'waiting', 'the failure to be reported')
    expect(fixture.expandCalls()).toEqual([])
    expect((await fixture.view()).state).toBeUndefined()
  })
})

describe('feature gates', () => {
  for (const isTracked of [false, true]) {
    const problem = isTracked ? 'exceeds the free capacity' : 'the driver rejects'
    it(`REX-10 records one failure for a size that ${problem} if RecoverExpansionFailure is off`, async () => {
      await openFixture({ server: { gates: 'RecoverExpansionFailure=false' } })
      await fixture.createClaim()
      if (isTracked) {
        await fixture.setCapacityTracking()
        await fixture.createCapacity('small', { capacity: '1Gi' })
      }
      fixture.setExpandEffect(failWith('OUT_OF_RANGE'))
      fixture.start()
      await fixture.request('500Gi')
      const failures = () => fixture.events.filter((event) => event.reason === 'VolumeResizeFailed')
      await fixture.waitUntil(() => failures().length > 0, 'the failure to be reported', { shouldAdvanceClock: false })
      for (let round = 0; round < 5; round++) await fixture.settle()
      expect(failures()).toHaveLength(1)
      expect(fixture.expandCalls()).toHaveLength(isTracked ? 0 : 1)
    })
  }

  it('REX-10 reports expansion only in conditions if the server has RecoverExpansionFailure disabled', async () => {
    await openFixture({ server: { gates: 'RecoverExpansionFailure=false' } })
    await fixture.createClaim()
    fixture.start()
    await fixture.request('20Gi')
    await fixture.waitUntil(async () => (await fixture.view()).pvcap === '20Gi', 'the volume to be expanded')
    await fixture.settle()
    const view = await fixture.view()
    expect([view.alloc, view.state]).toEqual([undefined, undefined])
    expect(view.conditions).toEqual(['FileSystemResizePending', 'Resizing'])
    expect(fixture.expandCalls()).toEqual([20 * GI])
    await fixture.completeNodeExpansion('20Gi')
    await fixture.waitUntil(async () => (await fixture.view()).preResize === undefined, 'the annotation to be removed')
    expect((await fixture.view()).conditions).toEqual([])
    expect((await fixture.client.get(persistentVolumeKind, { name: 'data' })).spec?.capacity).toEqual({
      storage: '20Gi',
    })
  })
})
