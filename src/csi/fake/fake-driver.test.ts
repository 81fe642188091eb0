import { create, type DescMessage, type Message, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import type { ServiceHandlers } from '../driver.ts'
import type { CsiError, CsiFailureCode } from '../errors.ts'
import { Controller, VolumeCapability_AccessMode_Mode as Mode, Node } from '../gen/csi_pb.js'
import { createFakeDriver, type FakeDriver, type FakeDriverOptions } from './fake-driver.ts'
import { createScript } from './script.ts'
import { type FakeSettings, fakeSettings } from './settings.ts'

const GI = 1024 ** 3
const gi = (count: number) => BigInt(count * GI)
const mount = (mode = Mode.SINGLE_NODE_WRITER) => ({
  accessType: { case: 'mount' as const, value: { fsType: 'ext4' } },
  accessMode: { mode },
})
const block = { accessType: { case: 'block' as const, value: {} }, accessMode: { mode: Mode.SINGLE_NODE_WRITER } }

/** Creates a fake driver with calls that take plain objects. */
function setUp(settings: Partial<FakeSettings> = {}, options: Partial<FakeDriverOptions> = {}) {
  const clock = manualClock()
  const fake = createFakeDriver({ clock, settings: fakeSettings(settings), ...options })
  const controller = callsOf(Controller, fake.controller)
  const node = callsOf(Node, fake.node('node-1'))
  const createVolume = async (name: string, overrides: object = {}) => {
    const request = { name, capacityRange: { requiredBytes: gi(1) }, volumeCapabilities: [mount()], ...overrides }
    return (await controller.createVolume(request)).volume as { volumeId: string; capacityBytes: bigint }
  }
  return { fake, clock, controller, node, createVolume }
}

type Calls<S extends typeof Controller | typeof Node> = {
  [M in keyof ServiceHandlers<S>]: (
    request: Method<S, M> extends { input: infer I extends DescMessage } ? MessageInitShape<I> : never,
    signal?: AbortSignal,
  ) => Promise<Method<S, M> extends { output: infer O extends DescMessage } ? MessageShape<O> : never>
}
type Method<S extends typeof Controller | typeof Node, M> = S['method'][M & keyof S['method']]
type AnyHandler = (request: Message, call: { signal: AbortSignal }) => Promise<unknown>

function callsOf<S extends typeof Controller | typeof Node>(service: S, handlers: ServiceHandlers<S>): Calls<S> {
  const calls = service.methods.map((method) => [
    method.localName,
    (request: object, signal = new AbortController().signal) =>
      (handlers as Record<string, AnyHandler>)[method.localName]!(create(method.input, request as never), { signal }),
  ])
  return Object.fromEntries(calls)
}

const expectError = (call: Promise<unknown>, code: CsiFailureCode, text?: RegExp) =>
  call.then(
    () => expect.unreachable(`the call must fail with ${code}`),
    (error: CsiError) => {
      expect(error.codeName).toBe(code)
      if (text) expect(error.message).toMatch(text)
    },
  )

describe('volumes of the fake driver', () => {
  it('are created once per name', async () => {
    const { fake, createVolume } = setUp()
    expect(await createVolume('a')).toEqual(await createVolume('a'))
    expect((await createVolume('b')).volumeId).not.toBe((await createVolume('a')).volumeId)
    expect(Object.keys(fake.state.volumes).length).toBe(2)
  })

  it('are rejected with ALREADY_EXISTS if a different volume has the same name', async () => {
    const { createVolume } = setUp({ pools: [{ name: 'a', capacityBytes: 10 * GI, segments: { zone: 'a' } }] })
    await createVolume('a', { mutableParameters: { tier: 'gold' }, parameters: { x: '1' } })
    const request = { mutableParameters: { tier: 'gold' }, parameters: { x: '1' } }
    const differentRequests = [
      { capacityRange: { requiredBytes: gi(2) } },
      { capacityRange: { requiredBytes: 1n, limitBytes: 2n } },
      { volumeCapabilities: [block] },
      { parameters: { x: '2' } },
      { mutableParameters: {} },
      { accessibilityRequirements: { requisite: [{ segments: { zone: 'b' } }] } },
    ]
    for (const difference of differentRequests)
      await expectError(createVolume('a', { ...request, ...difference }), 'ALREADY_EXISTS')
    await createVolume('a', { ...request, accessibilityRequirements: { requisite: [{ segments: { zone: 'a' } }] } })
  })

  it('have the requested size or the default size, and are rejected if the size is out of range', async () => {
    const { createVolume } = setUp({ defaultBytes: 3 * GI, maximumBytes: 9 * GI })
    const createSized = async (name: string, capacityRange: object | undefined) => {
      return (await createVolume(name, { capacityRange })).capacityBytes
    }
    expect(await createSized('a', undefined)).toBe(gi(3))
    expect(await createSized('b', { requiredBytes: gi(5) })).toBe(gi(5))
    expect(await createSized('c', { limitBytes: gi(2) })).toBe(gi(2))
    await expectError(createSized('d', { requiredBytes: gi(5), limitBytes: gi(4) }), 'OUT_OF_RANGE')
    await expectError(createSized('e', { requiredBytes: gi(10) }), 'OUT_OF_RANGE')
    await expectError(createSized('f', { requiredBytes: -1n }), 'INVALID_ARGUMENT')
  })

  it('require a name, capabilities and known parameters of limited length', async () => {
    const { createVolume, controller } = setUp({ parameterKeys: ['kind'] })
    await expectError(createVolume(''), 'INVALID_ARGUMENT')
    await expectError(createVolume('a', { volumeCapabilities: [] }), 'INVALID_ARGUMENT')
    await expectError(createVolume('a', { volumeCapabilities: [{}] }), 'INVALID_ARGUMENT')
    await expectError(createVolume('a', { parameters: { colour: 'red' } }), 'INVALID_ARGUMENT')
    await expectError(createVolume('a', { parameters: { pool: 'none' } }), 'INVALID_ARGUMENT')
    await expectError(createVolume('x'.repeat(129)), 'INVALID_ARGUMENT')
    await expectError(createVolume('a', { parameters: { kind: 'x'.repeat(4_097) } }), 'INVALID_ARGUMENT')
    await createVolume('a', { parameters: { kind: 'x', 'csi.storage.k8s.io/pvc/name': 'claim' } })
    expect((await controller.listVolumes({})).entries.length).toBe(1)
  })

  it('require the configured secrets, which are never recorded', async () => {
    const { fake, createVolume } = setUp({ secretKeys: ['password'] })
    await expectError(createVolume('a'), 'UNAUTHENTICATED')
    await createVolume('a', { secrets: { password: 'hunter2' } })
    expect(fake.record.calls.map(({ secretKeys }) => secretKeys)).toEqual([[], ['password']])
    expect(JSON.stringify([fake.record.calls, fake.state])).not.toContain('hunter2')
  })

  it('are deleted idempotently, and not while they are in use', async () => {
    const { createVolume, controller } = setUp()
    const { volumeId } = await createVolume('a')
    await controller.controllerPublishVolume({ volumeId, nodeId: 'node-1', volumeCapability: mount() })
    await expectError(controller.deleteVolume({ volumeId }), 'FAILED_PRECONDITION')
    await controller.controllerUnpublishVolume({ volumeId })
    await controller.deleteVolume({ volumeId })
    await controller.deleteVolume({ volumeId })
    expect((await createVolume('a')).volumeId).not.toBe(volumeId) // ids are never reused
  })

  it('are listed in pages that stay consistent if volumes are deleted', async () => {
    const { createVolume, controller } = setUp()
    const ids = []
    for (const name of ['a', 'b', 'c', 'd', 'e']) ids.push((await createVolume(name)).volumeId)
    const firstPage = await controller.listVolumes({ maxEntries: 2 })
    await controller.deleteVolume({ volumeId: ids[0]! })
    const secondPage = await controller.listVolumes({ maxEntries: 2, startingToken: firstPage.nextToken })
    const thirdPage = await controller.listVolumes({ startingToken: secondPage.nextToken })
    const listedIds = [firstPage, secondPage, thirdPage].flatMap(({ entries }) =>
      entries.map(({ volume }) => volume?.volumeId),
    )
    expect(listedIds).toEqual(ids)
    expect(thirdPage.nextToken).toBe('')
    await expectError(controller.listVolumes({ startingToken: 'nonsense' }), 'ABORTED')
  })

  it('change all requested attributes or none', async () => {
    const { fake, createVolume, controller } = setUp()
    const { volumeId } = await createVolume('a', { parameters: { tier: 'gold' }, mutableParameters: { iops: '100' } })
    const modify = (mutableParameters: Record<string, string>) =>
      controller.controllerModifyVolume({ volumeId, mutableParameters })
    await modify({ throughput: '20' })
    await expectError(modify({ iops: '200', colour: 'red' }), 'INVALID_ARGUMENT')
    await expectError(modify({ iops: 'many' }), 'INVALID_ARGUMENT')
    await expectError(modify({ tier: 'silver' }), 'INVALID_ARGUMENT', /gold.*silver/)
    expect(fake.state.volumes[volumeId]?.mutableParameters).toEqual({ iops: '100', throughput: '20' })
    await expectError(controller.controllerModifyVolume({ volumeId: 'none' }), 'NOT_FOUND')
    await createVolume('a', { parameters: { tier: 'gold' }, mutableParameters: { iops: '100' } }) // still the same volume
  })

  it('are expanded idempotently and never shrink', async () => {
    const { createVolume, controller } = setUp({ pools: [{ name: 'p', capacityBytes: 10 * GI }] })
    const { volumeId } = await createVolume('a')
    const grow = (capacityRange: object) => controller.controllerExpandVolume({ volumeId, capacityRange })
    expect(await grow({ requiredBytes: gi(4) })).toEqual({ capacityBytes: gi(4), nodeExpansionRequired: true })
    expect((await grow({ requiredBytes: gi(2) })).capacityBytes).toBe(gi(4))
    await expectError(grow({ requiredBytes: gi(1), limitBytes: gi(2) }), 'OUT_OF_RANGE')
    await expectError(grow({ requiredBytes: gi(11) }), 'RESOURCE_EXHAUSTED')
    await expectError(grow({}), 'INVALID_ARGUMENT')
  })

  it('are not expanded while in use if the driver expands offline only', async () => {
    const { createVolume, controller } = setUp({ expansion: ['OFFLINE'] })
    const { volumeId } = await createVolume('a')
    await controller.controllerPublishVolume({ volumeId, nodeId: 'node-1', volumeCapability: mount() })
    const capacityRange = { requiredBytes: gi(2) }
    await expectError(controller.controllerExpandVolume({ volumeId, capacityRange }), 'FAILED_PRECONDITION')
  })

  it('are created from snapshots, with at least the size of the snapshot, and not from a deleted volume', async () => {
    const { createVolume, controller } = setUp()
    const { volumeId } = await createVolume('a', { capacityRange: { requiredBytes: gi(2) } })
    const { snapshot } = await controller.createSnapshot({ name: 's', sourceVolumeId: volumeId })
    await controller.deleteVolume({ volumeId })
    const fromSource = (type: object) => ({ volumeContentSource: { type }, capacityRange: undefined })
    const fromSnapshot = fromSource({ case: 'snapshot', value: { snapshotId: snapshot!.snapshotId } })
    expect(await createVolume('b', fromSnapshot)).toMatchObject({
      capacityBytes: gi(2),
      contentSource: fromSnapshot.volumeContentSource,
    })
    await expectError(createVolume('c', { ...fromSnapshot, capacityRange: { requiredBytes: gi(1) } }), 'OUT_OF_RANGE')
    await expectError(createVolume('d', fromSource({ case: 'volume', value: { volumeId } })), 'NOT_FOUND')
    await expectError(controller.createSnapshot({ name: 's', sourceVolumeId: 'other' }), 'ALREADY_EXISTS')
  })

  it('support only the operations of enabled capabilities', async () => {
    const { createVolume, controller } = setUp({ controller: ['CREATE_DELETE_VOLUME'] })
    await createVolume('a')
    await expectError(createVolume('b', { mutableParameters: { iops: '1' } }), 'INVALID_ARGUMENT')
    await expectError(controller.getCapacity({}), 'UNIMPLEMENTED')
    await expectError(controller.createSnapshot({ name: 's', sourceVolumeId: 'a' }), 'UNIMPLEMENTED')
    await expectError(controller.controllerModifyVolume({ volumeId: 'a' }), 'UNIMPLEMENTED')
  })
})

describe('capacity of the fake driver', () => {
  const twoZones = {
    pools: [
      { name: 'a', capacityBytes: 10 * GI, segments: { zone: 'a' } },
      { name: 'b', capacityBytes: 4 * GI, segments: { zone: 'b' } },
    ],
  }
  const inZone = (...zones: string[]) => ({
    accessibilityRequirements: { requisite: zones.map((zone) => ({ segments: { zone } })) },
  })

  it('is reported per topology and used in the requested topology', async () => {
    const { createVolume, controller } = setUp(twoZones)
    expect(await createVolume('a', inZone('b'))).toMatchObject({ accessibleTopology: [{ segments: { zone: 'b' } }] })
    const preferredTopology = {
      requisite: inZone('a', 'b').accessibilityRequirements.requisite,
      preferred: [{ segments: { zone: 'b' } }],
    }
    expect(await createVolume('b', { accessibilityRequirements: preferredTopology })).toMatchObject({
      accessibleTopology: [{ segments: { zone: 'b' } }],
    })
    const readFreeBytes = async (zone: string) =>
      (await controller.getCapacity({ accessibleTopology: { segments: { zone } } })).availableCapacity
    expect([await readFreeBytes('a'), await readFreeBytes('b'), await readFreeBytes('c')]).toEqual([gi(10), gi(2), 0n])
    await expectError(createVolume('c', inZone('c')), 'RESOURCE_EXHAUSTED')
    await expectError(
      createVolume('d', { ...inZone('b'), capacityRange: { requiredBytes: gi(3) } }),
      'RESOURCE_EXHAUSTED',
    )
    expect(await createVolume('e', { ...inZone('b', 'a'), capacityRange: { requiredBytes: gi(3) } })).toMatchObject({
      accessibleTopology: [{ segments: { zone: 'a' } }],
    })
  })

  it('is divided by the number of copies, and zero for invalid parameters', async () => {
    const { createVolume, controller } = setUp({ pools: [{ name: 'p', capacityBytes: 10 * GI }] })
    const readFreeBytes = async (parameters: Record<string, string>) =>
      (await controller.getCapacity({ parameters })).availableCapacity
    await createVolume('striped')
    await createVolume('mirrored', { parameters: { copies: '2' } })
    expect(await readFreeBytes({})).toBe(gi(7))
    expect(await readFreeBytes({ copies: '2' })).toBe(gi(7) / 2n)
    expect(await readFreeBytes({ copies: 'many' })).toBe(0n)
    await expectError(
      createVolume('big', { parameters: { copies: '2' }, capacityRange: { requiredBytes: gi(4) } }),
      'RESOURCE_EXHAUSTED',
    )
  })

  it('includes the maximum volume size', async () => {
    const { controller } = setUp(twoZones)
    expect(await controller.getCapacity({})).toEqual({ availableCapacity: gi(14), maximumVolumeSize: gi(10) })
  })
})

describe('a volume of the fake driver on nodes', () => {
  const nodes = [{ id: 'node-1', maxVolumes: 1 }, { id: 'node-2' }]

  it('is published within the limits of the node and the access mode', async () => {
    const { createVolume, controller } = setUp({ nodes })
    const { volumeId } = await createVolume('a')
    const publish = (nodeId: string, overrides: object = {}) =>
      controller.controllerPublishVolume({ volumeId, nodeId, volumeCapability: mount(), ...overrides })
    await expectError(publish('node-9'), 'NOT_FOUND')
    await publish('node-1')
    await publish('node-1')
    await expectError(publish('node-1', { readonly: true }), 'ALREADY_EXISTS')
    await expectError(publish('node-2'), 'FAILED_PRECONDITION', /node-1/)
    await expectError(publish('node-1', { volumeId: (await createVolume('b')).volumeId }), 'RESOURCE_EXHAUSTED')
    await controller.controllerUnpublishVolume({ volumeId, nodeId: 'node-1' })
    await controller.controllerUnpublishVolume({ volumeId, nodeId: 'node-1' })
    await publish('node-2')
  })

  it('is staged, published, expanded, unpublished and unstaged', async () => {
    const { fake, createVolume, controller, node } = setUp()
    const { volumeId } = await createVolume('a')
    const volumeCapability = mount()
    const stage = { volumeId, stagingTargetPath: '/s', volumeCapability }
    const publish = { ...stage, targetPath: '/t' }
    await expectError(node.nodeStageVolume(stage), 'FAILED_PRECONDITION')
    await controller.controllerPublishVolume({ volumeId, nodeId: 'node-1', volumeCapability })
    await expectError(node.nodePublishVolume(publish), 'FAILED_PRECONDITION')
    expect(fake.state.volumes[volumeId]?.onNodes).toEqual({})
    await node.nodeStageVolume(stage)
    await node.nodePublishVolume(publish)
    await expectError(node.nodePublishVolume({ ...publish, readonly: true }), 'ALREADY_EXISTS')
    await expectError(node.nodeUnstageVolume({ volumeId, stagingTargetPath: '/s' }), 'FAILED_PRECONDITION')
    await controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: gi(2) } })
    const readTotal = async () => (await node.nodeGetVolumeStats({ volumeId, volumePath: '/t' })).usage[0]!.total
    expect(await readTotal()).toBe(gi(1))
    await node.nodeExpandVolume({ volumeId, volumePath: '/t' })
    expect(await readTotal()).toBe(gi(2))
    await expectError(node.nodeGetVolumeStats({ volumeId, volumePath: '/x' }), 'NOT_FOUND')
    await node.nodeUnpublishVolume({ volumeId, targetPath: '/t' })
    await node.nodeUnstageVolume({ volumeId, stagingTargetPath: '/s' })
    expect(fake.state.volumes[volumeId]?.onNodes).toEqual({})
  })
})

describe('fault rules of the fake driver', () => {
  it('match by method, volume and count', async () => {
    const { fake, createVolume, controller } = setUp()
    const { volumeId } = await createVolume('a')
    fake.script.setRules([
      { method: 'CreateVolume', nth: 2, effect: { do: 'fail', code: 'INTERNAL' } },
      { volume: 'a', method: 'DeleteVolume', times: 1, effect: { do: 'fail', code: 'UNKNOWN', message: 'busy' } },
    ])
    await createVolume('b')
    await expectError(createVolume('c'), 'INTERNAL')
    await createVolume('c')
    await controller.deleteVolume({ volumeId: 'other' })
    await expectError(controller.deleteVolume({ volumeId }), 'UNKNOWN', /busy/)
    await controller.deleteVolume({ volumeId })
  })

  it('can lose the response of a completed call', async () => {
    const { fake, createVolume } = setUp()
    fake.script.setRules([{ nth: 1, effect: { do: 'loseReply', as: 'unavailable' } }])
    await expectError(createVolume('a'), 'UNAVAILABLE')
    expect(Object.values(fake.state.volumes).map(({ name }) => name)).toEqual(['a'])
    await createVolume('a')
  })

  it('can crash the driver before or after the handler, whose effect is persisted', async () => {
    for (const crashPoint of ['before', 'after'] as const) {
      let crashes = 0
      const persistedCounts: number[] = []
      const persist = (state: { volumes: object }) => void persistedCounts.push(Object.keys(state.volumes).length)
      const script = createScript([{ effect: { do: 'crash', when: crashPoint } }])
      const { fake, createVolume } = setUp({}, { onCrash: () => crashes++, persist, script })
      let hasResponded = false
      void createVolume('a').finally(() => {
        hasResponded = true
      })
      await new Promise((resolve) => setImmediate(resolve))
      expect(crashes).toBe(1)
      expect(hasResponded).toBe(false)
      expect(persistedCounts).toEqual(crashPoint === 'after' ? [1] : [])
      expect(Object.keys(fake.state.volumes).length).toBe(crashPoint === 'after' ? 1 : 0)
    }
  })

  it('can delay a call', async () => {
    const { fake, createVolume, clock } = setUp()
    fake.script.setRules([{ afterMs: 5_000 }])
    const creation = createVolume('a')
    await clock.advance(4_999)
    expect(fake.state.volumes).toEqual({})
    await clock.advance(1)
    await creation
  })

  it('can create a volume smaller than requested', async () => {
    const { fake, createVolume } = setUp()
    fake.script.setRules([{ effect: { do: 'overrideSize', bytes: 7 } }])
    expect((await createVolume('a')).capacityBytes).toBe(7n)
  })

  it('can hang a call, which makes other calls for the volume fail with ABORTED, even after it is cancelled', async () => {
    const { fake, controller, createVolume } = setUp()
    const { volumeId } = await createVolume('a')
    fake.script.setRules([{ method: 'ControllerExpandVolume', effect: { do: 'hang' } }])
    const capacityRange = { requiredBytes: gi(2) }
    const caller = new AbortController()
    const expansion = controller.controllerExpandVolume({ volumeId, capacityRange }, caller.signal)
    await expectError(controller.deleteVolume({ volumeId }), 'ABORTED')
    expect(fake.record.overlaps).toMatchObject([
      { volume: 'a', first: { method: 'ControllerExpandVolume' }, second: { method: 'DeleteVolume' } },
    ])
    caller.abort() // after cancelling, the caller may call again
    await expectError(controller.deleteVolume({ volumeId }), 'ABORTED')
    expect(fake.record.overlaps.length).toBe(1)
    fake.script.release()
    await expansion
    await controller.deleteVolume({ volumeId })
    expect(fake.record.overlaps.length).toBe(1)
  })

  it('can be passed to a restarted driver together with the volumes and the record', async () => {
    const firstDriver = setUp()
    await firstDriver.createVolume('a')
    const { state, record, script } = firstDriver.fake
    const secondDriver = setUp({}, { state, record, script })
    await secondDriver.createVolume('a')
    expect(Object.keys(secondDriver.fake.state.volumes).length).toBe(1)
    expect(record.calls.map(({ number }) => number)).toEqual([1, 2])
  })
})

describe('random calls to the fake driver', () => {
  const aStep = fc.oneof(
    fc.record({
      do: fc.constant('create' as const),
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      gi: fc.integer({ min: 0, max: 6 }),
      copies: fc.constantFrom('1', '2'),
      zone: fc.constantFrom(undefined, 'a', 'b', 'c'),
    }),
    fc.record({ do: fc.constant('delete' as const), name: fc.constantFrom('a', 'b', 'c', 'd') }),
    fc.record({
      do: fc.constant('grow' as const),
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      gi: fc.integer({ min: 0, max: 8 }),
    }),
    fc.record({
      do: fc.constant('modify' as const),
      name: fc.constantFrom('a', 'b'),
      iops: fc.constantFrom('1', '2', '-1'),
    }),
  )

  it('never overfill a pool or shrink a volume, and failed calls change nothing', async () => {
    const pools = [
      { name: 'a', capacityBytes: 10 * GI, segments: { zone: 'a' } },
      { name: 'b', capacityBytes: 7 * GI, segments: { zone: 'b' } },
    ]
    await fc.assert(
      fc.asyncProperty(fc.array(aStep, { maxLength: 40 }), async (steps) => {
        const { fake, controller, createVolume } = setUp({ pools })
        for (const step of steps) {
          const previousState = JSON.stringify(fake.state)
          const sizes = sizesOf(fake)
          const existingVolume = Object.values(fake.state.volumes).find(({ name }) => name === step.name)
          const volumeId = existingVolume?.id ?? 'none'
          const capacityRange = 'gi' in step && step.gi > 0 ? { requiredBytes: gi(step.gi) } : undefined
          const call = {
            create: () =>
              step.do === 'create' &&
              createVolume(step.name, {
                capacityRange,
                parameters: { copies: step.copies },
                accessibilityRequirements: step.zone && { requisite: [{ segments: { zone: step.zone } }] },
              }),
            delete: () => controller.deleteVolume({ volumeId }),
            grow: () => controller.controllerExpandVolume({ volumeId, capacityRange }),
            modify: () =>
              step.do === 'modify' &&
              controller.controllerModifyVolume({ volumeId, mutableParameters: { iops: step.iops } }),
          }[step.do]
          const hasFailed = await Promise.resolve(call()).then(
            () => false,
            () => true,
          )
          if (hasFailed) expect(JSON.stringify(fake.state)).toBe(previousState)
          for (const [id, bytes] of sizesOf(fake)) expect(bytes).toBeGreaterThanOrEqual(sizes.get(id) ?? 0)
          for (const pool of pools) expect(usedBytesIn(fake, pool.name)).toBeLessThanOrEqual(pool.capacityBytes)
          const names = Object.values(fake.state.volumes).map(({ name }) => name)
          expect(new Set(names).size).toBe(names.length)
        }
        expect(fake.record.overlaps).toEqual([])
      }),
    )
  })
})

const sizesOf = (fake: FakeDriver) =>
  new Map(Object.values(fake.state.volumes).map(({ id, capacityBytes }) => [id, capacityBytes]))
const usedBytesIn = (fake: FakeDriver, pool: string) =>
  Object.values(fake.state.volumes)
    .filter((volume) => volume.pool === pool)
    .reduce((sum, volume) => sum + volume.capacityBytes * volume.copies, 0)
