import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { CsiFailureCode } from '../../csi/index.ts'
import { done } from '../../runtime/index.ts'
import { PRE_RESIZE_CAPACITY } from '../../volumes/names.ts'
import type { Change } from '../volume-changes/index.ts'
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

/** Its device has 20Gi, the file system on it 10Gi. */
const HALF_GROWN = {
  pv: { capacity: { storage: '20Gi' } },
  pvMetadata: { annotations: { [PRE_RESIZE_CAPACITY]: '10Gi' } },
}

describe('a claim that asks for more', () => {
  it('REX-1 (1) is grown by the driver, and handed to the node', async () => {
    await world.aClaim('data', { size: '1G' })
    world.start()
    await world.ask('2G')
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ alloc: '2G', cap: '1G', pvcap: '2G', before: '1G' })
    expect(await world.needsNoNode()).toBe(false)
    expect(world.asked()).toEqual([2_000_000_000])
    expect(world.reasons()).toEqual(['Resizing', 'FileSystemResizeRequired'])
    expect(world.told[0]?.message).toBe('External resizer is resizing volume data')
  })

  it('REX-1 (2) is done where the node has no part in it', async () => {
    await open({ driver: { expandsOnNode: false } })
    await world.aClaim('data', { size: '1G' })
    world.start()
    await world.ask('2G')
    await world.until(async () => (await world.view()).cap === '2G', 'it to have grown')
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
    await world.ask('20Gi')
    await world.untilState('NodeResizePending')
    expect(await world.needsNoNode(), 'the next growth may need the node').toBe(false)
  })

  it('REX-1 gets what the driver made, where that is more', async () => {
    await open({ driver: { expandsOnNode: false, roundToBytes: GI } })
    await world.aClaim()
    world.start()
    await world.ask('11.5Gi')
    await world.until(async () => (await world.view()).cap === '12Gi', 'it to have grown')
    expect(await world.view()).toMatchObject({ pvcap: '12Gi', alloc: '11776Mi' })
  })

  it('REX-1 (14) tells the driver how the volume is used', async () => {
    await world.aClaim('files', { pv: { mountOptions: ['noatime'] } })
    await world.aClaim('device', { pv: { volumeMode: 'Block' } })
    world.start()
    await world.ask('20Gi', 'files')
    await world.ask('20Gi', 'device')
    await world.until(() => world.asked('files').length + world.asked('device').length === 2, 'both')
    const capabilityOf = (name: string) =>
      (world.fake.record.calls.find((call) => call.volume === name)!.request as any).volumeCapability
    expect(capabilityOf('files')).toMatchObject({ mount: { fsType: 'ext4' } })
    expect(capabilityOf('device')).toMatchObject({ block: {} })
  })

  it('REX-1 says why access modes that cannot be told to a driver keep it from being asked', async () => {
    await world.aClaim('data', { accessModes: ['ReadWriteOnce', 'ReadOnlyMany'] })
    const process = world.start()
    await world.ask('20Gi')
    await world.until(() => process.standing()?.is === 'stuck', 'it to be stuck')
    expect(world.asked()).toEqual([])
    expect(world.told.at(-1)?.message).toMatch(/ReadOnlyMany and ReadWriteOnce/)
    expect((await world.view()).conditions).toEqual([])
  })

  it('REX-1 gives the driver its credentials, and tells them nobody', async () => {
    await open({ driver: { secretKeys: ['token'] } })
    const secretRef = { controllerExpandSecretRef: { namespace: 'default', name: 'key' } }
    await world.aClaim('data', {
      pv: { csi: { driver: DRIVER, volumeHandle: 'vol-data', fsType: 'ext4', ...secretRef } },
    })
    const process = world.start()
    await world.ask('20Gi')
    await world.until(() => process.standing()?.is === 'waiting', 'the missing secret')
    expect(world.told.at(-1)?.message).toMatch(/error getting secret key in namespace default/)
    expect((await world.view()).state, 'nothing was begun').toBeUndefined()

    const token = Buffer.from('s3cr3t-token').toString('base64')
    await world.trial.post('/api/v1/namespaces/default/secrets', { metadata: { name: 'key' }, data: { token } })
    world.answers(fail('INTERNAL', 'the token s3cr3t-token is worn out'), 1)
    await world.untilState('NodeResizePending')
    expect(world.fake.record.calls.at(-1)?.secretsGiven).toEqual(['token'])
    expect(JSON.stringify(world.told)).not.toContain('s3cr3t')
    expect(JSON.stringify(world.told)).toContain('***stripped***')
  })

  it('REX-1 (17) keeps what its status says of other things', async () => {
    await world.aClaim('data', {
      status: {
        allocatedResourceStatuses: { 'example.com/x': 'NodeResizePending' },
        allocatedResources: { 'example.com/x': '7' },
        conditions: [{ type: 'ModifyingVolume', status: 'True' }],
      },
    })
    world.start()
    await world.ask('20Gi')
    await world.untilState('NodeResizePending')
    await world.nodeEnds('20Gi')
    const { status } = (await world.claim())!
    expect(status?.allocatedResourceStatuses).toEqual({ 'example.com/x': 'NodeResizePending' })
    expect(status?.allocatedResources).toEqual({ 'example.com/x': '7', storage: '20Gi' })
    expect(status?.conditions?.map(({ type }) => type)).toEqual(['ModifyingVolume'])
  })

  it('REX-1 (16) the size before goes from the volume when the node is done, also after a restart', async () => {
    await world.aClaim()
    const first = world.start()
    await world.ask('20Gi')
    await world.untilState('NodeResizePending')
    await first.stop()
    await world.nodeEnds('20Gi')
    expect((await world.view()).before).toBe('10Gi')
    world.start()
    await world.until(async () => (await world.view()).before === undefined, 'the annotation to go')
  })

  it('REX-1 (12) is left alone where the volume is not its own, or another driver’s', async () => {
    const pv = (claimRef: object | undefined, driver = DRIVER) => ({
      ...(claimRef ? { claimRef } : { claimRef: undefined }),
      csi: { driver, volumeHandle: 'vol-data' },
    })
    await world.aClaim('other-uid', { pv: pv({ namespace: 'default', name: 'other-uid', uid: 'someone' }) })
    await world.aClaim('other-namespace', { pv: pv({ namespace: 'kube-system', name: 'other-namespace', uid: 'x' }) })
    await world.aClaim('unclaimed', { pv: pv(undefined) })
    await world.aClaim('foreign', { pv: { csi: { driver: 'else.example.com', volumeHandle: 'vol-foreign' } } })
    world.start()
    for (const name of ['other-uid', 'other-namespace', 'unclaimed', 'foreign']) await world.ask('20Gi', name)
    await world.settle()
    expect(world.fake.record.calls.filter(({ method }) => method === 'ControllerExpandVolume')).toEqual([])
    expect(world.told).toEqual([])
  })

  it('REX-1 is grown by the instance that serves its node', async () => {
    await open({ driver: { pools: [{ name: 'pool', capacityBytes: 100 * GI, segments: { host: 'a' } }] } })
    const at = (host: string) => ({
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'host', operator: 'In', values: [host] }] }] },
      },
    })
    await world.aClaim('here', { pv: at('a') })
    await world.aClaim('there', { pv: at('b') })
    world.start({ node: { name: 'node-a', segments: { host: 'a' } } })
    await world.ask('20Gi', 'here')
    await world.ask('20Gi', 'there')
    await world.untilState('NodeResizePending', 'here')
    await world.settle()
    expect(world.asked('there')).toEqual([])
  })

  it('REX-1 (36) gets nothing from a driver that cannot, and is told so', async () => {
    await open({ driver: { controller: ['CREATE_DELETE_VOLUME'], node: ['STAGE_UNSTAGE_VOLUME'] } })
    await world.aClaim()
    const process = world.start()
    await world.ask('20Gi')
    await world.settle()
    expect((await world.view()).conditions).toEqual([])
    expect(world.told).toEqual([
      expect.objectContaining({ reason: 'VolumeResizeFailed', message: expect.stringMatching(/EXPAND_VOLUME.*10Gi$/) }),
    ])
    await world.ask('10Gi')
    await world.until(() => process.standing() === undefined, 'nothing to be wanted any more')
  })

  it('REX-1 (20) (8) is left to the nodes where only they grow volumes, which may refuse', async () => {
    await open({ driver: { controller: ['CREATE_DELETE_VOLUME'] } })
    await world.aClaim('data', { size: '3Gi' })
    world.start()
    await world.ask('9Gi')
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ alloc: '9Gi', pvcap: '9Gi', before: '3Gi' })
    await world.nodeRefuses()
    await world.ask('5Gi')
    await world.until(async () => (await world.view()).alloc === '5Gi', 'the smaller size')
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ pvcap: '5Gi', cap: '3Gi', before: '3Gi' })
    await world.nodeRefuses()
    await world.ask('3Gi')
    await world.until(async () => (await world.view()).state === undefined, 'it to be taken back')
    expect(await world.view()).toMatchObject({ pvcap: '3Gi', cap: '3Gi', conditions: [] })
    expect((await world.view()).before).toBeUndefined()
    expect(world.fake.record.calls.filter(({ method }) => method === 'ControllerExpandVolume')).toEqual([])
  })

  it('REX-1 (10) waits for the node before it grows further', async () => {
    await world.aClaim('data', { size: '10Gi' })
    world.start()
    await world.ask('20Gi')
    await world.untilState('NodeResizePending')
    await world.ask('30Gi')
    await world.settle()
    expect(world.asked()).toEqual([20 * GI])
    await world.nodeEnds('20Gi')
    await world.until(async () => (await world.view()).alloc === '30Gi', 'the next growth')
    await world.untilState('NodeResizePending')
    expect(world.asked()).toEqual([20 * GI, 30 * GI])
  })

  it('REX-1 (38) bound to a volume whose node never did its part: the node is asked, and the sizes meet', async () => {
    await world.aClaim('data', { size: '20Gi', pvMetadata: { annotations: { [PRE_RESIZE_CAPACITY]: '10Gi' } } })
    await world.patchStatus(persistentVolumeClaimKind, 'data', { capacity: { storage: '10Gi' } })
    world.start()
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ cap: '10Gi', pvcap: '20Gi', alloc: '20Gi', before: '10Gi' })
    await world.nodeEnds('20Gi')
    await world.until(async () => (await world.view()).before === undefined, 'the annotation to go')
    expect(await world.view()).toMatchObject({ cap: '20Gi', pvcap: '20Gi', conditions: [] })
  })

  it('REX-1 bound to such a volume for less than it has: nothing is asked or charged, and the node does its part', async () => {
    await world.aClaim('data', { size: '5Gi', hasBytes: 20 * GI, ...HALF_GROWN })
    await world.patchStatus(persistentVolumeClaimKind, 'data', { capacity: { storage: '10Gi' } })
    world.start()
    await world.until(async () => (await world.view()).conditions.length > 0, 'the claim to say whose turn it is')
    await world.settle()
    const left = { req: '5Gi', cap: '10Gi', pvcap: '20Gi', before: '10Gi', quota: '5Gi' }
    expect(await world.view()).toEqual({ ...left, mark: '5Gi', conditions: ['FileSystemResizePending'] })
    expect(world.reasons()).toEqual(['FileSystemResizeRequired'])
    expect(world.asked()).toEqual([])
    await world.nodeEnds('20Gi')
    await world.until(async () => (await world.view()).before === undefined, 'the annotation to go')
    expect(await world.view()).toMatchObject({ cap: '20Gi', pvcap: '20Gi', conditions: [] })
  })

  it('REX-7 the node has its turn also after a growth of such a volume was refused and given up', async () => {
    await world.aClaim('data', { size: '5Gi', hasBytes: 20 * GI, ...HALF_GROWN })
    await world.patchStatus(persistentVolumeClaimKind, 'data', { capacity: { storage: '10Gi' } })
    world.start()
    world.answers(fail('OUT_OF_RANGE'))
    await world.ask('30Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.ask('10Gi')
    await world.untilState(undefined)
    await world.until(async () => (await world.view()).conditions.length > 0, 'the claim to say whose turn it is')
    expect(await world.view()).toMatchObject({ cap: '10Gi', pvcap: '20Gi', conditions: ['FileSystemResizePending'] })
  })

  it('REX-1 (22) writes its steps only on the claim it read, and what failed whatever it has become', async () => {
    const bodies: any[] = []
    world.answers(fail('INTERNAL'), 1)
    await world.aClaim()
    const intercept = (verb: string, args: readonly any[]) => {
      if (verb === 'commit') for (const { patch, kind } of args[0]) bodies.push([kind.kind, patch.body])
    }
    world.start({ intercept })
    await world.ask('20Gi')
    await world.untilState('NodeResizePending')
    expect(
      bodies.map(([kind, { metadata }]) => `${kind} ${metadata.resourceVersion === undefined ? 'any' : 'read'}`),
    ).toEqual([
      'PersistentVolumeClaim read', // started
      'PersistentVolumeClaim any', // failed
      'PersistentVolume any', // grown
      'PersistentVolumeClaim read', // the node's turn
    ])
    expect(bodies.every(([, { metadata }]) => metadata.uid !== undefined)).toBe(true)
  })

  it('REX-1 writes three things for a growth, and two where commits are atomic', async () => {
    for (const isAtomic of [true, false]) {
      await open({ driver: { expandsOnNode: false } })
      await world.aClaim()
      const process = world.start({ isAtomic })
      await world.ask('20Gi')
      await world.until(async () => (await world.view()).cap === '20Gi', 'it to have grown')
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
    await world.ask(size)
    return process
  }

  for (const code of ['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'NOT_FOUND'] as const) {
    it(`REX-7 (30) ${code}: the size is infeasible, asked for once, and again only after the slow interval`, async () => {
      world.answers(fail(code))
      const process = await at('11Gi')
      await world.untilState('ControllerResizeInfeasible')
      await world.settle()
      expect(world.asked()).toEqual([11 * GI])
      expect(world.told.at(-1)).toMatchObject({ type: 'Warning', reason: 'VolumeResizeFailed' })
      expect(world.told.at(-1)?.message).toMatch(
        /^resize volume "data" by resizer "disks.example.com" failed: rpc error: code = /,
      )
      const message = (await world.claim())?.status?.conditions?.find(
        ({ type }) => type === 'ControllerResizeError',
      )?.message
      expect(message).toMatch(/^failed to expand pvc with rpc error/)
      expect(process.standing()).toMatchObject({ is: 'waiting' })
      await world.trial.clock.advance(299_000)
      await world.settle()
      expect(world.asked()).toHaveLength(1)
      await world.trial.clock.advance(2_000)
      await world.until(() => world.asked().length === 2, 'the second try')
      await world.untilState('ControllerResizeInfeasible')

      await world.ask('4Gi')
      await world.until(async () => (await world.view()).alloc === '4Gi', 'the smaller size', { isTimePassing: false })
    })
  }

  it('REX-7 an infeasible size is not asked for again by the next process before its time', async () => {
    world.answers(fail('OUT_OF_RANGE'))
    const first = await at('11Gi')
    await world.untilState('ControllerResizeInfeasible')
    await first.stop()
    const second = world.start()
    await world.until(() => second.standing()?.is === 'waiting', 'it to wait')
    expect(world.asked()).toHaveLength(1)
  })

  it('REX-7 (31) (4) a final error is retried with backoff, and leaves the size to be chosen anew', async () => {
    world.answers(fail('PERMISSION_DENIED'))
    const process = await at('11Gi')
    await world.until(async () => (await world.view()).conditions.includes('ControllerResizeError'), 'the error')
    await world.until(() => process.standing()?.is === 'waiting', 'the backoff')
    expect(world.asked()).toHaveLength(1)
    expect((await world.view()).state).toBe('ControllerResizeInProgress')
    world.script()
    await world.ask('4Gi')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'it', { isTimePassing: false })
    expect(world.asked()).toEqual([11 * GI, 4 * GI])
    expect(await world.view()).toMatchObject({
      alloc: '4Gi',
      pvcap: '4Gi',
      conditions: ['FileSystemResizePending', 'Resizing'],
    })
  })

  it('REX-7 (5) (6) what the smaller size meets is told as what any size meets', async () => {
    world.script(
      { method: 'ControllerExpandVolume', nth: 1, effect: fail('INTERNAL') },
      { method: 'ControllerExpandVolume', nth: 2, effect: fail('FAILED_PRECONDITION') },
      { method: 'ControllerExpandVolume', nth: 3, effect: fail('INVALID_ARGUMENT') },
    )
    const process = await at('11Gi')
    await world.until(() => world.asked().length === 1 && process.standing()?.is === 'waiting', 'the first')
    await world.ask('5Gi')
    await world.until(() => world.asked().length === 2 && process.standing()?.is === 'waiting', 'the second')
    expect(await world.view()).toMatchObject({ alloc: '5Gi', state: 'ControllerResizeInProgress' })
    await world.untilState('ControllerResizeInfeasible')
    expect((await world.view()).alloc).toBe('5Gi')
    expect(world.asked()).toEqual([11 * GI, 5 * GI, 5 * GI])
  })

  it('REX-8 (7) without a final answer the first size is asked for until there is one, also by the next process', async () => {
    world.answers(fail('UNAVAILABLE'))
    const first = await at('11Gi')
    await world.until(() => first.standing()?.is === 'waiting', 'no answer')
    await world.ask('5Gi')
    await world.until(() => world.asked().length >= 2, 'the next try')
    await first.stop()
    world.answers(fail('INTERNAL'), 1)
    world.start()
    await world.until(async () => (await world.view()).alloc === '5Gi', 'the smaller size')
    const asked = world.asked()
    expect(asked.slice(0, -1)).toEqual(asked.slice(0, -1).map(() => 11 * GI))
    expect(asked.at(-1)).toBe(5 * GI)
  })

  it('REX-8 a size that was refused, and is asked for again in vain, is not given up for a smaller one', async () => {
    world.script(
      { method: 'ControllerExpandVolume', nth: 1, effect: fail('OUT_OF_RANGE') },
      { method: 'ControllerExpandVolume', nth: 2, effect: { do: 'loseReply', as: 'unavailable' } },
      { method: 'ControllerExpandVolume', effect: fail('ABORTED') },
    )
    await at('11Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.trial.clock.advance(301_000)
    await world.until(() => world.asked().length > 2, 'tries that tell nothing')
    expect((await world.view()).state).toBe('ControllerResizeInProgress')
    await world.ask('5Gi')
    world.script()
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ alloc: '11Gi', pvcap: '11Gi', req: '5Gi' })
    expect(new Set(world.asked())).toEqual(new Set([11 * GI]))
  })

  it('REX-9 a driver that reports success and did nothing: told, slowly retried, and a smaller size recovers', async () => {
    world.answers({ do: 'overrideSize', bytes: 3 * GI }, 1)
    await at('11Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.settle()
    expect(world.asked()).toHaveLength(1)
    expect(world.told.at(-1)?.message).toMatch(/reports success, but a size of 3Gi where 11Gi was asked for$/)
    expect((await world.view()).pvcap).toBe('3Gi')
    await world.ask('4Gi')
    await world.untilState('NodeResizePending')
    expect((await world.view()).pvcap).toBe('4Gi')
  })

  it('REX-7 REX-2 lowering to what there is cancels at once, and nothing is asked any more', async () => {
    world.answers(fail('OUT_OF_RANGE'))
    await at('11Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.ask('3Gi')
    await world.until(async () => (await world.view()).state === undefined, 'the end', { isTimePassing: false })
    expect(await world.view()).toEqual({
      ...{ req: '3Gi', cap: '3Gi', pvcap: '3Gi', conditions: [], mark: '11Gi', quota: '11Gi' },
    })
    expect(world.reasons().at(-1)).toBe('VolumeResizeCancelled')
    await world.trial.clock.advance(3_600_000)
    await world.settle()
    expect(world.asked()).toHaveLength(1)
  })

  it('REX-7 REX-8 what was asked for without an answer is looked for before it is given up', async () => {
    // It grows, and the reply is lost; asked again, it fails for another reason.
    world.script(
      { method: 'ControllerExpandVolume', nth: 1, effect: { do: 'loseReply', as: 'unavailable' } },
      { method: 'ControllerExpandVolume', nth: 2, effect: fail('INTERNAL') },
      { method: 'ControllerExpandVolume', nth: 3, effect: fail('UNAVAILABLE') },
    )
    await at('11Gi')
    await world.until(() => world.asked().length === 1, 'the call')
    await world.ask('3Gi')
    await world.untilState('NodeResizePending')
    expect(world.asked()).toEqual([11 * GI, 11 * GI, 3 * GI, 3 * GI])
    expect(await world.view()).toMatchObject({ req: '3Gi', alloc: '11Gi', pvcap: '11Gi' })
    expect(world.reasons()).not.toContain('VolumeResizeCancelled')
  })

  it('REX-7 a driver that refuses even what the volume has does not keep anybody from giving up', async () => {
    world.script(
      { method: 'ControllerExpandVolume', nth: 1, effect: fail('UNAVAILABLE') },
      { method: 'ControllerExpandVolume', effect: fail('INTERNAL') },
    )
    await at('11Gi')
    await world.until(() => world.asked().length === 1, 'the call')
    await world.ask('3Gi')
    await world.until(async () => (await world.view()).state === undefined, 'the end')
    expect(world.asked()).toEqual([11 * GI, 11 * GI, 3 * GI])
  })

  it('REX-7 lowering while the driver is being asked is acted on as soon as it has said no', async () => {
    world.script({ method: 'ControllerExpandVolume', nth: 1, afterMs: 5_000, effect: fail('INTERNAL') })
    await at('11Gi')
    await world.until(() => world.asked().length === 1, 'the call', { isTimePassing: false })
    await world.ask('5Gi')
    await world.trial.clock.advance(5_000)
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'it', { isTimePassing: false })
    expect(world.asked()).toEqual([11 * GI, 5 * GI])
  })

  it('REX-8 an edit while the driver succeeds is not lost, nor is what it did, and it is not asked twice', async () => {
    world.script({ method: 'ControllerExpandVolume', nth: 1, afterMs: 5_000 })
    await at('11Gi')
    await world.until(() => world.asked().length === 1, 'the call', { isTimePassing: false })
    await world.ask('20Gi')
    await world.ask('15Gi')
    await world.trial.clock.advance(5_000)
    await world.untilState('NodeResizePending')
    expect(await world.view()).toMatchObject({ req: '15Gi', alloc: '11Gi', pvcap: '11Gi' })
    expect(world.asked()).toEqual([11 * GI])
  })

  it('REX-9 a node that refuses for good is tried again at the slow interval, not in circles', async () => {
    await at('9Gi')
    await world.untilState('NodeResizePending')
    await world.nodeRefuses()
    await world.ask('5Gi')
    await world.settle()
    expect(await world.view()).toMatchObject({ state: 'NodeResizeInfeasible', alloc: '9Gi', pvcap: '9Gi' })
    expect(world.asked()).toHaveLength(1)
    await world.trial.clock.advance(301_000)
    await world.untilState('NodeResizePending')
    expect(world.asked()).toEqual([9 * GI, 9 * GI])
  })

  it('REX-8 (18) many claims that fail at once disturb each other in nothing', async () => {
    world.script({ method: 'ControllerExpandVolume', effect: fail('INTERNAL') })
    const names = Array.from({ length: 20 }, (_, index) => `claim-${index}`)
    for (const name of names) await world.aClaim(name, { size: '3Gi' })
    world.start()
    for (const name of names) await world.ask('11Gi', name)
    await world.until(() => names.every((name) => world.asked(name).length >= 3), 'a few tries each')
    for (const name of names) await world.ask('3Gi', name)
    for (const name of names) {
      await world.until(async () => (await world.view(name)).state === undefined, `${name} to be cancelled`)
    }
    expect(world.fake.record.overlaps).toEqual([])
  })
})

describe('a driver that grows only volumes that are not in use', () => {
  const offline = () => {
    world.answers(fail('FAILED_PRECONDITION', 'in use'))
    return world.aClaim()
  }

  it('REX-1 (13) (19) is asked once, and again when the last pod has ended, without a timer', async () => {
    await offline()
    await world.aPod('user')
    await world.aPod('over')
    await world.endPod('over', 'Failed')
    const process = world.start()
    await world.ask('20Gi')
    await world.until(() => process.standing()?.is === 'stuck', 'it to be held')
    expect(world.asked()).toHaveLength(1)
    expect(process.standing()?.because).toBe(
      'Unable to expand default/data because CSI driver disks.example.com only supports offline expansion and volume is currently in-use',
    )
    await world.trial.clock.advance(3_600_000)
    await world.settle()
    expect(world.asked()).toHaveLength(1)
    world.script()
    await world.endPod('user')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'it', { isTimePassing: false })
  })

  it('REX-1 (13) is asked again when the pod is deleted', async () => {
    await offline()
    await world.aPod('user')
    const process = world.start()
    await world.ask('20Gi')
    await world.until(() => process.standing()?.is === 'stuck', 'it to be held')
    world.script()
    await world.deletePod('user')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'it', { isTimePassing: false })
  })

  it('REX-1 (13) is asked again with backoff where nothing uses the volume, or nobody looks', async () => {
    await offline()
    const process = world.start()
    await world.ask('20Gi')
    await world.until(() => process.standing()?.is === 'waiting', 'the backoff')
    await world.until(() => world.asked().length >= 3, 'more tries')
    await process.stop()
    await world.aPod('user')
    world.start({ options: { handlesInUse: false } })
    await world.until(() => world.asked().length >= 6, 'more tries')
  })

  it('REX-7 cancelling does not wait for the pod', async () => {
    await offline()
    await world.aPod('user')
    const process = world.start()
    await world.ask('20Gi')
    await world.until(() => process.standing()?.is === 'stuck', 'it to be held')
    await world.ask('10Gi')
    await world.until(async () => (await world.view()).state === undefined, 'the end', { isTimePassing: false })
    expect((await world.view()).conditions).toEqual([])
  })
})

describe('room', () => {
  it('PLUS-12 growth that does not fit is refused before the driver is asked, with what is missing', async () => {
    await world.tracksCapacity()
    await world.hasRoom('everywhere', { capacity: '15Gi' })
    await world.aClaim()
    const process = world.start()
    await world.ask('30Gi')
    await world.untilState('ControllerResizeInfeasible')
    expect(world.asked()).toEqual([])
    expect(world.told).toEqual([
      expect.objectContaining({ reason: 'VolumeResizeFailed', message: expect.stringContaining('5Gi are missing') }),
    ])
    expect(await world.view()).toMatchObject({ alloc: '30Gi', conditions: ['ControllerResizeError', 'Resizing'] })
    await world.until(() => process.standing()?.is === 'stuck', 'it to wait for room')

    await world.changeRoom('everywhere', '18Gi')
    await world.until(() => world.told.length === 2, 'the new amount')
    expect(world.told[1]?.message).toContain('2Gi are missing')
    await world.ask('20Gi')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'it', { isTimePassing: false })
    expect(world.asked()).toEqual([20 * GI])
  })

  it('PLUS-12 growth starts when there is room, also in a process that did not refuse it', async () => {
    await world.tracksCapacity()
    await world.hasRoom('everywhere', { capacity: '15Gi' })
    await world.aClaim()
    const first = world.start()
    await world.ask('30Gi')
    await world.untilState('ControllerResizeInfeasible')
    await first.stop()
    const second = world.start()
    await world.until(() => second.standing()?.is === 'stuck', 'it to wait')
    await world.changeRoom('everywhere', '25Gi')
    await world.until(async () => (await world.view()).state === 'NodeResizePending', 'it', { isTimePassing: false })
  })

  it('PLUS-12 where the driver does not track capacity, it is asked', async () => {
    await world.tracksCapacity(false)
    await world.hasRoom('everywhere', { capacity: '1Gi' })
    await world.aClaim()
    world.start()
    await world.ask('30Gi')
    await world.untilState('NodeResizePending')
  })
})

describe('a request that a user lowers', () => {
  const lowered = () => world.told.filter(({ reason }) => reason === 'StorageRequestLowered')

  it('REX-6 is told on claim and volume', async () => {
    world.answers(fail('OUT_OF_RANGE'))
    await world.aClaim()
    world.start()
    await world.ask('100Gi')
    await world.untilState('ControllerResizeInfeasible')
    await world.ask('20Gi')
    await world.until(() => lowered().length === 2, 'the events')
    expect(lowered().map(({ about }) => about)).toEqual(['PersistentVolumeClaim data', 'PersistentVolume data'])
    expect(lowered()[0]?.message).toBe(
      'The storage requested by claim default/data was lowered from 100Gi to 20Gi; its volume has 10Gi and does not ' +
        'shrink. Quota goes on charging 100Gi.',
    )
  })

  it('REX-6 is told once, whatever is restarted, and also where nobody watched', async () => {
    world.answers(fail('UNAVAILABLE'))
    await world.aClaim()
    const first = world.start()
    await world.ask('100Gi')
    await world.until(() => first.standing()?.is === 'waiting', 'no answer')
    await first.stop()
    await world.ask('20Gi')
    const second = world.start()
    await world.until(() => lowered().length === 2, 'the events')
    await world.until(() => world.asked().length >= 4, 'a few tries')
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
    await world.until(() => world.asked().length >= 7, 'a few more')
    await third.stop()
    expect(lowered(), 'an event says so already').toHaveLength(2)
  })
})

describe('two changes of one volume', () => {
  it('VAC-14 never run at once, growth first, and one that fails does not hold up the other', async () => {
    world.script({ method: 'ControllerExpandVolume', nth: 1, afterMs: 5_000, effect: fail('INTERNAL') })
    const seen: string[] = []
    const modifying: Change = {
      name: 'modifying',
      matters: (next, old) => next.metadata.labels?.tier !== old.metadata.labels?.tier,
      async reconcile({ claim }) {
        seen.push(`${claim.metadata.labels?.tier} after ${world.asked().length}`)
        return done
      },
    }
    await world.aClaim()
    const process = world.start({ changes: [modifying] })
    await world.until(() => seen.length === 1, 'the first look')
    const body = { metadata: { labels: { tier: 'gold' } }, spec: { resources: { requests: { storage: '20Gi' } } } }
    await world.client.patch(persistentVolumeClaimKind, { namespace: 'default', name: 'data' }, { type: 'merge', body })
    await world.until(() => world.asked().length === 1, 'the call', { isTimePassing: false })
    await world.settle()
    expect(seen).toHaveLength(1)
    expect(process.standing('data', 'modifying')).toMatchObject({ is: 'stuck' })
    await world.trial.clock.advance(5_000)
    await world.until(() => seen.length === 2, 'the other change', { isTimePassing: false })
    expect(seen[1]).toBe('gold after 1')
    expect(process.standing()).toMatchObject({ is: 'waiting' })
  })
})

describe('a process that dies', () => {
  for (const isAtomic of [true, false]) {
    it(`REX-8 at any call it makes: the next one finishes, and nothing is asked below it (${isAtomic ? 'commits' : 'single writes'})`, async () => {
      let calls = 1
      for (let call = 0; call < calls; call++) {
        for (const when of ['before', 'after'] as const) {
          await open()
          await world.aClaim()
          const first = world.start({ isAtomic, killAt: { call, when } })
          await world.ask('20Gi')
          await world.until(async () => first.isDead || (await world.view()).state === 'NodeResizePending', 'its end')
          if (!first.isDead) continue
          calls = Math.max(calls, first.calls.length + 1)
          await world.ask('15Gi')
          world.start({ isAtomic })
          await world.untilState('NodeResizePending')
          const { alloc, pvcap } = await world.view()
          expect(alloc).toBe(pvcap)
          expect(world.bytes()).toBe(Math.max(...world.asked()))
          expect(
            [...world.asked()].sort((a, b) => a - b),
            'never less than before',
          ).toEqual(world.asked().length > 1 && world.asked()[0]! > world.asked().at(-1)! ? [] : world.asked())
        }
      }
      expect(calls).toBeGreaterThan(isAtomic ? 3 : 4)
    })
  }

  it('REX-8 one that no longer leads asks nothing and writes nothing', async () => {
    await world.aClaim()
    const election = {
      assertStillLeader() {
        throw new Error('someone else leads now')
      },
      fence() {
        throw new Error('someone else leads now')
      },
    }
    const process = world.start({ election })
    await world.ask('20Gi')
    await world.until(() => process.standing()?.is === 'waiting', 'its failure')
    expect(world.asked()).toEqual([])
    expect((await world.view()).state).toBeUndefined()
  })
})

describe('gates', () => {
  it('REX-10 without recovery on the server, growth works by conditions alone', async () => {
    await open({ trial: { gates: 'RecoverExpansionFailure=false' } })
    await world.aClaim()
    world.start()
    await world.ask('20Gi')
    await world.until(async () => (await world.view()).pvcap === '20Gi', 'the volume')
    await world.settle()
    const view = await world.view()
    expect([view.alloc, view.state]).toEqual([undefined, undefined])
    expect(view.conditions).toEqual(['FileSystemResizePending', 'Resizing'])
    expect(world.asked()).toEqual([20 * GI])
    await world.nodeEnds('20Gi')
    await world.until(async () => (await world.view()).before === undefined, 'the annotation to go')
    expect((await world.view()).conditions).toEqual([])
    expect((await world.client.get(persistentVolumeKind, { name: 'data' })).spec?.capacity).toEqual({ storage: '20Gi' })
  })
})
