// Tests the modification of the claim's own iops and throughput, alone and together with the attributes class.
import { afterEach, describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../api/feature-gates.ts'
import { createModifyingFixture, type ModifyingFixture, type ModifyingFixtureOptions } from './modifying.fixture.ts'

let fixture: ModifyingFixture
afterEach(() => fixture.close())

/** Creates a claim whose 500 iops and 50 MiB/s are requested and in effect. */
async function createFixtureWithIo(options: ModifyingFixtureOptions = {}): Promise<void> {
  fixture = await createModifyingFixture(options)
  await fixture.createClaim('data', {
    io: { iops: '500', throughput: '50' },
    attributes: { iops: '500', throughput: '50' },
  })
}

const readIo = async () => {
  const { capacity, allocatedResources, allocatedResourceStatuses } = await fixture.status()
  return { capacity, allocated: allocatedResources, statuses: allocatedResourceStatuses }
}
const waitForIo = (amounts: Readonly<Record<string, string>>) =>
  fixture.waitUntil(async () => {
    const { capacity, statuses } = await readIo()
    return !statuses && Object.entries(amounts).every(([name, amount]) => capacity?.[name] === amount)
  }, JSON.stringify(amounts))
const waitForStatus = (name: string, status: string) =>
  fixture.waitUntil(async () => (await readIo()).statuses?.[name] === status, `${name} ${status}`)
const waitForEvent = (reason: string, times = 1) =>
  fixture.waitUntil(
    () => fixture.eventReasons().filter((eventReason) => eventReason === reason).length >= times,
    `${times} × ${reason}`,
  )

describe('iops and throughput of a bound claim', () => {
  it('PIO-1 makes no call if the amounts are in effect', async () => {
    await createFixtureWithIo()
    fixture.start()
    await fixture.settle()
    expect(fixture.modifyCalls()).toEqual([])
    expect(fixture.events).toEqual([])
  })

  it.each([
    ['an increase', { iops: '800', throughput: '80' }, { iops: '800', throughput: '80Mi' }],
    ['a decrease', { iops: '100', throughput: '10Mi' }, { iops: '100', throughput: '10Mi' }],
    ['an increase and a decrease', { iops: '1k', throughput: '1' }, { iops: '1k', throughput: '1Mi' }],
  ])('PIO-1 PIO-4 applies %s: %j', async (_direction, requested, amounts) => {
    await createFixtureWithIo()
    fixture.start()
    await fixture.setIo(requested)
    await waitForIo(amounts)
    const expectedAttributes = {
      iops: String(Number(requested.iops.replace('k', '000'))),
      throughput: requested.throughput.replace('Mi', ''),
    }
    expect(fixture.driverAttributes()).toEqual(expectedAttributes)
    expect((await readIo()).allocated).toEqual(amounts)
    expect((await fixture.volume()).spec?.capacity).toEqual({ storage: '1Gi', ...amounts })
  })

  it('PIO-3 PIO-6 writes each step in one commit and records events', async () => {
    await createFixtureWithIo()
    fixture.setRules([{ effect: { do: 'hang' } }])
    const instance = fixture.start()
    await fixture.setIo({ iops: '800' })
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver call')
    expect(await readIo()).toMatchObject({
      capacity: { iops: '500', throughput: '50Mi' },
      allocated: { iops: '800' },
      statuses: { iops: 'ControllerModifyVolumeInProgress' },
    })
    expect((await fixture.status()).modifyVolumeStatus).toBeUndefined()
    fixture.fake.script.release()
    await waitForIo({ iops: '800' })
    expect(fixture.modifyCalls()).toEqual([{ iops: '800', throughput: '50' }])
    expect(fixture.events.map(({ type, reason, message }) => [type, reason, message])).toEqual([
      ['Normal', 'VolumeModifyInProgress', 'modifying volume data to iops 800'],
      ['Normal', 'VolumeModifySuccess', 'modified volume data to iops 800 successfully'],
    ])
    expect(instance.calls.filter((call) => call === 'commit')).toHaveLength(2)
    expect((await fixture.status()).conditions ?? []).toEqual([])
  })

  it('PIO-1 applies first amounts to a bound claim', async () => {
    fixture = await createModifyingFixture()
    await fixture.createClaim()
    fixture.start()
    await fixture.setIo({ throughput: '1000M' })
    await waitForIo({ throughput: '1G' })
    expect(fixture.driverAttributes()).toEqual({ throughput: '954' })
  })

  it("keeps an expansion's status", async () => {
    await createFixtureWithIo()
    const expansionStatus = {
      allocatedResources: { storage: '2Gi' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' },
    }
    await fixture.patchClaim('data', { status: expansionStatus }, 'status')
    fixture.start()
    await fixture.setIo({ iops: '800' })
    await fixture.waitUntil(async () => (await readIo()).capacity?.iops === '800', 'the amount to take effect')
    expect(await readIo()).toMatchObject({
      allocated: { storage: '2Gi', iops: '800' },
      statuses: { storage: 'ControllerResizeInProgress' },
    })
    expect((await readIo()).statuses).not.toHaveProperty('iops')
  })

  it('PIO-1 keeps amounts that are no longer requested in effect, and removes them from the allocated resources', async () => {
    await createFixtureWithIo()
    fixture.start()
    await fixture.setIo({ iops: '800' })
    await waitForIo({ iops: '800' })
    await fixture.setIo({ iops: null })
    await fixture.waitUntil(
      async () => (await readIo()).allocated?.iops === undefined,
      'the allocated amount to be removed',
    )
    expect(await readIo()).toMatchObject({ capacity: { iops: '800', throughput: '50Mi' } })
    expect(fixture.modifyCalls()).toHaveLength(1)
    expect(fixture.driverAttributes()).toEqual({ iops: '800', throughput: '50' })
  })
})

describe('a driver that fails', () => {
  it.each(['INVALID_ARGUMENT', 'OUT_OF_RANGE'] as const)(
    'PIO-5 sets Failed after %s, does not retry before slowRetryMs has passed, and applies other values immediately',
    async (code) => {
      await createFixtureWithIo()
      fixture.failCalls(code, 1)
      fixture.start()
      await fixture.setIo({ iops: '99999' })
      await waitForStatus('iops', 'ControllerModifyVolumeFailed')
      expect(await readIo()).toMatchObject({ capacity: { iops: '500' }, allocated: { iops: '99999' } })
      expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
      expect(fixture.eventReasons()).toEqual(['VolumeModifyInProgress', 'VolumeModifyFailed'])
      await fixture.server.clock.advance(290_000)
      await fixture.settle()
      expect(fixture.modifyCalls()).toHaveLength(1)
      await fixture.setIo({ iops: '700' })
      await fixture.settle()
      await waitForIo({ iops: '700' })
      expect(fixture.driverAttributes()).toEqual({ iops: '700', throughput: '50' })
    },
  )

  it('PIO-5 keeps InProgress after NOT_FOUND and retries with backoff', async () => {
    await createFixtureWithIo()
    fixture.failCalls('NOT_FOUND', 2)
    fixture.start()
    await fixture.setIo({ iops: '700' })
    await waitForEvent('VolumeModifyFailed')
    await fixture.settle()
    expect((await readIo()).statuses).toEqual({ iops: 'ControllerModifyVolumeInProgress' })
    await waitForIo({ iops: '700' })
    expect(fixture.modifyCalls()).toHaveLength(3)
  })

  it('PIO-5 sets Pending after FAILED_PRECONDITION and retries with backoff if no pod uses the volume or handlesInUse is false', async () => {
    await createFixtureWithIo()
    fixture.failCalls('FAILED_PRECONDITION', 2)
    const instance = fixture.start()
    await fixture.setIo({ iops: '700' })
    await waitForStatus('iops', 'ControllerModifyVolumePending')
    await waitForIo({ iops: '700' })
    expect(fixture.modifyCalls()).toHaveLength(3)
    await instance.stop()
    await fixture.createPod('user')
    fixture.failCalls('FAILED_PRECONDITION', 2)
    fixture.start({ options: { handlesInUse: false } })
    await fixture.setIo({ iops: '800' })
    await waitForIo({ iops: '800' })
    expect(fixture.modifyCalls()).toHaveLength(6)
  })

  it('PIO-5 sets Pending after FAILED_PRECONDITION while pods use the volume, and retries when the last pod has terminated', async () => {
    await createFixtureWithIo()
    await fixture.createPod('user')
    await fixture.createPod('terminated')
    await fixture.terminatePod('terminated')
    fixture.failCalls('FAILED_PRECONDITION')
    const instance = fixture.start()
    await fixture.setIo({ iops: '700' })
    await fixture.waitUntil(() => instance.queueState()?.is === 'stuck', 'the modification to wait for pods')
    expect(await readIo()).toMatchObject({
      statuses: { iops: 'ControllerModifyVolumePending' },
      capacity: { iops: '500' },
    })
    await fixture.server.clock.advance(3_600_000)
    await fixture.setIo({ iops: '800' })
    await fixture.settle()
    expect(fixture.modifyCalls()).toHaveLength(1)
    expect(fixture.events.map(({ reason }) => reason)).toEqual(['VolumeModifyInProgress', 'VolumeModifyFailed'])
    expect(fixture.events[1]?.message).toMatch(
      /^rpc error: code = FailedPrecondition .* retried when the last pod has terminated\.$/,
    )
    fixture.setRules([])
    await fixture.terminatePod('user')
    await fixture.settle()
    expect(await readIo()).toMatchObject({ capacity: { iops: '800' }, statuses: undefined })
    expect(fixture.driverAttributes()).toEqual({ iops: '800', throughput: '50' })
  })

  it('PIO-5 waits for the pod and records an event if the pod starts to use the volume after the rejection', async () => {
    await createFixtureWithIo()
    fixture.failCalls('FAILED_PRECONDITION')
    const instance = fixture.start()
    await fixture.setIo({ iops: '700' })
    await waitForStatus('iops', 'ControllerModifyVolumePending')
    await fixture.createPod('user')
    await fixture.waitUntil(() => instance.queueState()?.is === 'stuck', 'the modification to wait for pods')
    expect(fixture.events.at(-1)?.message).toMatch(/only while a volume is not in use, but pods use this one/)
  })

  it('PIO-5 VAC-7 rolls back without a call while a pod uses the volume', async () => {
    await createFixtureWithIo()
    await fixture.createPod('user')
    fixture.failCalls('FAILED_PRECONDITION')
    const instance = fixture.start()
    await fixture.setIo({ iops: '700' })
    await fixture.waitUntil(() => instance.queueState()?.is === 'stuck', 'the modification to wait for pods')
    await fixture.setIo({ iops: '500' })
    await fixture.settle()
    expect(await readIo()).toMatchObject({ capacity: { iops: '500' }, allocated: { iops: '500' }, statuses: undefined })
    expect((await fixture.status()).conditions ?? []).toEqual([])
    expect(fixture.modifyCalls()).toHaveLength(1)
  })

  it('PIO-5 waits for the pods before it applies a class together with an amount, but not before it applies a class alone', async () => {
    await createFixtureWithIo()
    await fixture.createClass('hot', { tier: 'hot' })
    await fixture.createPod('user')
    fixture.failCalls('FAILED_PRECONDITION', 1)
    const instance = fixture.start()
    await fixture.patchClaim('data', {
      spec: { volumeAttributesClassName: 'hot', resources: { requests: { iops: '700' } } },
    })
    await fixture.waitUntil(() => instance.queueState()?.is === 'stuck', 'the modification to wait for pods')
    expect((await fixture.status()).modifyVolumeStatus).toEqual({
      targetVolumeAttributesClassName: 'hot',
      status: 'Pending',
    })
    await fixture.setIo({ iops: '500' })
    await fixture.settle()
    await fixture.waitUntilSettled('hot')
    expect(fixture.driverAttributes()).toEqual({ tier: 'hot', iops: '500', throughput: '50' })
  })

  it("PIO-5 sets Failed and keeps the attributes if an amount is below the driver's minimum", async () => {
    await createFixtureWithIo()
    fixture.setRules([{ times: 1, effect: { do: 'fail', code: 'OUT_OF_RANGE', message: 'at least 100 iops' } }])
    fixture.start()
    await fixture.setIo({ iops: '1', throughput: '1' })
    await waitForStatus('iops', 'ControllerModifyVolumeFailed')
    expect((await readIo()).statuses).toEqual({
      iops: 'ControllerModifyVolumeFailed',
      throughput: 'ControllerModifyVolumeFailed',
    })
    expect(fixture.events.at(-1)).toMatchObject({ type: 'Warning', reason: 'VolumeModifyFailed' })
    expect(fixture.events.at(-1)?.message).toContain('at least 100 iops')
    expect((await fixture.volume()).spec?.capacity).toMatchObject({ iops: '500', throughput: '50Mi' })
    expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
  })

  it('PIO-5 requests another amount immediately after a call without a final response, and never the earlier one again', async () => {
    await createFixtureWithIo()
    fixture.failCalls('DEADLINE_EXCEEDED', 2)
    fixture.start()
    await fixture.setIo({ iops: '700' })
    await waitForEvent('VolumeModifyFailed')
    await fixture.setIo({ iops: '900' })
    await waitForIo({ iops: '900' })
    expect(fixture.modifyCalls().map(({ iops }) => iops)).toEqual(['700', '900', '900'])
  })

  it('PIO-5 VAC-7 rolls back a modification whose response was lost', async () => {
    await createFixtureWithIo()
    fixture.setRules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    fixture.start()
    await fixture.setIo({ iops: '700' })
    await waitForEvent('VolumeModifyFailed')
    expect(fixture.driverAttributes()).toEqual({ iops: '700', throughput: '50' })
    await fixture.setIo({ iops: '500' })
    await waitForIo({ iops: '500' })
    expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
    expect((await readIo()).allocated).toEqual({ iops: '500' })
  })

  it('PIO-5 VAC-7 rolls back a modification whose response was lost when the amount is no longer requested', async () => {
    await createFixtureWithIo()
    fixture.setRules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    fixture.start()
    await fixture.setIo({ iops: '700' })
    await waitForEvent('VolumeModifyFailed')
    await fixture.setIo({ iops: null })
    await fixture.waitUntil(async () => !(await readIo()).statuses, 'the modification to end')
    expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
    expect(await readIo()).toMatchObject({ capacity: { iops: '500' } })
    expect((await readIo()).allocated?.iops).toBeUndefined()
  })

  it('PIO-5 VAC-7 rolls back from Failed without a call', async () => {
    await createFixtureWithIo()
    fixture.failCalls('OUT_OF_RANGE')
    fixture.start()
    await fixture.setIo({ iops: '99999' })
    await waitForStatus('iops', 'ControllerModifyVolumeFailed')
    await fixture.setIo({ iops: '500' })
    await waitForIo({ iops: '500' })
    expect(fixture.modifyCalls()).toHaveLength(1)
    expect((await readIo()).allocated).toEqual({ iops: '500' })
    expect((await fixture.status()).conditions ?? []).toEqual([])
  })

  it('VAC-8 sets Pending and records an event, without a call, if the driver does not have MODIFY_VOLUME', async () => {
    await createFixtureWithIo({ settings: { controller: ['CREATE_DELETE_VOLUME'] } })
    fixture.start()
    await fixture.setIo({ iops: '700' })
    await waitForStatus('iops', 'ControllerModifyVolumePending')
    expect(fixture.events).toHaveLength(1)
    expect(fixture.events[0]?.message).toContain('cannot modify the volume to iops 700, throughput 50Mi of the claim')
    expect((await readIo()).allocated).toBeUndefined()
  })
})

describe("modifying a class together with the claim's own amounts", () => {
  async function createFixtureWithClassAndIo(): Promise<void> {
    fixture = await createModifyingFixture()
    await fixture.createClass('tiered', { tier: 'hot' })
    await fixture.createClass('fast', { tier: 'hot', iops: '1000' })
    await fixture.createClaim('data', {
      className: 'tiered',
      io: { iops: '500' },
      attributes: { tier: 'hot', iops: '500' },
    })
  }

  it('PIO-1 sends both in one call', async () => {
    await createFixtureWithClassAndIo()
    await fixture.createClass('cool', { tier: 'cool' })
    fixture.start()
    await fixture.patchClaim('data', {
      spec: { volumeAttributesClassName: 'cool', resources: { requests: { iops: '700', throughput: '70' } } },
    })
    await fixture.waitUntilSettled('cool')
    expect(fixture.modifyCalls()).toEqual([{ tier: 'cool', iops: '700', throughput: '70' }])
    expect(fixture.eventReasons().sort()).toEqual(
      ['VolumeModify', 'VolumeModifyInProgress', 'VolumeModifySuccess', 'VolumeModifySuccessful'].sort(),
    )
    expect((await fixture.volume()).spec).toMatchObject({
      volumeAttributesClassName: 'cool',
      capacity: { iops: '700', throughput: '70Mi' },
    })
  })

  it('PIO-1 sets Infeasible and records an event that names both, without a call or a timer, if they contradict each other', async () => {
    await createFixtureWithClassAndIo()
    const instance = fixture.start()
    await fixture.setClass('fast')
    await waitForEvent('VolumeModifyFailed')
    await fixture.settle()
    const status = await fixture.status()
    expect(status.modifyVolumeStatus).toEqual({ targetVolumeAttributesClassName: 'fast', status: 'Infeasible' })
    expect(status.allocatedResourceStatuses).toEqual({ iops: 'ControllerModifyVolumeFailed' })
    expect(status.conditions).toEqual([
      expect.objectContaining({ type: 'ModifyVolumeError', reason: 'InvalidArgument' }),
    ])
    expect(fixture.events[0]?.message).toMatch(/requests 500 iops.*specifies iops "1000"/)
    await fixture.server.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.events).toHaveLength(1)
    expect(instance.queueState()?.is).toBe('stuck')
    expect(fixture.modifyCalls()).toEqual([])
    await fixture.setIo({ iops: '1000' })
    await fixture.waitUntilSettled('fast')
    expect(fixture.modifyCalls()).toEqual([{ tier: 'hot', iops: '1000' }])
    expect((await readIo()).statuses).toBeUndefined()
  })

  it('PIO-1 does not mark an amount in effect as failed if it contradicts nothing', async () => {
    await createFixtureWithClassAndIo()
    fixture.start()
    await fixture.setIo({ throughput: '50' })
    await waitForIo({ throughput: '50Mi' })
    await fixture.setClass('fast')
    await waitForEvent('VolumeModifyFailed')
    await fixture.settle()
    expect((await readIo()).statuses).toEqual({ iops: 'ControllerModifyVolumeFailed' })
    await fixture.setIo({ iops: null })
    await fixture.waitUntilSettled('fast')
    expect(
      fixture.events
        .slice(-4)
        .map(({ message }) => message)
        .join(),
    ).not.toContain('throughput')
    expect(fixture.driverAttributes()).toEqual({ tier: 'hot', iops: '1000', throughput: '50' })
  })

  it('PIO-1 clears the status when the contradiction is removed', async () => {
    await createFixtureWithClassAndIo()
    fixture.start()
    await fixture.setClass('fast')
    await waitForEvent('VolumeModifyFailed')
    await fixture.setClass('tiered')
    await fixture.waitUntilSettled('tiered')
    expect(fixture.modifyCalls()).toEqual([])
    expect(await readIo()).toMatchObject({ statuses: undefined, capacity: { iops: '500' } })
  })

  it.each<[string, object, object]>([
    ['the amount', { resources: { requests: { iops: '500' } } }, { tier: 'cool', iops: '500' }],
    ['the class', { volumeAttributesClassName: 'tiered' }, { tier: 'hot', iops: '700' }],
  ])(
    'PIO-1 VAC-7 reverts only %s if a user reverts it after a lost response',
    async (_revertedPart, revertedSpec, driverAttributes) => {
      await createFixtureWithClassAndIo()
      await fixture.createClass('cool', { tier: 'cool' })
      fixture.setRules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
      fixture.start()
      await fixture.patchClaim('data', {
        spec: { volumeAttributesClassName: 'cool', resources: { requests: { iops: '700' } } },
      })
      await waitForEvent('VolumeModifyFailed')
      await fixture.patchClaim('data', { spec: revertedSpec })
      const { spec } = await fixture.claim()
      await fixture.waitUntil(async () => {
        const { capacity, statuses } = await readIo()
        return !statuses && capacity?.iops === spec?.resources?.requests?.iops
      }, 'the amount to take effect')
      await fixture.waitUntilSettled(spec?.volumeAttributesClassName)
      expect(fixture.driverAttributes()).toEqual(driverAttributes)
    },
  )

  it('PIO-4 reports the amounts that a new class sets as capacity, without allocated resources or their statuses', async () => {
    fixture = await createModifyingFixture()
    await fixture.createClass('fast', { tier: 'hot', iops: '1000', throughput: '80' })
    await fixture.createClass('slow', { tier: 'cold', iops: '100' })
    await fixture.createClaim()
    fixture.start()
    await fixture.setClass('fast')
    await fixture.waitUntilSettled('fast')
    const reportedCapacity = { storage: '1Gi', iops: '1k', throughput: '80Mi' }
    expect(await readIo()).toEqual({ capacity: reportedCapacity, allocated: undefined, statuses: undefined })
    expect((await fixture.volume()).spec?.capacity).toEqual(reportedCapacity)
    await fixture.setClass('slow')
    await fixture.waitUntilSettled('slow')
    await fixture.settle()
    expect((await readIo()).capacity).toEqual({ ...reportedCapacity, iops: '100' }) // the class does not change the throughput
    expect(fixture.modifyCalls()).toHaveLength(2)
    expect(fixture.eventReasons().filter((reason) => reason === 'VolumeModifySuccess')).toEqual([])
  })

  it('PIO-4 VAC-12 updates reported amounts for a new class even if VolumeProvisionedIO was disabled after the report', async () => {
    fixture = await createModifyingFixture()
    await fixture.createClass('fast', { iops: '1000' })
    await fixture.createClass('slow', { iops: '100' })
    await fixture.createClaim()
    const firstProcess = fixture.start()
    await fixture.setClass('fast')
    await fixture.waitUntilSettled('fast')
    expect((await readIo()).capacity).toEqual({ storage: '1Gi', iops: '1k' })
    await firstProcess.stop()
    fixture.start({ gates: parseFeatureGates('VolumeProvisionedIO=false') })
    await fixture.setClass('slow')
    await fixture.waitUntilSettled('slow')
    expect((await readIo()).capacity).toEqual({ storage: '1Gi', iops: '100' })
    expect((await fixture.volume()).spec?.capacity).toEqual({ storage: '1Gi', iops: '100' })
  })

  it('PIO-1 PIO-4 replaces an amount that is no longer requested with the amount of the class, and reports it', async () => {
    fixture = await createModifyingFixture()
    await fixture.createClass('fast', { tier: 'hot', iops: '1000' })
    await fixture.createClaim('data', {
      className: 'fast',
      io: { iops: '1000' },
      attributes: { tier: 'hot', iops: '1000' },
    })
    fixture.start()
    await fixture.setIo({ iops: null })
    await fixture.waitUntil(
      async () => (await readIo()).allocated?.iops === undefined,
      'the allocated amount to be removed',
    )
    const capacity = { storage: '1Gi', iops: '1k' }
    expect((await fixture.volume()).spec?.capacity).toEqual(capacity)
    expect(await readIo()).toMatchObject({ capacity, allocated: undefined, statuses: undefined })
    expect(fixture.driverAttributes()).toEqual({ tier: 'hot', iops: '1000' })
  })

  it('PIO-3 applies neither the class nor the amounts while the class is missing', async () => {
    await createFixtureWithClassAndIo()
    fixture.start()
    await fixture.patchClaim('data', {
      spec: { volumeAttributesClassName: 'later', resources: { requests: { iops: '700' } } },
    })
    await waitForStatus('iops', 'ControllerModifyVolumePending')
    expect((await fixture.status()).modifyVolumeStatus).toEqual({ status: 'Pending' })
    expect((await readIo()).allocated).toBeUndefined()
    await fixture.createClass('later', { tier: 'late' })
    await fixture.waitUntilSettled('later')
    expect(fixture.driverAttributes()).toEqual({ tier: 'late', iops: '700' })
    expect((await readIo()).statuses).toBeUndefined()
  })
})

describe('modifying a class on other API servers', () => {
  it('PIO-4 SYS-5 does not report the amounts of the class', async () => {
    fixture = await createModifyingFixture()
    await fixture.createClass('fast', { iops: '1000' })
    await fixture.createClaim()
    fixture.start({ isAtomic: false })
    await fixture.setClass('fast')
    await fixture.waitUntilSettled('fast')
    expect((await readIo()).capacity).toEqual({ storage: '1Gi' })
    expect((await fixture.volume()).spec?.capacity).toEqual({ storage: '1Gi' })
  })
})
