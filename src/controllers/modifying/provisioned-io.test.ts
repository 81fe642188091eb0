import { afterEach, describe, expect, it } from 'vitest'
import { aWorld, type World, type WorldOptions } from './modifying.fixture.ts'

let world: World
afterEach(() => world.close())

/** 500 iops and 50 MiB/s are requested and in effect. */
async function provisioned(given: WorldOptions = {}): Promise<void> {
  world = await aWorld(given)
  await world.aClaim('data', { io: { iops: '500', throughput: '50' }, has: { iops: '500', throughput: '50' } })
}

const io = async () => {
  const { capacity, allocatedResources, allocatedResourceStatuses } = await world.status()
  return { capacity, allocated: allocatedResources, statuses: allocatedResourceStatuses }
}
const untilProvided = (amounts: Readonly<Record<string, string>>) =>
  world.until(async () => {
    const { capacity, statuses } = await io()
    return !statuses && Object.entries(amounts).every(([name, amount]) => capacity?.[name] === amount)
  }, JSON.stringify(amounts))
const untilStatus = (name: string, status: string) =>
  world.until(async () => (await io()).statuses?.[name] === status, `${name} ${status}`)
const untilEvent = (reason: string, times = 1) =>
  world.until(() => world.reasons().filter((one) => one === reason).length >= times, `${times} × ${reason}`)

describe('iops and throughput of a bound claim', () => {
  it('PIO-1 makes no call if the amounts are in effect', async () => {
    await provisioned()
    world.start()
    await world.settle()
    expect(world.modifyCalls()).toEqual([])
    expect(world.events).toEqual([])
  })

  it.each([
    ['up', { iops: '800', throughput: '80' }, { iops: '800', throughput: '80Mi' }],
    ['down', { iops: '100', throughput: '10Mi' }, { iops: '100', throughput: '10Mi' }],
    ['down', { iops: '1k', throughput: '1' }, { iops: '1k', throughput: '1Mi' }],
  ])('PIO-1 PIO-4 modifies %s: %j', async (_way, asked, provided) => {
    await provisioned()
    world.start()
    await world.setIo(asked)
    await untilProvided(provided)
    const sent = {
      iops: String(Number(asked.iops.replace('k', '000'))),
      throughput: asked.throughput.replace('Mi', ''),
    }
    expect(world.has()).toEqual(sent)
    expect((await io()).allocated).toEqual(provided)
    expect((await world.volume()).spec?.capacity).toEqual({ storage: '1Gi', ...provided })
  })

  it('PIO-3 PIO-6 writes each step in one patch and records events', async () => {
    await provisioned()
    world.rules([{ effect: { do: 'hang' } }])
    const process = world.start()
    await world.setIo({ iops: '800' })
    await world.until(() => world.fake.script.hanging === 1, 'the call')
    expect(await io()).toMatchObject({
      capacity: { iops: '500', throughput: '50Mi' },
      allocated: { iops: '800' },
      statuses: { iops: 'ControllerModifyVolumeInProgress' },
    })
    expect((await world.status()).modifyVolumeStatus).toBeUndefined()
    world.fake.script.release()
    await untilProvided({ iops: '800' })
    expect(world.modifyCalls()).toEqual([{ iops: '800', throughput: '50' }])
    expect(world.events.map(({ type, reason, message }) => [type, reason, message])).toEqual([
      ['Normal', 'VolumeModifyInProgress', 'modifying volume data to iops 800'],
      ['Normal', 'VolumeModifySuccess', 'modified volume data to iops 800 successfully'],
    ])
    expect(process.calls.filter((call) => call === 'commit')).toHaveLength(2)
    expect((await world.status()).conditions ?? []).toEqual([])
  })

  it('PIO-1 applies first amounts to a bound claim', async () => {
    world = await aWorld()
    await world.aClaim()
    world.start()
    await world.setIo({ throughput: '1000M' })
    await untilProvided({ throughput: '1G' })
    expect(world.has()).toEqual({ throughput: '954' })
  })

  it('PIO-3 keeps the status of an expansion', async () => {
    await provisioned()
    const growing = {
      allocatedResources: { storage: '2Gi' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    }
    await world.patchClaim('data', { status: growing }, 'status')
    world.start()
    await world.setIo({ iops: '800' })
    await world.until(async () => (await io()).capacity?.iops === '800', 'the change')
    expect(await io()).toMatchObject({
      allocated: { storage: '2Gi', iops: '800' },
      statuses: { storage: 'ControllerResizeInProgress' },
    })
    expect((await io()).statuses).not.toHaveProperty('iops')
  })

  it('PIO-1 keeps amounts that are no longer requested, without charging quota', async () => {
    await provisioned()
    world.start()
    await world.setIo({ iops: '800' })
    await untilProvided({ iops: '800' })
    await world.setIo({ iops: null })
    await world.until(async () => (await io()).allocated?.iops === undefined, 'the charge to go')
    expect(await io()).toMatchObject({ capacity: { iops: '800', throughput: '50Mi' } })
    expect(world.modifyCalls()).toHaveLength(1)
    expect(world.has()).toEqual({ iops: '800', throughput: '50' })
  })
})

describe('a driver that fails', () => {
  it.each(['INVALID_ARGUMENT', 'OUT_OF_RANGE'] as const)(
    'PIO-5 %s: Failed, the volume as it was, tried slowly; other values at once',
    async (code) => {
      await provisioned()
      world.fails(code, 1)
      world.start()
      await world.setIo({ iops: '99999' })
      await untilStatus('iops', 'ControllerModifyVolumeFailed')
      expect(await io()).toMatchObject({ capacity: { iops: '500' }, allocated: { iops: '99999' } })
      expect(world.has()).toEqual({ iops: '500', throughput: '50' })
      expect(world.reasons()).toEqual(['VolumeModifyInProgress', 'VolumeModifyFailed'])
      await world.server.clock.advance(290_000)
      await world.settle()
      expect(world.modifyCalls()).toHaveLength(1)
      await world.setIo({ iops: '700' })
      await world.settle()
      await untilProvided({ iops: '700' })
      expect(world.has()).toEqual({ iops: '700', throughput: '50' })
    },
  )

  it('PIO-5 NOT_FOUND: InProgress, retried with backoff', async () => {
    await provisioned()
    world.fails('NOT_FOUND', 2)
    world.start()
    await world.setIo({ iops: '700' })
    await untilEvent('VolumeModifyFailed')
    await world.settle()
    expect((await io()).statuses).toEqual({ iops: 'ControllerModifyVolumeInProgress' })
    await untilProvided({ iops: '700' })
    expect(world.modifyCalls()).toHaveLength(3)
  })

  it('PIO-5 FAILED_PRECONDITION without pods or with handlesInUse off: Pending, retried with backoff', async () => {
    await provisioned()
    world.fails('FAILED_PRECONDITION', 2)
    const process = world.start()
    await world.setIo({ iops: '700' })
    await untilStatus('iops', 'ControllerModifyVolumePending')
    await untilProvided({ iops: '700' })
    expect(world.modifyCalls()).toHaveLength(3)
    await process.stop()
    await world.aPod('user')
    world.fails('FAILED_PRECONDITION', 2)
    world.start({ options: { handlesInUse: false } })
    await world.setIo({ iops: '800' })
    await untilProvided({ iops: '800' })
    expect(world.modifyCalls()).toHaveLength(6)
  })

  it('PIO-5 FAILED_PRECONDITION while pods use the volume: Pending, retried when the last pod has terminated', async () => {
    await provisioned()
    await world.aPod('user')
    await world.aPod('over')
    await world.endPod('over')
    world.fails('FAILED_PRECONDITION')
    const process = world.start()
    await world.setIo({ iops: '700' })
    await world.until(() => process.standing()?.is === 'stuck', 'it to be held')
    expect(await io()).toMatchObject({ statuses: { iops: 'ControllerModifyVolumePending' }, capacity: { iops: '500' } })
    await world.server.clock.advance(3_600_000)
    await world.setIo({ iops: '800' })
    await world.settle()
    expect(world.modifyCalls()).toHaveLength(1)
    expect(world.events.map(({ reason }) => reason)).toEqual(['VolumeModifyInProgress', 'VolumeModifyFailed'])
    expect(world.events[1]?.message).toMatch(
      /^rpc error: code = FailedPrecondition .* retried when the last pod has terminated\.$/,
    )
    world.rules([])
    await world.endPod('user')
    await world.settle()
    expect(await io()).toMatchObject({ capacity: { iops: '800' }, statuses: undefined })
    expect(world.has()).toEqual({ iops: '800', throughput: '50' })
  })

  it('PIO-5 holds and records an event if a pod starts to use the volume after the rejection', async () => {
    await provisioned()
    world.fails('FAILED_PRECONDITION')
    const process = world.start()
    await world.setIo({ iops: '700' })
    await untilStatus('iops', 'ControllerModifyVolumePending')
    await world.aPod('user')
    await world.until(() => process.standing()?.is === 'stuck', 'it to be held')
    expect(world.events.at(-1)?.message).toMatch(/only while a volume is not in use, and pods use this one/)
  })

  it('PIO-5 VAC-7 rolls back without a call while a pod uses the volume', async () => {
    await provisioned()
    await world.aPod('user')
    world.fails('FAILED_PRECONDITION')
    const process = world.start()
    await world.setIo({ iops: '700' })
    await world.until(() => process.standing()?.is === 'stuck', 'it to be held')
    await world.setIo({ iops: '500' })
    await world.settle()
    expect(await io()).toMatchObject({ capacity: { iops: '500' }, allocated: { iops: '500' }, statuses: undefined })
    expect((await world.status()).conditions ?? []).toEqual([])
    expect(world.modifyCalls()).toHaveLength(1)
  })

  it('PIO-5 holds a class requested together with an amount, but not a class alone', async () => {
    await provisioned()
    await world.aClass('hot', { tier: 'hot' })
    await world.aPod('user')
    world.fails('FAILED_PRECONDITION', 1)
    const process = world.start()
    await world.patchClaim('data', {
      spec: { volumeAttributesClassName: 'hot', resources: { requests: { iops: '700' } } },
    })
    await world.until(() => process.standing()?.is === 'stuck', 'it to be held')
    expect((await world.status()).modifyVolumeStatus).toEqual({
      targetVolumeAttributesClassName: 'hot',
      status: 'Pending',
    })
    await world.setIo({ iops: '500' })
    await world.settle()
    await world.untilSettled('hot')
    expect(world.has()).toEqual({ tier: 'hot', iops: '500', throughput: '50' })
  })

  it('PIO-5 an amount below the driver’s minimum: Failed, attributes unchanged', async () => {
    await provisioned()
    world.rules([{ times: 1, effect: { do: 'fail', code: 'OUT_OF_RANGE', message: 'at least 100 iops' } }])
    world.start()
    await world.setIo({ iops: '1', throughput: '1' })
    await untilStatus('iops', 'ControllerModifyVolumeFailed')
    expect((await io()).statuses).toEqual({
      iops: 'ControllerModifyVolumeFailed',
      throughput: 'ControllerModifyVolumeFailed',
    })
    expect(world.events.at(-1)).toMatchObject({ type: 'Warning', reason: 'VolumeModifyFailed' })
    expect(world.events.at(-1)?.message).toContain('at least 100 iops')
    expect((await world.volume()).spec?.capacity).toMatchObject({ iops: '500', throughput: '50Mi' })
    expect(world.has()).toEqual({ iops: '500', throughput: '50' })
  })

  it('PIO-5 no final response: the status stays unchanged', async () => {
    await provisioned()
    world.fails('DEADLINE_EXCEEDED', 2)
    world.start()
    await world.setIo({ iops: '700' })
    await untilEvent('VolumeModifyFailed')
    await world.setIo({ iops: '900' })
    await untilProvided({ iops: '900' })
    expect(world.modifyCalls().map(({ iops }) => iops)).toEqual(['700', '700', '700', '900'])
  })

  it('PIO-5 VAC-7 rollback undoes a modification whose response was lost', async () => {
    await provisioned()
    world.rules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    world.start()
    await world.setIo({ iops: '700' })
    await untilEvent('VolumeModifyFailed')
    expect(world.has()).toEqual({ iops: '700', throughput: '50' })
    await world.setIo({ iops: '500' })
    await untilProvided({ iops: '500' })
    expect(world.has()).toEqual({ iops: '500', throughput: '50' })
    expect((await io()).allocated).toEqual({ iops: '500' })
  })

  it('PIO-5 VAC-7 rollback to no amount undoes it too', async () => {
    await provisioned()
    world.rules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    world.start()
    await world.setIo({ iops: '700' })
    await untilEvent('VolumeModifyFailed')
    await world.setIo({ iops: null })
    await world.until(async () => !(await io()).statuses, 'the end')
    expect(world.has()).toEqual({ iops: '500', throughput: '50' })
    expect(await io()).toMatchObject({ capacity: { iops: '500' } })
    expect((await io()).allocated?.iops).toBeUndefined()
  })

  it('PIO-5 VAC-7 rollback from Failed makes no call', async () => {
    await provisioned()
    world.fails('OUT_OF_RANGE')
    world.start()
    await world.setIo({ iops: '99999' })
    await untilStatus('iops', 'ControllerModifyVolumeFailed')
    await world.setIo({ iops: '500' })
    await untilProvided({ iops: '500' })
    expect(world.modifyCalls()).toHaveLength(1)
    expect((await io()).allocated).toEqual({ iops: '500' })
    expect((await world.status()).conditions ?? []).toEqual([])
  })

  it('VAC-8 a driver without MODIFY_VOLUME: Pending, an event, no call', async () => {
    await provisioned({ settings: { controller: ['CREATE_DELETE_VOLUME'] } })
    world.start()
    await world.setIo({ iops: '700' })
    await untilStatus('iops', 'ControllerModifyVolumePending')
    expect(world.events).toHaveLength(1)
    expect(world.events[0]?.message).toContain('cannot modify the volume to iops 700, throughput 50Mi of the claim')
    expect((await io()).allocated).toBeUndefined()
  })
})

describe('a class together with the claim’s own amounts', () => {
  async function withClass(): Promise<void> {
    world = await aWorld()
    await world.aClass('tiered', { tier: 'hot' })
    await world.aClass('fast', { tier: 'hot', iops: '1000' })
    await world.aClaim('data', { className: 'tiered', io: { iops: '500' }, has: { tier: 'hot', iops: '500' } })
  }

  it('PIO-1 are sent in one call', async () => {
    await withClass()
    await world.aClass('cool', { tier: 'cool' })
    world.start()
    await world.patchClaim('data', {
      spec: { volumeAttributesClassName: 'cool', resources: { requests: { iops: '700', throughput: '70' } } },
    })
    await world.untilSettled('cool')
    expect(world.modifyCalls()).toEqual([{ tier: 'cool', iops: '700', throughput: '70' }])
    expect(world.reasons().sort()).toEqual(
      ['VolumeModify', 'VolumeModifyInProgress', 'VolumeModifySuccess', 'VolumeModifySuccessful'].sort(),
    )
    expect((await world.volume()).spec).toMatchObject({
      volumeAttributesClassName: 'cool',
      capacity: { iops: '700', throughput: '70Mi' },
    })
  })

  it('PIO-1 that contradict each other: Infeasible, an event that names both, no call, no timer', async () => {
    await withClass()
    const process = world.start()
    await world.setClass('fast')
    await untilEvent('VolumeModifyFailed')
    await world.settle()
    const status = await world.status()
    expect(status.modifyVolumeStatus).toEqual({ targetVolumeAttributesClassName: 'fast', status: 'Infeasible' })
    expect(status.allocatedResourceStatuses).toEqual({ iops: 'ControllerModifyVolumeFailed' })
    expect(status.conditions).toEqual([
      expect.objectContaining({ type: 'ModifyVolumeError', reason: 'InvalidArgument' }),
    ])
    expect(world.events[0]?.message).toMatch(/requests 500 iops.*says iops "1000"/)
    await world.server.clock.advance(3_600_000)
    await world.settle()
    expect(world.events).toHaveLength(1)
    expect(process.standing()?.is).toBe('stuck')
    expect(world.modifyCalls()).toEqual([])
    await world.setIo({ iops: '1000' })
    await world.untilSettled('fast')
    expect(world.modifyCalls()).toEqual([{ tier: 'hot', iops: '1000' }])
    expect((await io()).statuses).toBeUndefined()
  })

  it('PIO-1 does not mark an amount in effect as failed if it contradicts nothing', async () => {
    await withClass()
    world.start()
    await world.setIo({ throughput: '50' })
    await untilProvided({ throughput: '50Mi' })
    await world.setClass('fast')
    await untilEvent('VolumeModifyFailed')
    await world.settle()
    expect((await io()).statuses).toEqual({ iops: 'ControllerModifyVolumeFailed' })
    await world.setIo({ iops: null })
    await world.untilSettled('fast')
    expect(
      world.events
        .slice(-4)
        .map(({ message }) => message)
        .join(),
    ).not.toContain('throughput')
    expect(world.has()).toEqual({ tier: 'hot', iops: '1000', throughput: '50' })
  })

  it('PIO-1 clears the status when the contradiction is removed', async () => {
    await withClass()
    world.start()
    await world.setClass('fast')
    await untilEvent('VolumeModifyFailed')
    await world.setClass('tiered')
    await world.untilSettled('tiered')
    expect(world.modifyCalls()).toEqual([])
    expect(await io()).toMatchObject({ statuses: undefined, capacity: { iops: '500' } })
  })

  it.each<[string, object, object]>([
    ['the amount', { resources: { requests: { iops: '500' } } }, { tier: 'cool', iops: '500' }],
    ['the class', { volumeAttributesClassName: 'tiered' }, { tier: 'hot', iops: '700' }],
  ])(
    'PIO-1 VAC-7 of one edit %s is taken back after a lost reply: the other stays wanted',
    async (_which, back, has) => {
      await withClass()
      await world.aClass('cool', { tier: 'cool' })
      world.rules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
      world.start()
      await world.patchClaim('data', {
        spec: { volumeAttributesClassName: 'cool', resources: { requests: { iops: '700' } } },
      })
      await untilEvent('VolumeModifyFailed')
      await world.patchClaim('data', { spec: back })
      const { spec } = await world.claim()
      await world.until(async () => {
        const { capacity, statuses } = await io()
        return !statuses && capacity?.iops === spec?.resources?.requests?.iops
      }, 'the amount')
      await world.untilSettled(spec?.volumeAttributesClassName)
      expect(world.has()).toEqual(has)
    },
  )

  it('PIO-1 replaces an amount that is no longer requested by the class’s', async () => {
    world = await aWorld()
    await world.aClass('fast', { tier: 'hot', iops: '1000' })
    await world.aClaim('data', { className: 'fast', io: { iops: '1000' }, has: { tier: 'hot', iops: '1000' } })
    world.start()
    await world.setIo({ iops: null })
    await world.until(async () => (await io()).capacity?.iops === undefined, 'the claim to have none of its own')
    expect((await world.volume()).spec?.capacity).toEqual({ storage: '1Gi' })
    expect(await io()).toMatchObject({ allocated: undefined, statuses: undefined })
    expect(world.has()).toEqual({ tier: 'hot', iops: '1000' })
  })

  it('PIO-3 wait together for a missing class', async () => {
    await withClass()
    world.start()
    await world.patchClaim('data', {
      spec: { volumeAttributesClassName: 'later', resources: { requests: { iops: '700' } } },
    })
    await untilStatus('iops', 'ControllerModifyVolumePending')
    expect((await world.status()).modifyVolumeStatus).toEqual({ status: 'Pending' })
    expect((await io()).allocated).toBeUndefined()
    await world.aClass('later', { tier: 'late' })
    await world.untilSettled('later')
    expect(world.has()).toEqual({ tier: 'late', iops: '700' })
    expect((await io()).statuses).toBeUndefined()
  })
})
