import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { CommitWrite } from '../../client/index.ts'
import type { CsiFailureCode } from '../../csi/index.ts'
import { done } from '../../runtime/index.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import type { VolumeChange } from '../volume-changes/index.ts'
import { aWorld, DRIVER, type World, type WorldOptions } from './expanding.fixture.ts'

const GI = 1024 ** 3
const fail = (code: CsiFailureCode, message = 'no') => ({ do: 'fail', code, message }) as const

let world: World
const open = async (options: WorldOptions = {}) => {
  await world?.close()
  world = await aWorld(options)
}
beforeEach(() => open())
afterEach(() => world.close())

/** The device has 20Gi, the file system 10Gi. */
const PARTLY_EXPANDED = {
  pv: { capacity: { storage: '20Gi' } },
  pvMetadata: { annotations: { [PRE_RESIZE_CAPACITY]: '10Gi' } },
}

describe('expanding a claim', () => {
  it('REX-1 (1) calls the driver, then waits for the node', async () => {
    await world.aClaim('data', { size: '1G' })
    world.start()
    await world.request('2G')
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ alloc: '2G', cap: '1G', pvcap: '2G', before: '1G' })
    expect(await world.needsNoNode()).toBe(false)
    expect(world.expandCalls()).toEqual([2_000_000_000])
    expect(world.reasons()).toEqual(['Resizing', 'FileSystemResizeRequired'])
    expect(world.events[0]?.message).toBe('External resizer is resizing volume data')
  })

  it('REX-1 (2) finishes without the node if the driver needs no node expansion', async () => {
    await open({ driver: { expandsOnNode: false } })
    await world.aClaim('data', { size: '1G' })
    world.start()
    await world.request('2G')
    await world.until(async () => (await world.view()).cap === '2G', 'the expansion')
    const view = await world.view()
    expect(view).toMatchObject({ alloc: '2G', pvcap: '2G', conditions: [] })
    expect([view.state, view.before]).toEqual([undefined, undefined])
    expect(await world.needsNoNode()).toBe(true)
    expect(world.reasons()).toEqual(['Resizing', 'VolumeResizeSuccessful'])

    await open()
    await world.aClaim('data', {
      metadata: { annotations: { 'volume.kubernetes.io/node-expansion-not-required': 'true' } },
    })
    world.start()
    await world.request('20Gi')
    await world.untilState('NodeResizePending')
    expect(await world.needsNoNode(), 'the next growth may need the node').toBe(false)
  })

  it('REX-1 records the driver’s size if it is larger than requested', async () => {
    await open({ driver: { expandsOnNode: false, roundToBytes: GI } })
    await world.aClaim()
    world.start()
    await world.request('11.5Gi')
    await world.until(async () => (await world.view()).cap === '12Gi', 'the expansion')
    expect(await world.view()).toMatchObject({ pvcap: '12Gi', alloc: '11776Mi' })
  })

  it('REX-1 (14) sends the volume capability to the driver', async () => {
    await world.aClaim('files', { pv: { mountOptions: ['noatime'] } })
    await world.aClaim('device', { pv: { volumeMode: 'Block' } })
    world.start()
    await world.request('20Gi', 'files')
    await world.request('20Gi', 'device')
    await world.until(() => world.expandCalls('files').length + world.expandCalls('device').length === 2, 'both calls')
    const capabilityOf = (name: string) =>
      (world.fake.record.calls.find((call) => call.volume === name)!.request as { volumeCapability?: unknown })
        .volumeCapability
    expect(capabilityOf('files')).toMatchObject({ mount: { fsType: 'ext4' } })
    expect(capabilityOf('device')).toMatchObject({ block: {} })
  })

  it('REX-1 records an event for access modes that CSI cannot express', async () => {
    await world.aClaim('data', { accessModes: ['ReadWriteOnce', 'ReadOnlyMany'] })
    const process = world.start()
    await world.request('20Gi')
    await world.until(() => process.standing()?.is === 'stuck', 'the claim to be stuck')
    expect(world.expandCalls()).toEqual([])
    expect(world.events.at(-1)?.message).toMatch(/ReadOnlyMany and ReadWriteOnce/)
    expect((await world.view()).conditions).toEqual([])
  })

  it('REX-1 sends secrets to the driver and strips them from events', async () => {
    await open({ driver: { secretKeys: ['token'] } })
    const secretRef = { controllerExpandSecretRef: { namespace: 'default', name: 'key' } }
    await world.aClaim('data', {
      pv: { csi: { driver: DRIVER, volumeHandle: 'vol-data', fsType: 'ext4', ...secretRef } },
    })
    const process = world.start()
    await world.request('20Gi')
    await world.until(() => process.standing()?.is === 'waiting', 'the missing secret')
    expect(world.events.at(-1)?.message).toMatch(/error getting secret key in namespace default/)
    expect((await world.view()).state, 'nothing was started').toBeUndefined()

    const token = Buffer.from('s3cr3t-token').toString('base64')
    await world.server.post('/api/v1/namespaces/default/secrets', { metadata: { name: 'key' }, data: { token } })
    world.driverReturns(fail('INTERNAL', 'the token s3cr3t-token has expired'), 1)
    await world.untilState('NodeResizePending')
    expect(world.fake.record.calls.at(-1)?.secretKeys).toEqual(['token'])
    expect(JSON.stringify(world.events)).not.toContain('s3cr3t')
    expect(JSON.stringify(world.events)).toContain('***stripped***')
  })

  it('REX-1 (17) keeps status fields of other resources', async () => {
    await world.aClaim('data', {
      status: {
        allocatedResourceStatuses: { 'example.com/x': 'NodeResizePending' },
        allocatedResources: { 'example.com/x': '7' },
        conditions: [{ type: 'ModifyingVolume', status: 'True' }],
      },
    })
    world.start()
    await world.request('20Gi')
    await world.untilState('NodeResizePending')
    await world.nodeSucceeds('20Gi')
    const { status } = (await world.claim())!
    expect(status?.allocatedResourceStatuses).toEqual({ 'example.com/x': 'NodeResizePending' })
    expect(status?.allocatedResources).toEqual({ 'example.com/x': '7', storage: '20Gi' })
    expect(status?.conditions?.map(({ type }) => type)).toEqual(['ModifyingVolume'])
  })

  it('REX-1 (16) removes the pre-resize capacity once the node has finished, also after a restart', async () => {
    await world.aClaim()
    const first = world.start()
    await world.request('20Gi')
    await world.untilState('NodeResizePending')
    await first.stop()
    await world.nodeSucceeds('20Gi')
    expect((await world.view()).before).toBe('10Gi')
    world.start()
    await world.until(async () => (await world.view()).before === undefined, 'the annotation to be removed')
  })

  it('REX-1 (12) ignores claims whose volume belongs to another claim or driver', async () => {
    const pv = (claimRef: object | undefined, driver = DRIVER) => ({
      ...(claimRef ? { claimRef } : { claimRef: undefined }),
      csi: { driver, volumeHandle: 'vol-data' },
    })
    await world.aClaim('other-uid', { pv: pv({ namespace: 'default', name: 'other-uid', uid: 'someone' }) })
    await world.aClaim('other-namespace', { pv: pv({ namespace: 'kube-system', name: 'other-namespace', uid: 'x' }) })
    await world.aClaim('unclaimed', { pv: pv(undefined) })
    await world.aClaim('foreign', { pv: { csi: { driver: 'else.example.com', volumeHandle: 'vol-foreign' } } })
    world.start()
    for (const name of ['other-uid', 'other-namespace', 'unclaimed', 'foreign']) await world.request('20Gi', name)
    await world.settle()
    expect(world.fake.record.calls.filter(({ method }) => method === 'ControllerExpandVolume')).toEqual([])
    expect(world.events).toEqual([])
  })

  it('REX-1 expands only volumes on the node that the instance serves', async () => {
    await open({ driver: { pools: [{ name: 'pool', capacityBytes: 100 * GI, segments: { host: 'a' } }] } })
    const at = (host: string) => ({
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'host', operator: 'In', values: [host] }] }] },
      },
    })
    await world.aClaim('here', { pv: at('a') })
    await world.aClaim('there', { pv: at('b') })
    world.start({ node: { name: 'node-a', segments: { host: 'a' } } })
    await world.request('20Gi', 'here')
    await world.request('20Gi', 'there')
    await world.untilState('NodeResizePending', 'here')
    await world.settle()
    expect(world.expandCalls('there')).toEqual([])
  })

  it('REX-1 (36) records an event if the driver does not support expansion', async () => {
    await open({ driver: { controller: ['CREATE_DELETE_VOLUME'], node: ['STAGE_UNSTAGE_VOLUME'] } })
    await world.aClaim()
    const process = world.start()
    await world.request('20Gi')
    await world.settle()
    expect((await world.view()).conditions).toEqual([])
    expect(world.events).toEqual([
      expect.objectContaining({ reason: 'VolumeResizeFailed', message: expect.stringMatching(/EXPAND_VOLUME.*10Gi$/) }),
    ])
    await world.request('10Gi')
    await world.until(() => process.standing() === undefined, 'the queue to be empty')
  })

  it('REX-1 (20) (8) leaves expansion to the node for a node-only driver, and lowers the size when the node rejects it', async () => {
    await open({ driver: { controller: ['CREATE_DELETE_VOLUME'] } })
    await world.aClaim('data', { size: '3Gi' })
    world.start()
    await world.request('9Gi')
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ alloc: '9Gi', pvcap: '9Gi', before: '3Gi' })
    await world.nodeRefuses()
    await world.request('5Gi')
    await world.until(async () => (await world.view()).alloc === '5Gi', 'the smaller size')
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ pvcap: '5Gi', cap: '3Gi', before: '3Gi' })
    await world.nodeRefuses()
    await world.request('3Gi')
    await world.until(async () => (await world.view()).state === undefined, 'the cancellation')
    expect(await world.view()).toMatchObject({ pvcap: '3Gi', cap: '3Gi', conditions: [] })
    expect((await world.view()).before).toBeUndefined()
    expect(world.fake.record.calls.filter(({ method }) => method === 'ControllerExpandVolume')).toEqual([])
  })

  it('REX-1 (10) waits for the node before it expands further', async () => {
    await world.aClaim('data', { size: '10Gi' })
    world.start()
    await world.request('20Gi')
    await world.untilState('NodeResizePending')
    await world.request('30Gi')
    await world.settle()
    expect(world.expandCalls()).toEqual([20 * GI])
    await world.nodeSucceeds('20Gi')
    await world.until(async () => (await world.view()).alloc === '30Gi', 'the next growth')
    await world.untilState('NodeResizePending')
    expect(world.expandCalls()).toEqual([20 * GI, 30 * GI])
  })

  it('REX-1 (38) requests node expansion of a volume that an earlier claim left partly expanded', async () => {
    await world.aClaim('data', { size: '20Gi', pvMetadata: { annotations: { [PRE_RESIZE_CAPACITY]: '10Gi' } } })
    await world.patchStatus(persistentVolumeClaimKind, 'data', { capacity: { storage: '10Gi' } })
    world.start()
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ cap: '10Gi', pvcap: '20Gi', alloc: '20Gi', before: '10Gi' })
    await world.nodeSucceeds('20Gi')
    await world.until(async () => (await world.view()).before === undefined, 'the annotation to be removed')
    expect(await world.view()).toMatchObject({ cap: '20Gi', pvcap: '20Gi', conditions: [] })
  })

  it('REX-1 requests only node expansion if the claim requests less than the partly expanded volume has', async () => {
    await world.aClaim('data', { size: '5Gi', hasBytes: 20 * GI, ...PARTLY_EXPANDED })
    await world.patchStatus(persistentVolumeClaimKind, 'data', { capacity: { storage: '10Gi' } })
    world.start()
    await world.until(async () => (await world.view()).conditions.length > 0, 'the condition')
    await world.settle()
    const left = { req: '5Gi', cap: '10Gi', pvcap: '20Gi', before: '10Gi', quota: '5Gi' }
    expect(await world.view()).toEqual({ ...left, mark: '5Gi', conditions: ['FileSystemResizePending'] })
    expect(world.reasons()).toEqual(['FileSystemResizeRequired'])
    expect(world.expandCalls()).toEqual([])
    await world.nodeSucceeds('20Gi')
    await world.until(async () => (await world.view()).before === undefined, 'the annotation to be removed')
    expect(await world.view()).toMatchObject({ cap: '20Gi', pvcap: '20Gi', conditions: [] })
  })

  it('REX-7 requests node expansion after an infeasible expansion of such a volume is cancelled', async () => {
    await world.aClaim('data', { size: '5Gi', hasBytes: 20 * GI, ...PARTLY_EXPANDED })
    await world.patchStatus(persistentVolumeClaimKind, 'data', { capacity: { storage: '10Gi' } })
    world.start()
    world.driverReturns(fail('OUT_OF_RANGE'))
    await world.request('30Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.request('10Gi')
    await world.untilState(undefined)
    await world.until(async () => (await world.view()).conditions.length > 0, 'the condition')
    expect(await world.view()).toMatchObject({ cap: '10Gi', pvcap: '20Gi', conditions: ['FileSystemResizePending'] })
  })

  it('REX-1 (22) writes steps conditionally and failures unconditionally', async () => {
    const bodies: [string, { metadata: Record<string, unknown> }][] = []
    world.driverReturns(fail('INTERNAL'), 1)
    await world.aClaim()
    const intercept = (verb: string, args: readonly unknown[]) => {
      if (verb !== 'commit') return
      for (const { patch, kind } of args[0] as Extract<CommitWrite, { do: 'patch' }>[]) {
        bodies.push([kind.kind, patch.body as (typeof bodies)[0][1]])
      }
    }
    world.start({ intercept })
    await world.request('20Gi')
    await world.untilState('NodeResizePending')
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

  it('REX-1 needs three writes per expansion, two with atomic commits', async () => {
    for (const isAtomic of [true, false]) {
      await open({ driver: { expandsOnNode: false } })
      await world.aClaim()
      const process = world.start({ isAtomic })
      await world.request('20Gi')
      await world.until(async () => (await world.view()).cap === '20Gi', 'the expansion')
      await world.settle()
      const writes = process.calls.filter((call) => call === 'patch' || call === 'commit')
      expect(writes).toEqual(isAtomic ? ['commit', 'commit'] : ['patch', 'patch', 'patch'])
    }
  })
})

describe('failures', () => {
  const at = async (size: string) => {
    await world.aClaim('data', { size: '3Gi' })
    const process = world.start()
    await world.request(size)
    return process
  }

  for (const code of ['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND'] as const) {
    it(`REX-7 (30) ${code}: marks the size infeasible and retries after slowRetryMs`, async () => {
      world.driverReturns(fail(code))
      const process = await at('11Gi')
      await world.untilState('ControllerResizeInfeasible')
      await world.settle()
      expect(world.expandCalls()).toEqual([11 * GI])
      expect(world.events.at(-1)).toMatchObject({ type: 'Warning', reason: 'VolumeResizeFailed' })
      expect(world.events.at(-1)?.message).toMatch(
        /^resize volume "data" by resizer "disks.example.com" failed: rpc error: code = /,
      )
      const message = (await world.claim())?.status?.conditions?.find(
        ({ type }) => type === 'ControllerResizeError',
      )?.message
      expect(message).toMatch(/^failed to expand pvc with rpc error/)
      expect(process.standing()).toMatchObject({ is: 'waiting' })
      await world.server.clock.advance(299_000)
      await world.settle()
      expect(world.expandCalls()).toHaveLength(1)
      await world.server.clock.advance(2_000)
      await world.until(() => world.expandCalls().length === 2, 'the second try')
      await world.untilState('ControllerResizeInfeasible')

      await world.request('4Gi')
      await world.until(async () => (await world.view()).alloc === '4Gi', 'the smaller size', { isTimePassing: false })
    })
  }

  it('REX-7 keeps the retry delay of an infeasible size after a restart', async () => {
    world.driverReturns(fail('OUT_OF_RANGE'))
    const first = await at('11Gi')
    await world.untilState('ControllerResizeInfeasible')
    await first.stop()
    const second = world.start()
    await world.until(() => second.standing()?.is === 'waiting', 'the claim to wait')
    expect(world.expandCalls()).toHaveLength(1)
  })

  it('REX-7 (31) (4) retries a final error with backoff and accepts a new size', async () => {
    world.driverReturns(fail('PERMISSION_DENIED'))
    const process = await at('11Gi')
    await world.until(async () => (await world.view()).conditions.includes('ControllerResizeError'), 'the error')
    await world.until(() => process.standing()?.is === 'waiting', 'the backoff')
    expect(world.expandCalls()).toHaveLength(1)
    expect((await world.view()).state).toBe('ControllerResizeInProgress')
    world.script()
    await world.request('4Gi')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'node expansion', {
      isTimePassing: false,
    })
    expect(world.expandCalls()).toEqual([11 * GI, 4 * GI])
    expect(await world.view()).toMatchObject({
      alloc: '4Gi',
      pvcap: '4Gi',
      conditions: ['FileSystemResizePending', 'Resizing'],
    })
  })

  it('REX-7 (5) (6) reports errors of the smaller size like those of any size', async () => {
    world.script(
      { method: 'ControllerExpandVolume', nth: 1, effect: fail('INTERNAL') },
      { method: 'ControllerExpandVolume', nth: 2, effect: fail('FAILED_PRECONDITION') },
      { method: 'ControllerExpandVolume', nth: 3, effect: fail('INVALID_ARGUMENT') },
    )
    const process = await at('11Gi')
    await world.until(() => world.expandCalls().length === 1 && process.standing()?.is === 'waiting', 'the first')
    await world.request('5Gi')
    await world.until(() => world.expandCalls().length === 2 && process.standing()?.is === 'waiting', 'the second')
    expect(await world.view()).toMatchObject({ alloc: '5Gi', state: 'ControllerResizeInProgress' })
    await world.untilState('ControllerResizeInfeasible')
    expect((await world.view()).alloc).toBe('5Gi')
    expect(world.expandCalls()).toEqual([11 * GI, 5 * GI, 5 * GI])
  })

  it('REX-8 (7) repeats the call for the first size until it has a final response, also after a restart', async () => {
    world.driverReturns(fail('UNAVAILABLE'))
    const first = await at('11Gi')
    await world.until(() => first.standing()?.is === 'waiting', 'a call without response')
    await world.request('5Gi')
    await world.until(() => world.expandCalls().length >= 2, 'the next try')
    await first.stop()
    world.driverReturns(fail('INTERNAL'), 1)
    world.start()
    await world.until(async () => (await world.view()).alloc === '5Gi', 'the smaller size')
    const asked = world.expandCalls()
    expect(asked.slice(0, -1)).toEqual(asked.slice(0, -1).map(() => 11 * GI))
    expect(asked.at(-1)).toBe(5 * GI)
  })

  it('REX-8 does not lower a size whose retry has no final response', async () => {
    world.script(
      { method: 'ControllerExpandVolume', nth: 1, effect: fail('OUT_OF_RANGE') },
      { method: 'ControllerExpandVolume', nth: 2, effect: { do: 'loseReply', as: 'unavailable' } },
      { method: 'ControllerExpandVolume', effect: fail('ABORTED') },
    )
    await at('11Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.server.clock.advance(301_000)
    await world.until(() => world.expandCalls().length > 2, 'calls without a final response')
    expect((await world.view()).state).toBe('ControllerResizeInProgress')
    await world.request('5Gi')
    world.script()
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ alloc: '11Gi', pvcap: '11Gi', req: '5Gi' })
    expect(new Set(world.expandCalls())).toEqual(new Set([11 * GI]))
  })

  it('REX-9 marks the size infeasible if the driver returns OK with a smaller size', async () => {
    world.driverReturns({ do: 'overrideSize', bytes: 3 * GI }, 1)
    await at('11Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.settle()
    expect(world.expandCalls()).toHaveLength(1)
    expect(world.events.at(-1)?.message).toMatch(/reports success, but a size of 3Gi instead of the requested 11Gi$/)
    expect((await world.view()).pvcap).toBe('3Gi')
    await world.request('4Gi')
    await world.untilState('NodeResizePending')
    expect((await world.view()).pvcap).toBe('4Gi')
  })

  it('REX-7 REX-2 cancels at once when the request is lowered to the capacity', async () => {
    world.driverReturns(fail('OUT_OF_RANGE'))
    await at('11Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.request('3Gi')
    await world.until(async () => (await world.view()).state === undefined, 'the cancellation', {
      isTimePassing: false,
    })
    expect(await world.view()).toEqual({
      ...{ req: '3Gi', cap: '3Gi', pvcap: '3Gi', conditions: [], mark: '11Gi', quota: '11Gi' },
    })
    expect(world.reasons().at(-1)).toBe('VolumeResizeCancelled')
    await world.server.clock.advance(3_600_000)
    await world.settle()
    expect(world.expandCalls()).toHaveLength(1)
  })

  it('REX-7 REX-8 checks for an expansion with a lost response before it cancels', async () => {
    // The volume is expanded, but the response is lost; the repeated call fails for another reason.
    world.script(
      { method: 'ControllerExpandVolume', nth: 1, effect: { do: 'loseReply', as: 'unavailable' } },
      { method: 'ControllerExpandVolume', nth: 2, effect: fail('INTERNAL') },
      { method: 'ControllerExpandVolume', nth: 3, effect: fail('UNAVAILABLE') },
    )
    await at('11Gi')
    await world.until(() => world.expandCalls().length === 1, 'the call')
    await world.request('3Gi')
    await world.untilState('NodeResizePending')
    expect(world.expandCalls()).toEqual([11 * GI, 11 * GI, 3 * GI, 3 * GI])
    expect(await world.view()).toMatchObject({ req: '3Gi', alloc: '11Gi', pvcap: '11Gi' })
    expect(world.reasons()).not.toContain('VolumeResizeCancelled')
  })

  it('REX-7 cancels if the driver rejects even the current size', async () => {
    world.script(
      { method: 'ControllerExpandVolume', nth: 1, effect: fail('UNAVAILABLE') },
      { method: 'ControllerExpandVolume', effect: fail('INTERNAL') },
    )
    await at('11Gi')
    await world.until(() => world.expandCalls().length === 1, 'the call')
    await world.request('3Gi')
    await world.until(async () => (await world.view()).state === undefined, 'the cancellation')
    expect(world.expandCalls()).toEqual([11 * GI, 11 * GI, 3 * GI])
  })

  it('REX-7 uses a request lowered during the call as soon as the call fails', async () => {
    world.script({ method: 'ControllerExpandVolume', nth: 1, afterMs: 5_000, effect: fail('INTERNAL') })
    await at('11Gi')
    await world.until(() => world.expandCalls().length === 1, 'the call', { isTimePassing: false })
    await world.request('5Gi')
    await world.server.clock.advance(5_000)
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'node expansion', {
      isTimePassing: false,
    })
    expect(world.expandCalls()).toEqual([11 * GI, 5 * GI])
  })

  it('REX-8 saves the result of a call despite an edit during it, without a second call', async () => {
    world.script({ method: 'ControllerExpandVolume', nth: 1, afterMs: 5_000 })
    await at('11Gi')
    await world.until(() => world.expandCalls().length === 1, 'the call', { isTimePassing: false })
    await world.request('20Gi')
    await world.request('15Gi')
    await world.server.clock.advance(5_000)
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ req: '15Gi', alloc: '11Gi', pvcap: '11Gi' })
    expect(world.expandCalls()).toEqual([11 * GI])
  })

  it('REX-9 retries an infeasible node expansion after slowRetryMs', async () => {
    await at('9Gi')
    await world.untilState('NodeResizePending')
    await world.nodeRefuses()
    await world.request('5Gi')
    await world.settle()
    expect(await world.view()).toMatchObject({ state: 'NodeResizeInfeasible', alloc: '9Gi', pvcap: '9Gi' })
    expect(world.expandCalls()).toHaveLength(1)
    await world.server.clock.advance(301_000)
    await world.untilState('NodeResizePending')
    expect(world.expandCalls()).toEqual([9 * GI, 9 * GI])
  })

  it('REX-8 (18) keeps failures of many claims independent', async () => {
    world.script({ method: 'ControllerExpandVolume', effect: fail('INTERNAL') })
    const names = Array.from({ length: 20 }, (_, index) => `claim-${index}`)
    for (const name of names) await world.aClaim(name, { size: '3Gi' })
    world.start()
    for (const name of names) await world.request('11Gi', name)
    await world.until(() => names.every((name) => world.expandCalls(name).length >= 3), 'a few tries each')
    for (const name of names) await world.request('3Gi', name)
    for (const name of names) {
      await world.until(async () => (await world.view(name)).state === undefined, `${name} to be cancelled`)
    }
    expect(world.fake.record.overlaps).toEqual([])
  })
})

describe('a driver that supports only offline expansion', () => {
  const offline = () => {
    world.driverReturns(fail('FAILED_PRECONDITION', 'in use'))
    return world.aClaim()
  }

  it('REX-1 (13) (19) is called again when the last pod has terminated, without a timer', async () => {
    await offline()
    await world.aPod('user')
    await world.aPod('over')
    await world.endPod('over', 'Failed')
    const process = world.start()
    await world.request('20Gi')
    await world.until(() => process.standing()?.is === 'stuck', 'the claim to be held')
    expect(world.expandCalls()).toHaveLength(1)
    expect(process.standing()?.because).toBe(
      'Unable to expand default/data because CSI driver disks.example.com only supports offline expansion and volume is currently in-use',
    )
    await world.server.clock.advance(3_600_000)
    await world.settle()
    expect(world.expandCalls()).toHaveLength(1)
    world.script()
    await world.endPod('user')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'node expansion', {
      isTimePassing: false,
    })
  })

  it('REX-1 (13) is called again when the pod is deleted', async () => {
    await offline()
    await world.aPod('user')
    const process = world.start()
    await world.request('20Gi')
    await world.until(() => process.standing()?.is === 'stuck', 'the claim to be held')
    world.script()
    await world.deletePod('user')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'node expansion', {
      isTimePassing: false,
    })
  })

  it('REX-1 (13) is called again with backoff if no pod uses the volume or handlesInUse is off', async () => {
    await offline()
    const process = world.start()
    await world.request('20Gi')
    await world.until(() => process.standing()?.is === 'waiting', 'the backoff')
    await world.until(() => world.expandCalls().length >= 3, 'more tries')
    await process.stop()
    await world.aPod('user')
    world.start({ options: { handlesInUse: false } })
    await world.until(() => world.expandCalls().length >= 6, 'more tries')
  })

  it('REX-7 cancels without waiting for the pod', async () => {
    await offline()
    await world.aPod('user')
    const process = world.start()
    await world.request('20Gi')
    await world.until(() => process.standing()?.is === 'stuck', 'the claim to be held')
    await world.request('10Gi')
    await world.until(async () => (await world.view()).state === undefined, 'the cancellation', {
      isTimePassing: false,
    })
    expect((await world.view()).conditions).toEqual([])
  })
})

describe('free capacity', () => {
  it('PLUS-12 rejects a size beyond the free capacity without calling the driver', async () => {
    await world.tracksCapacity()
    await world.aCapacity('everywhere', { capacity: '15Gi' })
    await world.aClaim()
    const process = world.start()
    await world.request('30Gi')
    await world.untilState('ControllerResizeInfeasible')
    expect(world.expandCalls()).toEqual([])
    expect(world.events).toEqual([
      expect.objectContaining({ reason: 'VolumeResizeFailed', message: expect.stringContaining('5Gi are missing') }),
    ])
    expect(await world.view()).toMatchObject({ alloc: '30Gi', conditions: ['ControllerResizeError', 'Resizing'] })
    await world.until(() => process.standing()?.is === 'stuck', 'the claim to wait for capacity')

    await world.setCapacity('everywhere', '18Gi')
    await world.until(() => world.events.length === 2, 'the new amount')
    expect(world.events[1]?.message).toContain('2Gi are missing')
    await world.request('20Gi')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'node expansion', {
      isTimePassing: false,
    })
    expect(world.expandCalls()).toEqual([20 * GI])
  })

  it('PLUS-12 expands when capacity becomes free, also after a restart', async () => {
    await world.tracksCapacity()
    await world.aCapacity('everywhere', { capacity: '15Gi' })
    await world.aClaim()
    const first = world.start()
    await world.request('30Gi')
    await world.untilState('ControllerResizeInfeasible')
    await first.stop()
    const second = world.start()
    await world.until(() => second.standing()?.is === 'stuck', 'the claim to wait')
    await world.setCapacity('everywhere', '25Gi')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'node expansion', {
      isTimePassing: false,
    })
  })

  it('PLUS-12 calls the driver if it does not track capacity', async () => {
    await world.tracksCapacity(false)
    await world.aCapacity('everywhere', { capacity: '1Gi' })
    await world.aClaim()
    world.start()
    await world.request('30Gi')
    await world.untilState('NodeResizePending')
  })
})

describe('lowering the request', () => {
  const lowered = () => world.events.filter(({ reason }) => reason === 'StorageRequestLowered')

  it('REX-6 records an event on claim and volume', async () => {
    world.driverReturns(fail('OUT_OF_RANGE'))
    await world.aClaim()
    world.start()
    await world.request('100Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.request('20Gi')
    await world.until(() => lowered().length === 2, 'the events')
    expect(lowered().map(({ about }) => about)).toEqual(['PersistentVolumeClaim data', 'PersistentVolume data'])
    expect(lowered()[0]?.message).toBe(
      'The storage requested by claim default/data was lowered from 100Gi to 20Gi; its volume has 10Gi and does not ' +
        'shrink. Quota continues to charge 100Gi.',
    )
  })

  it('REX-6 records one event per edit, across restarts and for edits made while no controller ran', async () => {
    world.driverReturns(fail('UNAVAILABLE'))
    await world.aClaim()
    const first = world.start()
    await world.request('100Gi')
    await world.until(() => first.standing()?.is === 'waiting', 'a call without response')
    await first.stop()
    await world.request('20Gi')
    const second = world.start()
    await world.until(() => lowered().length === 2, 'the events')
    await world.until(() => world.expandCalls().length >= 4, 'a few tries')
    await second.stop()
    expect(lowered()).toHaveLength(2)

    const claim = (await world.claim())!
    const { message, reason } = lowered()[0]!
    const involvedObject = {
      kind: 'PersistentVolumeClaim',
      namespace: 'default',
      name: 'data',
      uid: claim.metadata.uid,
    }
    await world.client.create(eventKind, {
      metadata: { namespace: 'default', name: 'data.1' },
      ...{ involvedObject, reason, message, type: 'Normal' },
    } as never)
    const third = world.start()
    await world.until(() => world.expandCalls().length >= 7, 'a few more')
    await third.stop()
    expect(lowered(), 'an event exists already').toHaveLength(2)
  })
})

describe('two changes of one volume', () => {
  it('VAC-14 run one after the other, expansion first, and a failed one does not delay the other', async () => {
    world.script({ method: 'ControllerExpandVolume', nth: 1, afterMs: 5_000, effect: fail('INTERNAL') })
    const seen: string[] = []
    const modifying: VolumeChange = {
      name: 'modifying',
      matters: (next, old) => next.metadata.labels?.tier !== old.metadata.labels?.tier,
      async reconcile({ claim }) {
        seen.push(`${claim.metadata.labels?.tier} after ${world.expandCalls().length}`)
        return done
      },
    }
    await world.aClaim()
    const process = world.start({ changes: [modifying] })
    await world.until(() => seen.length === 1, 'the first look')
    const body = { metadata: { labels: { tier: 'gold' } }, spec: { resources: { requests: { storage: '20Gi' } } } }
    await world.client.patch(persistentVolumeClaimKind, { namespace: 'default', name: 'data' }, { type: 'merge', body })
    await world.until(() => world.expandCalls().length === 1, 'the call', { isTimePassing: false })
    await world.settle()
    expect(seen).toHaveLength(1)
    expect(process.standing('data', 'modifying')).toMatchObject({ is: 'stuck' })
    await world.server.clock.advance(5_000)
    await world.until(() => seen.length === 2, 'the other change', { isTimePassing: false })
    expect(seen[1]).toBe('gold after 1')
    expect(process.standing()).toMatchObject({ is: 'waiting' })
  })
})

describe('a crash', () => {
  for (const isAtomic of [true, false]) {
    it(`REX-8 at any call: the next process finishes and never requests a smaller size (${isAtomic ? 'commits' : 'single writes'})`, async () => {
      let calls = 1
      for (let call = 0; call < calls; call++) {
        for (const when of ['before', 'after'] as const) {
          await open()
          await world.aClaim()
          const first = world.start({ isAtomic, killAt: { call, when } })
          await world.request('20Gi')
          await world.until(
            async () => first.isDead || (await world.view()).state === 'NodeResizePending',
            'the end of the expansion',
          )
          if (!first.isDead) continue
          calls = Math.max(calls, first.calls.length + 1)
          await world.request('15Gi')
          world.start({ isAtomic })
          await world.untilState('NodeResizePending')
          const { alloc, pvcap } = await world.view()
          expect(alloc).toBe(pvcap)
          expect(world.bytes()).toBe(Math.max(...world.expandCalls()))
          expect(
            [...world.expandCalls()].sort((a, b) => a - b),
            'never less than before',
          ).toEqual(
            world.expandCalls().length > 1 && world.expandCalls()[0]! > world.expandCalls().at(-1)!
              ? []
              : world.expandCalls(),
          )
        }
      }
      expect(calls).toBeGreaterThan(isAtomic ? 3 : 4)
    })
  }

  it('REX-8 a process that lost leadership neither calls the driver nor writes', async () => {
    await world.aClaim()
    const election = {
      assertStillLeader() {
        throw new Error('this process no longer leads')
      },
      fence() {
        throw new Error('this process no longer leads')
      },
    }
    const process = world.start({ election })
    await world.request('20Gi')
    await world.until(() => process.standing()?.is === 'waiting', 'the failure')
    expect(world.expandCalls()).toEqual([])
    expect((await world.view()).state).toBeUndefined()
  })
})

describe('feature gates', () => {
  it('REX-10 expands by conditions alone if the server has RecoverExpansionFailure off', async () => {
    await open({ server: { gates: 'RecoverExpansionFailure=false' } })
    await world.aClaim()
    world.start()
    await world.request('20Gi')
    await world.until(async () => (await world.view()).pvcap === '20Gi', 'the volume')
    await world.settle()
    const view = await world.view()
    expect([view.alloc, view.state]).toEqual([undefined, undefined])
    expect(view.conditions).toEqual(['FileSystemResizePending', 'Resizing'])
    expect(world.expandCalls()).toEqual([20 * GI])
    await world.nodeSucceeds('20Gi')
    await world.until(async () => (await world.view()).before === undefined, 'the annotation to be removed')
    expect((await world.view()).conditions).toEqual([])
    expect((await world.client.get(persistentVolumeKind, { name: 'data' })).spec?.capacity).toEqual({ storage: '20Gi' })
  })
})
