// Tests the modification of the attributes class on a real API server with a fake CSI driver. provisioned-io.test.ts tests
// iops and throughput.
import { afterEach, describe, expect, it } from 'vitest'
import { createModifyingFixture, type ModifyingFixture, type ModifyingFixtureOptions } from './modifying.fixture.ts'
import { ATTRIBUTES_ANNOTATION, UNDO_ANNOTATION } from './undo.ts'

let fixture: ModifyingFixture
afterEach(() => fixture.close())

/** Creates a claim with the class silver, and the class gold. */
async function createFixtureWithSilver(options: ModifyingFixtureOptions = {}): Promise<void> {
  fixture = await createModifyingFixture(options)
  await fixture.createClass('silver', { iops: '500', throughput: '50' })
  await fixture.createClass('gold', { iops: '1000', throughput: '100' })
  await fixture.createClaim('data', { className: 'silver', attributes: { iops: '500', throughput: '50' } })
}

/** Creates a claim without a class, and the class gold. */
async function createFixtureWithoutClass(options: ModifyingFixtureOptions = {}): Promise<void> {
  fixture = await createModifyingFixture(options)
  await fixture.createClass('gold', { iops: '1000', throughput: '100' })
  await fixture.createClaim('data', { attributes: { iops: '1', throughput: '1' } })
}

const readConditions = async () =>
  Object.fromEntries(((await fixture.status()).conditions ?? []).map((condition) => [condition.type, condition]))
const waitForStatus = (status: string) =>
  fixture.waitUntil(async () => (await fixture.status()).modifyVolumeStatus?.status === status, status)
const waitForEvent = (reason: string, count = 1) =>
  fixture.waitUntil(
    () => fixture.eventReasons().filter((eventReason) => eventReason === reason).length >= count,
    `${count} × ${reason}`,
  )

describe("modifying a bound claim's class", () => {
  it('VAC-5 neither calls the driver nor writes if the class is in effect', async () => {
    await createFixtureWithSilver()
    const claimBefore = await fixture.claim()
    fixture.start()
    await fixture.settle()
    expect(fixture.modifyCalls()).toEqual([])
    expect(await fixture.claim()).toEqual(claimBefore)
    expect(fixture.events).toEqual([])
  })

  it('VAC-5 calls the driver with the parameters of the class and updates the volume and the claim', async () => {
    await createFixtureWithSilver()
    const instance = fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntilSettled('gold')
    expect(fixture.modifyCalls()).toEqual([{ iops: '1000', throughput: '100' }])
    expect(fixture.driverAttributes()).toEqual({ iops: '1000', throughput: '100' })
    expect((await fixture.volume()).spec?.volumeAttributesClassName).toBe('gold')
    expect((await fixture.claim()).metadata.annotations?.[UNDO_ANNOTATION]).toBeUndefined()
    expect(fixture.events.map(({ type, reason, message }) => [type, reason, message])).toEqual([
      ['Normal', 'VolumeModify', 'external resizer is modifying volume data with vac gold'],
      ['Normal', 'VolumeModifySuccessful', 'external resizer modified volume data with vac gold successfully'],
    ])
    // One commit for the intent, and one for the volume and the claim together.
    expect(instance.calls.filter((call) => call === 'commit')).toHaveLength(2)
    expect(instance.calls).not.toContain('patch')
  })

  it('VAC-5 writes the target to the status before the driver is called', async () => {
    await createFixtureWithSilver()
    fixture.setRules([{ effect: { do: 'hang' } }])
    fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver call')
    const status = await fixture.status()
    expect(status.modifyVolumeStatus).toEqual({ targetVolumeAttributesClassName: 'gold', status: 'InProgress' })
    expect(status.currentVolumeAttributesClassName).toBe('silver')
    expect(status.conditions).toEqual([
      expect.objectContaining({
        type: 'ModifyingVolume',
        status: 'True',
        message: 'Modifying volume to "gold" is in progress.',
      }),
    ])
    expect(JSON.parse((await fixture.claim()).metadata.annotations?.[UNDO_ANNOTATION] ?? '')).toEqual({
      iops: '500',
      throughput: '50',
    })
    fixture.fake.script.release()
    await fixture.waitUntilSettled('gold')
  })

  it('VAC-5 applies a first class to a claim without one', async () => {
    await createFixtureWithoutClass()
    fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntilSettled('gold')
    expect(fixture.driverAttributes()).toEqual({ iops: '1000', throughput: '100' })
    expect((await fixture.volume()).spec?.volumeAttributesClassName).toBe('gold')
  })

  it('sends the names of the claim and the volume with extraModifyMetadata', async () => {
    await createFixtureWithSilver()
    fixture.start({ options: { extraModifyMetadata: true } })
    await fixture.setClass('gold')
    await fixture.waitUntilSettled('gold')
    expect(fixture.modifyCalls()).toEqual([
      {
        iops: '1000',
        throughput: '100',
        'csi.storage.k8s.io/pvc/name': 'data',
        'csi.storage.k8s.io/pvc/namespace': 'default',
        'csi.storage.k8s.io/pv/name': 'data',
      },
    ])
    expect(JSON.parse((await fixture.volume()).metadata.annotations?.[ATTRIBUTES_ANNOTATION] ?? '')).toEqual({
      class: 'gold',
      attributes: { iops: '1000', throughput: '100' },
    })
  })

  it('ignores volumes of other drivers, unbound claims, and volumes of another claim', async () => {
    await createFixtureWithSilver()
    await fixture.createClaim('foreign', { csi: { driver: 'other.example.com' } })
    await fixture.createClaim('unbound')
    await fixture.createClaim('stranger')
    for (const name of ['foreign', 'unbound', 'stranger']) await fixture.setClass('gold', name)
    await fixture.patchClaim('unbound', { status: { phase: 'Lost' } }, 'status')
    const claimRef = { namespace: 'default', name: 'stranger', uid: 'another' }
    await fixture.server.patch('/api/v1/persistentvolumes/stranger', { spec: { claimRef } }, 'merge')
    fixture.start()
    await fixture.settle()
    expect(fixture.modifyCalls()).toEqual([])
    expect(fixture.events).toEqual([])
  })

  it('ignores volumes without a CSI driver and missing volumes', async () => {
    await createFixtureWithSilver()
    await fixture.createClaim('plain')
    await fixture.createClaim('early')
    const plainVolume = await fixture.volume('plain')
    for (const name of ['plain', 'early']) {
      await fixture.server.patch(`/api/v1/persistentvolumes/${name}`, { metadata: { finalizers: null } }, 'merge')
      await fixture.server.delete(`/api/v1/persistentvolumes/${name}`)
    }
    const { csi: _csi, ...spec } = plainVolume.spec!
    const hostPath = { path: '/srv' }
    const response = await fixture.server.post('/api/v1/persistentvolumes', {
      metadata: { name: 'plain' },
      spec: { ...spec, hostPath },
    })
    expect(response.status).toBe(201)
    for (const name of ['plain', 'early']) await fixture.setClass('gold', name)
    fixture.start()
    await fixture.settle()
    expect(fixture.modifyCalls()).toEqual([])
    expect(fixture.events).toEqual([])
    expect((await fixture.status('early')).modifyVolumeStatus).toBeUndefined()
  })

  it('VAC-5 VAC-9 finishes a modification to a class that is being deleted', async () => {
    await createFixtureWithSilver()
    fixture.setRules([{ effect: { do: 'fail', code: 'UNAVAILABLE' }, times: 2 }])
    fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    const response = await fixture.server.delete('/apis/storage.k8s.io/v1/volumeattributesclasses/gold')
    expect(response.json.metadata.deletionTimestamp).toBeDefined()
    await fixture.waitUntilSettled('gold')
    expect(fixture.driverAttributes()).toEqual({ iops: '1000', throughput: '100' })
  })

  it('reads secrets from annotations, the storage class, or controllerExpandSecretRef', async () => {
    await createFixtureWithSilver({ settings: { secretKeys: [] } })
    const createSecret = (name: string) =>
      fixture.server.post('/api/v1/namespaces/kube-system/secrets', {
        metadata: { name },
        data: { [name]: Buffer.from('hunter2hunter2').toString('base64') },
      })
    for (const name of ['written', 'named', 'grow']) await createSecret(name)
    await fixture.server.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'fast' },
      provisioner: 'disks.example.com',
      parameters: {
        'csi.storage.k8s.io/controller-modify-secret-name': 'named',
        'csi.storage.k8s.io/controller-modify-secret-namespace': 'kube-system',
      },
    })
    const csi = { controllerExpandSecretRef: { name: 'grow', namespace: 'kube-system' } }
    await fixture.createClaim('a', {
      csi,
      storageClassName: 'fast',
      annotations: {
        'volume.kubernetes.io/controller-modify-secret-name': 'written',
        'volume.kubernetes.io/controller-modify-secret-namespace': 'kube-system',
      },
    })
    await fixture.createClaim('b', { csi, storageClassName: 'fast' })
    await fixture.createClaim('c', { csi })
    fixture.start()
    for (const name of ['a', 'b', 'c']) {
      await fixture.setClass('gold', name)
      await fixture.waitUntilSettled('gold', name)
    }
    const calls = fixture.fake.record.calls.filter(({ method }) => method === 'ControllerModifyVolume')
    expect(calls.map(({ volume, secretKeys }) => [volume, secretKeys])).toEqual([
      ['a', ['written']],
      ['b', ['named']],
      ['c', ['grow']],
    ])
  })

  it('records an event and retries if a secret is missing', async () => {
    await createFixtureWithSilver()
    await fixture.createClaim('locked', {
      csi: { controllerExpandSecretRef: { name: 'grow', namespace: 'kube-system' } },
    })
    fixture.start()
    await fixture.setClass('gold', 'locked')
    await waitForEvent('VolumeModifyFailed')
    expect(fixture.events[0]?.message).toContain('error getting secret grow in namespace kube-system')
    expect((await fixture.status('locked')).modifyVolumeStatus).toBeUndefined()
    expect(fixture.modifyCalls()).toEqual([])
    await fixture.server.post('/api/v1/namespaces/kube-system/secrets', { metadata: { name: 'grow' }, data: {} })
    await fixture.waitUntilSettled('gold', 'locked')
  })
})

describe('a modification that cannot start', () => {
  it('VAC-6 waits for a missing class, records one event, and starts when it is created', async () => {
    await createFixtureWithSilver()
    const instance = fixture.start()
    await fixture.setClass('platinum')
    await waitForStatus('Pending')
    expect((await fixture.status()).modifyVolumeStatus).toEqual({ status: 'Pending' })
    expect((await fixture.status()).conditions).toMatchObject([
      {
        type: 'ModifyingVolume',
        status: 'True',
        reason: 'Pending',
        message: 'Modifying volume to "platinum" is pending: VAC "platinum" does not exist.',
      },
    ])
    expect(fixture.events.map(({ reason, message }) => [reason, message])).toEqual([
      ['VolumeModifyFailed', 'VAC "platinum" does not exist.'],
    ])
    await fixture.server.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.events).toHaveLength(1)
    expect(instance.queueState()).toMatchObject({ is: 'stuck', message: 'VAC "platinum" does not exist.' })
    expect(fixture.modifyCalls()).toEqual([])
    await fixture.createClass('platinum', { iops: '9' })
    await fixture.settle()
    await fixture.waitUntilSettled('platinum')
    expect(fixture.driverAttributes()).toEqual({ iops: '9', throughput: '50' })
  })

  it('VAC-6 keeps the earlier target in the status while the next class is missing', async () => {
    await createFixtureWithSilver()
    fixture.failCalls('INTERNAL')
    fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    const { conditions: conditionsBefore } = await fixture.status()
    await fixture.setClass('platinum')
    await waitForStatus('Pending')
    const status = await fixture.status()
    expect(status.modifyVolumeStatus).toEqual({ targetVolumeAttributesClassName: 'gold', status: 'Pending' })
    expect(status.conditions?.map(({ type }) => type)).toEqual(conditionsBefore?.map(({ type }) => type))
    expect(status.currentVolumeAttributesClassName).toBe('silver')
    expect((await fixture.volume()).spec?.volumeAttributesClassName).toBe('silver')
  })

  it('VAC-6 changes from Infeasible to Pending, keeps the earlier error and stops retrying', async () => {
    await createFixtureWithSilver()
    fixture.failCalls('INVALID_ARGUMENT')
    fixture.start()
    await fixture.setClass('gold')
    await waitForStatus('Infeasible')
    await fixture.setClass('platinum')
    await waitForStatus('Pending')
    expect((await fixture.status()).modifyVolumeStatus).toEqual({
      targetVolumeAttributesClassName: 'gold',
      status: 'Pending',
    })
    expect(Object.keys(await readConditions()).sort()).toEqual(['ModifyVolumeError', 'ModifyingVolume'])
    await fixture.server.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.modifyCalls()).toHaveLength(1)
    expect(fixture.events.at(-1)?.message).toBe('VAC "platinum" does not exist.')
  })

  it('VAC-6 repeats no event after a restart', async () => {
    await createFixtureWithSilver()
    const firstProcess = fixture.start()
    await fixture.setClass('platinum')
    await waitForStatus('Pending')
    await firstProcess.stop()
    fixture.start()
    await fixture.settle()
    expect(fixture.events).toHaveLength(1)
  })

  it('VAC-6 records another event for another missing class', async () => {
    await createFixtureWithSilver()
    fixture.start()
    await fixture.setClass('platinum')
    await waitForStatus('Pending')
    await fixture.setClass('iridium')
    await waitForEvent('VolumeModifyFailed', 2)
    expect(fixture.events[1]?.message).toBe('VAC "iridium" does not exist.')
  })

  it('VAC-8 records an event, is Infeasible and makes no call for a class of another driver', async () => {
    await createFixtureWithSilver()
    await fixture.createClass('foreign', { iops: '9' }, 'other.example.com')
    fixture.start()
    await fixture.setClass('foreign')
    await waitForStatus('Infeasible')
    await fixture.settle()
    expect(fixture.events).toHaveLength(1)
    expect(fixture.events[0]).toMatchObject({ type: 'Warning', reason: 'VolumeModifyFailed' })
    expect(fixture.events[0]?.message).toContain(
      'VAC foreign referenced in PVC is for driver other.example.com which does not match driver name disks.example.com',
    )
    expect(fixture.modifyCalls()).toEqual([])
    await fixture.setClass('gold')
    await fixture.waitUntilSettled('gold')
  })

  it('VAC-8 records an event and makes no call for a driver without MODIFY_VOLUME', async () => {
    await createFixtureWithSilver({ settings: { controller: ['CREATE_DELETE_VOLUME'] } })
    fixture.start()
    await fixture.setClass('gold')
    await waitForStatus('Pending')
    await fixture.settle()
    expect(fixture.events).toHaveLength(1)
    expect(fixture.events[0]?.message).toContain('controller MODIFY_VOLUME capability is not reported')
    expect(fixture.modifyCalls()).toEqual([])
    await fixture.setClass('silver')
    await fixture.waitUntilSettled('silver')
    expect(fixture.modifyCalls()).toEqual([])
  })

  it('SYS-15 waits while the server does not serve classes', async () => {
    const versions = ['v1', 'v1beta1', 'v1alpha1']
    const disabledResources = versions.map((version) => `storage.k8s.io/${version}/volumeattributesclasses=false`)
    fixture = await createModifyingFixture({ runtimeConfig: disabledResources.join(',') })
    await fixture.createClaim()
    const instance = fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntil(() => instance.queueState()?.is === 'waiting', 'the claim to wait')
    expect((await fixture.status()).modifyVolumeStatus).toBeUndefined()
    expect(fixture.events).toEqual([])
  })
})

describe('a driver that fails', () => {
  it('VAC-6 sets Infeasible after INVALID_ARGUMENT and retries after slowRetryMs', async () => {
    await createFixtureWithSilver()
    fixture.failCalls('INVALID_ARGUMENT', 2)
    fixture.start()
    await fixture.setClass('gold')
    await waitForStatus('Infeasible')
    expect((await fixture.status()).modifyVolumeStatus).toEqual({
      targetVolumeAttributesClassName: 'gold',
      status: 'Infeasible',
    })
    expect(await readConditions()).toMatchObject({
      ModifyingVolume: { message: 'Modifying volume to "gold" failed. Waiting for retry.' },
      ModifyVolumeError: {
        reason: 'InvalidArgument',
        message: 'ControllerModifyVolume failed because of a fault rule',
      },
    })
    expect((await fixture.status()).currentVolumeAttributesClassName).toBe('silver')
    expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
    await fixture.server.clock.advance(299_000)
    await fixture.settle()
    expect(fixture.modifyCalls()).toHaveLength(1)
    await fixture.server.clock.advance(2_000)
    await waitForEvent('VolumeModify', 2)
    expect(fixture.modifyCalls()).toHaveLength(2)
    expect((await readConditions()).ModifyVolumeError?.reason).toBe('InvalidArgument') // until the modification succeeds
    await fixture.settle()
    await fixture.server.clock.advance(301_000)
    await waitForEvent('VolumeModifySuccessful')
    expect(fixture.modifyCalls()).toHaveLength(3)
    await fixture.waitUntilSettled('gold')
  })

  it('VAC-6 keeps InProgress after another final error and retries with backoff', async () => {
    await createFixtureWithSilver()
    fixture.failCalls('INTERNAL', 2)
    fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    await fixture.settle()
    expect((await fixture.status()).modifyVolumeStatus?.status).toBe('InProgress')
    expect(await readConditions()).toMatchObject({
      ModifyingVolume: { message: 'Modifying volume to "gold" failed. Waiting for retry.' },
      ModifyVolumeError: { reason: 'Internal' },
    })
    expect(fixture.events.at(-1)?.message).toBe(
      'rpc error: code = Internal desc = ControllerModifyVolume failed because of a fault rule',
    )
    await fixture.waitUntilSettled('gold')
    expect(fixture.modifyCalls()).toHaveLength(3)
  })

  it.each([
    ['NOT_FOUND', 'NotFound'],
    ['OUT_OF_RANGE', 'OutOfRange'],
    ['FAILED_PRECONDITION', 'FailedPrecondition'],
    ['UNKNOWN', 'Unknown'],
    ['ALREADY_EXISTS', 'AlreadyExists'],
    ['PERMISSION_DENIED', 'PermissionDenied'],
    ['UNIMPLEMENTED', 'Unimplemented'],
    ['DATA_LOSS', 'DataLoss'],
    ['UNAUTHENTICATED', 'Unauthenticated'],
  ] as const)('VAC-6 keeps InProgress after %s and applies another class immediately', async (code, reason) => {
    await createFixtureWithSilver()
    await fixture.createClass('bronze', { iops: '5', throughput: '50' })
    fixture.failCalls(code, 1)
    fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    await fixture.settle()
    expect((await fixture.status()).modifyVolumeStatus).toEqual({
      targetVolumeAttributesClassName: 'gold',
      status: 'InProgress',
    })
    expect(await readConditions()).toMatchObject({
      ModifyingVolume: { message: 'Modifying volume to "gold" failed. Waiting for retry.' },
      ModifyVolumeError: { reason },
    })
    await fixture.setClass('bronze')
    await fixture.settle()
    expect((await fixture.status()).currentVolumeAttributesClassName).toBe('bronze')
    expect(fixture.modifyCalls().map(({ iops }) => iops)).toEqual(['1000', '5'])
  })

  it('VAC-6 retries after an error without a code and does not change the status', async () => {
    await createFixtureWithSilver()
    const modify = fixture.fake.controller.controllerModifyVolume
    let failures = 2
    Object.assign(fixture.fake.controller, {
      controllerModifyVolume(...args: Parameters<typeof modify>) {
        if (failures-- > 0) throw new Error('the pipe broke')
        return modify(...args)
      },
    })
    fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntil(() => failures === 1, 'the first attempt')
    await fixture.settle()
    const status = await fixture.status()
    expect(status.modifyVolumeStatus).toEqual({ targetVolumeAttributesClassName: 'gold', status: 'InProgress' })
    expect(status.currentVolumeAttributesClassName).toBe('silver')
    await fixture.waitUntilSettled('gold')
    expect(fixture.eventReasons()).toEqual(['VolumeModify', 'VolumeModifySuccessful'])
  })

  it.each(['CANCELLED', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'ABORTED', 'UNAVAILABLE'] as const)(
    'VAC-6 reports the modification as still in progress after %s',
    async (code) => {
      await createFixtureWithSilver()
      fixture.failCalls(code, 1)
      fixture.start()
      await fixture.setClass('gold')
      await waitForEvent('VolumeModifyFailed')
      await fixture.settle()
      expect((await fixture.status()).modifyVolumeStatus?.status).toBe('InProgress')
      expect((await readConditions()).ModifyingVolume?.message).toBe('Modifying volume to "gold" is still in progress.')
      expect(fixture.events.at(-1)?.message).toMatch(/\. Still modifying to VAC gold$/)
      await fixture.waitUntilSettled('gold')
    },
  )

  it('VAC-6 applies another class immediately after an infeasible one', async () => {
    await createFixtureWithSilver()
    await fixture.createClass('bronze', { iops: '5' })
    fixture.failCalls('INVALID_ARGUMENT', 1)
    fixture.start()
    await fixture.setClass('gold')
    await waitForStatus('Infeasible')
    await fixture.setClass('bronze')
    await fixture.settle()
    await fixture.waitUntilSettled('bronze')
    expect(fixture.driverAttributes()).toEqual({ iops: '5', throughput: '50' })
  })

  for (const code of ['RESOURCE_EXHAUSTED', 'UNAVAILABLE', 'ABORTED'] as const) {
    it(`VAC-6 requests another class immediately after ${code}, and never the earlier one again`, async () => {
      await createFixtureWithSilver()
      await fixture.createClass('bronze', { iops: '5' })
      fixture.failCalls(code)
      fixture.start()
      await fixture.setClass('gold')
      await waitForEvent('VolumeModifyFailed')
      await fixture.settle()
      const callsBefore = fixture.modifyCalls().length
      await fixture.setClass('bronze')
      await fixture.settle()
      expect(fixture.modifyCalls().length).toBeGreaterThan(callsBefore)
      fixture.setRules([])
      await fixture.waitUntilSettled('bronze')
      // gold may have set throughput: the call restores it together with the new class.
      for (const call of fixture.modifyCalls().slice(callsBefore)) expect(call).toEqual({ iops: '5', throughput: '50' })
      expect((await fixture.volume()).spec?.volumeAttributesClassName).toBe('bronze')
      expect(fixture.driverAttributes()).toEqual({ iops: '5', throughput: '50' })
    })

    it(`VAC-7 restores the class in effect immediately after ${code}`, async () => {
      await createFixtureWithSilver()
      fixture.failCalls(code, 1)
      fixture.start()
      await fixture.setClass('gold')
      await waitForEvent('VolumeModifyFailed')
      await fixture.setClass('silver')
      await fixture.waitUntilSettled('silver')
      expect(fixture.modifyCalls()).toEqual([
        { iops: '1000', throughput: '100' },
        { iops: '500', throughput: '50' },
      ])
    })
  }

  it('VAC-6 requests the class that the claim names after a restart', async () => {
    await createFixtureWithSilver()
    await fixture.createClass('bronze', { iops: '5' })
    fixture.failCalls('UNAVAILABLE')
    const firstProcess = fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    await firstProcess.stop()
    const callsBefore = fixture.modifyCalls().length
    await fixture.setClass('bronze')
    fixture.setRules([])
    fixture.start()
    await fixture.waitUntilSettled('bronze')
    expect(fixture.modifyCalls().slice(callsBefore)).toEqual([{ iops: '5', throughput: '50' }])
  })

  it("keeps a condition's transition time while its reason is the same", async () => {
    await createFixtureWithSilver()
    fixture.setRules([
      { nth: 1, effect: { do: 'fail', code: 'INTERNAL', message: 'one' } },
      { nth: 2, effect: { do: 'fail', code: 'INTERNAL', message: 'two' } },
      { nth: 3, effect: { do: 'fail', code: 'INTERNAL', message: 'three' } },
      { nth: 4, effect: { do: 'fail', code: 'PERMISSION_DENIED', message: 'four' } },
    ])
    fixture.start()
    await fixture.setClass('gold')
    const transitionTimes: (string | undefined)[] = []
    const probeTimes: (string | undefined)[] = []
    for (const message of ['one', 'two', 'three', 'four']) {
      await fixture.waitUntil(async () => (await readConditions()).ModifyVolumeError?.message === message, message)
      const { lastTransitionTime, lastProbeTime } = (await readConditions()).ModifyVolumeError ?? {}
      transitionTimes.push(lastTransitionTime)
      probeTimes.push(lastProbeTime)
    }
    expect(transitionTimes[2]).toBe(transitionTimes[0])
    expect(transitionTimes[3]).not.toBe(transitionTimes[0])
    expect(probeTimes[2]).not.toBe(probeTimes[0])
  })

  it('keeps conditions of other types', async () => {
    await createFixtureWithSilver()
    const resizingCondition = { type: 'Resizing', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }
    await fixture.patchClaim('data', { status: { conditions: [resizingCondition] } }, 'status')
    fixture.failCalls('INTERNAL', 1)
    fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifySuccessful')
    expect((await fixture.status()).conditions?.map(({ type }) => type)).toEqual(['Resizing'])
  })

  it('does not write a repeated error again', async () => {
    await createFixtureWithSilver()
    fixture.failCalls('INTERNAL', 5)
    const instance = fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntilSettled('gold')
    expect(fixture.modifyCalls()).toHaveLength(6)
    expect(instance.calls.filter((call) => call === 'commit')).toHaveLength(3)
  })

  it('PROV-16 strips secrets in driver errors from events and status', async () => {
    await createFixtureWithSilver()
    const data = { key: Buffer.from('hunter2hunter2').toString('base64') }
    await fixture.server.post('/api/v1/namespaces/kube-system/secrets', { metadata: { name: 'grow' }, data })
    await fixture.createClaim('locked', {
      csi: { controllerExpandSecretRef: { name: 'grow', namespace: 'kube-system' } },
    })
    fixture.setRules([{ effect: { do: 'fail', code: 'INTERNAL', message: 'no entry with hunter2hunter2' } }])
    fixture.start()
    await fixture.setClass('gold', 'locked')
    await waitForEvent('VolumeModifyFailed')
    await fixture.settle()
    expect(JSON.stringify([fixture.events, await fixture.claim('locked')])).not.toContain('hunter2')
  })
})

describe('writes that fail', () => {
  it('VAC-5 reads the claim again after a conflict, and records no failure', async () => {
    await createFixtureWithSilver()
    await fixture.createClass('bronze', { iops: '5' })
    let conflicts = 1
    fixture.start({
      async intercept(verb) {
        if (verb === 'commit' && conflicts-- > 0) await fixture.setClass('bronze')
      },
    })
    await fixture.setClass('gold')
    await fixture.waitUntilSettled('bronze')
    expect(fixture.modifyCalls()).toEqual([{ iops: '5' }])
    expect(fixture.eventReasons()).toEqual(['VolumeModify', 'VolumeModifySuccessful'])
  })

  it('VAC-5 repeats the call if the server fails before the result is saved', async () => {
    await createFixtureWithSilver()
    let commits = 0
    fixture.start({
      intercept(verb) {
        if (verb === 'commit' && ++commits === 2) throw new Error('the server is gone')
      },
    })
    await fixture.setClass('gold')
    await fixture.waitUntilSettled('gold')
    expect(fixture.modifyCalls()).toHaveLength(2)
    expect(fixture.eventReasons()).toEqual(['VolumeModify', 'VolumeModifySuccessful'])
  })

  it("VAC-5 saves the volume's attributes if the claim is deleted during the call", async () => {
    await createFixtureWithSilver()
    fixture.setRules([{ effect: { do: 'hang' } }])
    fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver call')
    await fixture.patchClaim('data', { metadata: { finalizers: null } })
    await fixture.server.delete('/api/v1/namespaces/default/persistentvolumeclaims/data')
    fixture.fake.script.release()
    await fixture.waitUntil(
      async () => (await fixture.volume()).spec?.volumeAttributesClassName === 'gold',
      'the volume to have the class gold',
    )
    expect(fixture.driverAttributes()).toEqual({ iops: '1000', throughput: '100' })
  })
})

describe('rollback', () => {
  it('VAC-7 from Pending clears the status without a call', async () => {
    await createFixtureWithSilver()
    fixture.start()
    await fixture.setClass('platinum')
    await waitForStatus('Pending')
    await fixture.setClass('silver')
    await fixture.waitUntilSettled('silver')
    expect(fixture.modifyCalls()).toEqual([])
    expect(fixture.eventReasons()).toEqual(['VolumeModifyFailed', 'VolumeModifyCanceled'])
  })

  it('VAC-7 from Infeasible clears the status without a call and stops retrying', async () => {
    await createFixtureWithSilver()
    fixture.failCalls('INVALID_ARGUMENT')
    fixture.start()
    await fixture.setClass('gold')
    await waitForStatus('Infeasible')
    await fixture.setClass('silver')
    await fixture.waitUntilSettled('silver')
    await fixture.server.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.modifyCalls()).toHaveLength(1)
    expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
  })

  it('VAC-7 from Infeasible to no class cancels the modification and clears the status', async () => {
    await createFixtureWithoutClass()
    fixture.failCalls('INVALID_ARGUMENT')
    fixture.start()
    await fixture.setClass('gold')
    await waitForStatus('Infeasible')
    await fixture.setClass(null)
    await fixture.waitUntilSettled(undefined)
    expect(fixture.events.at(-1)).toMatchObject({
      type: 'Normal',
      reason: 'VolumeModifyCanceled',
      message: 'Cancelled modify to "gold": the claim requests the attributes in effect.',
    })
    expect(fixture.modifyCalls()).toHaveLength(1)
    expect((await fixture.status()).modifyVolumeStatus).toBeUndefined()
  })

  it.each([
    ['Infeasible', null],
    ['Infeasible', ''],
    ['Pending', null],
    ['Pending', ''],
  ])('VAC-7 from %s to %j cancels the modification without a call', async (state, className) => {
    await createFixtureWithoutClass()
    fixture.failCalls('INVALID_ARGUMENT')
    fixture.start()
    await fixture.setClass(state === 'Pending' ? 'platinum' : 'gold')
    await waitForStatus(state)
    const callsBefore = fixture.modifyCalls().length
    await fixture.setClass(className)
    await fixture.waitUntilSettled(undefined)
    expect(fixture.events.at(-1)?.reason).toBe('VolumeModifyCanceled')
    await fixture.createClass('platinum', { iops: '9' })
    await fixture.server.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.modifyCalls()).toHaveLength(callsBefore)
    expect(fixture.driverAttributes()).toEqual({ iops: '1', throughput: '1' })
  })

  it.each(['INTERNAL', 'UNAVAILABLE'] as const)(
    'VAC-7 after %s calls the driver with the class in effect',
    async (code) => {
      await createFixtureWithSilver()
      fixture.failCalls(code)
      fixture.start()
      await fixture.setClass('gold')
      await waitForEvent('VolumeModifyFailed')
      fixture.setRules([])
      await fixture.setClass('silver')
      await fixture.waitUntilSettled('silver')
      expect(fixture.modifyCalls().at(-1)).toEqual({ iops: '500', throughput: '50' })
      expect(fixture.eventReasons().slice(-2)).toEqual(['VolumeModify', 'VolumeModifySuccessful'])
    },
  )

  it('VAC-7 undoes a modification whose response was lost', async () => {
    await createFixtureWithSilver()
    fixture.setRules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    expect(fixture.driverAttributes()).toEqual({ iops: '1000', throughput: '100' })
    await fixture.setClass('silver')
    await fixture.waitUntilSettled('silver')
    expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
    expect((await fixture.volume()).spec?.volumeAttributesClassName).toBe('silver')
  })

  it('VAC-7 restores attributes that the class in effect does not set', async () => {
    await createFixtureWithSilver()
    await fixture.createClass('tiered', { tier: 'hot' })
    await fixture.createClass('cold', { tier: 'cold', iops: '7' })
    fixture.start()
    await fixture.setClass('tiered')
    await fixture.waitUntilSettled('tiered')
    fixture.setRules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    await fixture.setClass('cold')
    await waitForEvent('VolumeModifyFailed')
    expect(fixture.driverAttributes()).toEqual({ tier: 'cold', iops: '7', throughput: '50' })
    await fixture.setClass('tiered')
    await fixture.waitUntilSettled('tiered')
    // The value 500 of iops comes from the previous class, silver: the volume's annotation has saved it.
    expect(fixture.driverAttributes()).toEqual({ tier: 'hot', iops: '500', throughput: '50' })
  })

  it("VAC-7 to no class restores the storage class's attributes", async () => {
    await createFixtureWithoutClass()
    await fixture.server.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'fast' },
      provisioner: 'disks.example.com',
      parameters: { 'provisioned-iops-on-create': '300', throughput: '30', fsType: 'ext4' },
    })
    await fixture.createClaim('provisioned', {
      storageClassName: 'fast',
      attributes: { iops: '300', throughput: '30' },
    })
    fixture.setRules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    fixture.start()
    await fixture.setClass('gold', 'provisioned')
    await waitForEvent('VolumeModifyFailed')
    expect(fixture.driverAttributes('provisioned')).toEqual({ iops: '1000', throughput: '100' })
    await fixture.setClass(null, 'provisioned')
    await fixture.waitUntilSettled(undefined, 'provisioned')
    expect(fixture.driverAttributes('provisioned')).toEqual({ iops: '300', throughput: '30' })
    expect(fixture.eventReasons().at(-1)).toBe('VolumeModifyCanceled')
  })

  it("VAC-7 to no class restores the driver's defaults", async () => {
    await createFixtureWithoutClass()
    fixture.setRules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    fixture.start({ options: { defaults: { iops: '1', throughput: '1' } } })
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    await fixture.setClass(null)
    await fixture.waitUntilSettled(undefined)
    expect(fixture.driverAttributes()).toEqual({ iops: '1', throughput: '1' })
  })

  it.each([
    ['a lost response', { do: 'loseReply', as: 'unavailable' }, { iops: '1000', throughput: '100' }],
    ['no response', { do: 'fail', code: 'UNAVAILABLE' }, { iops: '1', throughput: '1' }],
    ['a final error', { do: 'fail', code: 'INTERNAL' }, { iops: '1', throughput: '1' }],
  ] as const)(
    'VAC-7 to no class after %s reports unknown previous values in a condition',
    async (_, effect, attributes) => {
      await createFixtureWithoutClass()
      fixture.setRules([{ effect, times: 1 }])
      fixture.start()
      await fixture.setClass('gold')
      await waitForEvent('VolumeModifyFailed')
      await fixture.setClass(null)
      await waitForEvent('VolumeModifyCanceled')
      await fixture.settle()
      const { modifyVolumeStatus, currentVolumeAttributesClassName, conditions } = await fixture.status()
      expect([modifyVolumeStatus, currentVolumeAttributesClassName]).toEqual([undefined, undefined])
      expect(conditions).toMatchObject([
        {
          type: 'ModifyVolumeError',
          reason: 'PreviousValueUnknown',
          message: expect.stringContaining('the previous values of iops, throughput are not known'),
        },
      ])
      await fixture.server.clock.advance(3_600_000)
      await fixture.settle()
      expect(fixture.modifyCalls(), 'the retries have ended').toHaveLength(1)
      expect(fixture.driverAttributes()).toEqual(attributes)
      await fixture.setClass('gold')
      await fixture.waitUntilSettled('gold')
    },
  )

  it('VAC-7 PIO-5 clears the status without a call after NOT_FOUND', async () => {
    await createFixtureWithSilver()
    fixture.failCalls('NOT_FOUND')
    fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    await fixture.settle()
    const callsBefore = fixture.modifyCalls().length
    await fixture.setClass('silver')
    await fixture.waitUntilSettled('silver')
    expect(fixture.modifyCalls()).toHaveLength(callsBefore)
  })

  it('VAC-7 PIO-5 ends if the driver does not have the volume and an earlier call has no final response', async () => {
    await createFixtureWithSilver()
    fixture.setRules([
      { nth: 1, effect: { do: 'fail', code: 'UNAVAILABLE' } },
      { effect: { do: 'fail', code: 'NOT_FOUND' } },
    ])
    fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    await fixture.setClass('silver')
    await fixture.waitUntilSettled('silver')
    await fixture.server.clock.advance(3_600_000)
    await fixture.settle()
    expect(fixture.modifyCalls().length).toBeLessThanOrEqual(2)
    expect(fixture.events.some(({ message }) => message.includes('so no attributes were restored'))).toBe(true)
  })

  it('VAC-7 starts after a hanging call has ended', async () => {
    await createFixtureWithSilver()
    fixture.setRules([{ effect: { do: 'hang' }, times: 1 }])
    fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver call')
    await fixture.setClass('silver')
    fixture.fake.script.release()
    await fixture.waitUntilSettled('silver')
    expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
  })

  it('VAC-7 is retried after slowRetryMs if the driver rejects it as infeasible', async () => {
    await createFixtureWithSilver()
    fixture.failCalls('INTERNAL', 1)
    fixture.start()
    await fixture.setClass('gold')
    await waitForEvent('VolumeModifyFailed')
    fixture.failCalls('INVALID_ARGUMENT', 1)
    await fixture.setClass('silver')
    await waitForEvent('VolumeModifyFailed', 2)
    await fixture.settle()
    const callsBefore = fixture.modifyCalls().length
    await fixture.server.clock.advance(299_000)
    await fixture.settle()
    expect(fixture.modifyCalls()).toHaveLength(callsBefore)
    await fixture.waitUntilSettled('silver')
    expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
  })

  it('VAC-7 undoes a modification that another program started', async () => {
    await createFixtureWithSilver()
    const modifyVolumeStatus = { targetVolumeAttributesClassName: 'gold', status: 'InProgress' }
    await fixture.patchClaim('data', { status: { modifyVolumeStatus } }, 'status')
    fixture.fake.state.volumes['vol-data']!.mutableParameters = { iops: '1000', throughput: '50' }
    fixture.start()
    await fixture.waitUntilSettled('silver')
    expect(fixture.driverAttributes()).toEqual({ iops: '500', throughput: '50' })
  })

  it('VAC-7 clears the status that another program left behind', async () => {
    await createFixtureWithoutClass()
    const modifyVolumeStatus = { targetVolumeAttributesClassName: 'gold', status: 'Infeasible' }
    const error = { type: 'ModifyVolumeError', status: 'True', reason: 'InvalidArgument', message: 'no' }
    await fixture.patchClaim('data', { status: { modifyVolumeStatus, conditions: [error] } }, 'status')
    fixture.start()
    await fixture.waitUntilSettled(undefined)
    expect(fixture.modifyCalls()).toEqual([])
  })
})
