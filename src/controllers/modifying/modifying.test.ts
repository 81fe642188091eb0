import { afterEach, describe, expect, it } from 'vitest'
import { aWorld, type World, type WorldOptions } from './modifying.fixture.ts'
import { ATTRIBUTES, UNDO } from './undo.ts'

let world: World
afterEach(() => world.close())

/** Class silver is in effect, class gold exists. */
async function silverAndGold(given: WorldOptions = {}): Promise<void> {
  world = await aWorld(given)
  await world.aClass('silver', { iops: '500', throughput: '50' })
  await world.aClass('gold', { iops: '1000', throughput: '100' })
  await world.aClaim('data', { className: 'silver', has: { iops: '500', throughput: '50' } })
}

/** No class is in effect, class gold exists. */
async function noneAndGold(given: WorldOptions = {}): Promise<void> {
  world = await aWorld(given)
  await world.aClass('gold', { iops: '1000', throughput: '100' })
  await world.aClaim('data', { has: { iops: '1', throughput: '1' } })
}

const conditions = async () =>
  Object.fromEntries(((await world.status()).conditions ?? []).map((one) => [one.type, one]))
const untilStatus = (status: string) =>
  world.until(async () => (await world.status()).modifyVolumeStatus?.status === status, status)
const untilEvent = (reason: string, times = 1) =>
  world.until(() => world.reasons().filter((one) => one === reason).length >= times, `${times} × ${reason}`)

describe('modifying the class of a bound claim', () => {
  it('VAC-5 (T0, 39) neither calls nor writes if the class is in effect', async () => {
    await silverAndGold()
    const before = await world.claim()
    world.start()
    await world.settle()
    expect(world.modifyCalls()).toEqual([])
    expect(await world.claim()).toEqual(before)
    expect(world.events).toEqual([])
  })

  it('VAC-5 (T1, T4, 41) calls the driver with the parameters of the class and updates volume and claim', async () => {
    await silverAndGold()
    const process = world.start()
    await world.setClass('gold')
    await world.untilSettled('gold')
    expect(world.modifyCalls()).toEqual([{ iops: '1000', throughput: '100' }])
    expect(world.has()).toEqual({ iops: '1000', throughput: '100' })
    expect((await world.volume()).spec?.volumeAttributesClassName).toBe('gold')
    expect((await world.claim()).metadata.annotations?.[UNDO]).toBeUndefined()
    expect(world.events.map(({ type, reason, message }) => [type, reason, message])).toEqual([
      ['Normal', 'VolumeModify', 'external resizer is modifying volume data with vac gold'],
      ['Normal', 'VolumeModifySuccessful', 'external resizer modified volume data with vac gold successfully'],
    ])
    // One commit for the intent, one for volume and claim together.
    expect(process.calls.filter((call) => call === 'commit')).toHaveLength(2)
    expect(process.calls).not.toContain('patch')
  })

  it('VAC-5 (T1) writes the target to the status before the driver is called', async () => {
    await silverAndGold()
    world.rules([{ effect: { do: 'hang' } }])
    world.start()
    await world.setClass('gold')
    await world.until(() => world.fake.script.hanging === 1, 'the call')
    const status = await world.status()
    expect(status.modifyVolumeStatus).toEqual({ targetVolumeAttributesClassName: 'gold', status: 'InProgress' })
    expect(status.currentVolumeAttributesClassName).toBe('silver')
    expect(status.conditions).toEqual([
      expect.objectContaining({
        type: 'ModifyingVolume',
        status: 'True',
        message: 'Modifying volume to "gold" is in progress.',
      }),
    ])
    expect(JSON.parse((await world.claim()).metadata.annotations?.[UNDO] ?? '')).toEqual({
      iops: '500',
      throughput: '50',
    })
    world.fake.script.release()
    await world.untilSettled('gold')
  })

  it('VAC-5 (42) applies a first class to a claim without one', async () => {
    await noneAndGold()
    world.start()
    await world.setClass('gold')
    await world.untilSettled('gold')
    expect(world.has()).toEqual({ iops: '1000', throughput: '100' })
    expect((await world.volume()).spec?.volumeAttributesClassName).toBe('gold')
  })

  it('VAC-5 (41) sends claim and volume names with extraModifyMetadata', async () => {
    await silverAndGold()
    world.start({ options: { extraModifyMetadata: true } })
    await world.setClass('gold')
    await world.untilSettled('gold')
    expect(world.modifyCalls()).toEqual([
      {
        iops: '1000',
        throughput: '100',
        'csi.storage.k8s.io/pvc/name': 'data',
        'csi.storage.k8s.io/pvc/namespace': 'default',
        'csi.storage.k8s.io/pv/name': 'data',
      },
    ])
    expect(JSON.parse((await world.volume()).metadata.annotations?.[ATTRIBUTES] ?? '')).toEqual({
      class: 'gold',
      attributes: { iops: '1000', throughput: '100' },
    })
  })

  it('VAC-5 (43) ignores volumes of other drivers, unbound claims, and volumes of another claim', async () => {
    await silverAndGold()
    await world.aClaim('foreign', { csi: { driver: 'other.example.com' } })
    await world.aClaim('unbound')
    await world.aClaim('stranger')
    for (const name of ['foreign', 'unbound', 'stranger']) await world.setClass('gold', name)
    await world.patchClaim('unbound', { status: { phase: 'Lost' } }, 'status')
    const claimRef = { namespace: 'default', name: 'stranger', uid: 'another' }
    await world.server.patch('/api/v1/persistentvolumes/stranger', { spec: { claimRef } }, 'merge')
    world.start()
    await world.settle()
    expect(world.modifyCalls()).toEqual([])
    expect(world.events).toEqual([])
  })

  it('VAC-5 (43) ignores volumes without a CSI driver and missing volumes', async () => {
    await silverAndGold()
    await world.aClaim('plain')
    await world.aClaim('early')
    const plain = await world.volume('plain')
    for (const name of ['plain', 'early']) {
      await world.server.patch(`/api/v1/persistentvolumes/${name}`, { metadata: { finalizers: null } }, 'merge')
      await world.server.delete(`/api/v1/persistentvolumes/${name}`)
    }
    const { csi: _csi, ...spec } = plain.spec!
    const hostPath = { path: '/srv' }
    const made = await world.server.post('/api/v1/persistentvolumes', {
      metadata: { name: 'plain' },
      spec: { ...spec, hostPath },
    })
    expect(made.status).toBe(201)
    for (const name of ['plain', 'early']) await world.setClass('gold', name)
    world.start()
    await world.settle()
    expect(world.modifyCalls()).toEqual([])
    expect(world.events).toEqual([])
    expect((await world.status('early')).modifyVolumeStatus).toBeUndefined()
  })

  it('VAC-5 VAC-9 finishes a modification to a class that is being deleted', async () => {
    await silverAndGold()
    world.rules([{ effect: { do: 'fail', code: 'UNAVAILABLE' }, times: 2 }])
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    const deleted = await world.server.delete('/apis/storage.k8s.io/v1/volumeattributesclasses/gold')
    expect(deleted.json.metadata.deletionTimestamp).toBeDefined()
    await world.untilSettled('gold')
    expect(world.has()).toEqual({ iops: '1000', throughput: '100' })
  })

  it('VAC-5 takes secrets from annotations, the storage class, or controllerExpandSecretRef', async () => {
    await silverAndGold({ settings: { secretKeys: [] } })
    const secret = (name: string) =>
      world.server.post('/api/v1/namespaces/kube-system/secrets', {
        metadata: { name },
        data: { [name]: Buffer.from('hunter2hunter2').toString('base64') },
      })
    for (const name of ['written', 'named', 'grow']) await secret(name)
    await world.server.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'fast' },
      provisioner: 'disks.example.com',
      parameters: {
        'csi.storage.k8s.io/controller-modify-secret-name': 'named',
        'csi.storage.k8s.io/controller-modify-secret-namespace': 'kube-system',
      },
    })
    const csi = { controllerExpandSecretRef: { name: 'grow', namespace: 'kube-system' } }
    await world.aClaim('a', {
      csi,
      storageClassName: 'fast',
      annotations: {
        'volume.kubernetes.io/controller-modify-secret-name': 'written',
        'volume.kubernetes.io/controller-modify-secret-namespace': 'kube-system',
      },
    })
    await world.aClaim('b', { csi, storageClassName: 'fast' })
    await world.aClaim('c', { csi })
    world.start()
    for (const name of ['a', 'b', 'c']) {
      await world.setClass('gold', name)
      await world.untilSettled('gold', name)
    }
    const calls = world.fake.record.calls.filter(({ method }) => method === 'ControllerModifyVolume')
    expect(calls.map(({ volume, secretKeys }) => [volume, secretKeys])).toEqual([
      ['a', ['written']],
      ['b', ['named']],
      ['c', ['grow']],
    ])
  })

  it('VAC-5 (51) records an event and retries if a secret is missing', async () => {
    await silverAndGold()
    await world.aClaim('locked', { csi: { controllerExpandSecretRef: { name: 'grow', namespace: 'kube-system' } } })
    world.start()
    await world.setClass('gold', 'locked')
    await untilEvent('VolumeModifyFailed')
    expect(world.events[0]?.message).toContain('error getting secret grow in namespace kube-system')
    expect((await world.status('locked')).modifyVolumeStatus).toBeUndefined()
    expect(world.modifyCalls()).toEqual([])
    await world.server.post('/api/v1/namespaces/kube-system/secrets', { metadata: { name: 'grow' }, data: {} })
    await world.untilSettled('gold', 'locked')
  })
})

describe('a modification that cannot start', () => {
  it('VAC-6 (T2, T3, 40) waits for a missing class, records one event, and starts when it is created', async () => {
    await silverAndGold()
    const process = world.start()
    await world.setClass('platinum')
    await untilStatus('Pending')
    expect((await world.status()).modifyVolumeStatus).toEqual({ status: 'Pending' })
    expect(world.events.map(({ reason, message }) => [reason, message])).toEqual([
      ['VolumeModifyFailed', 'VAC "platinum" does not exist.'],
    ])
    await world.server.clock.advance(3_600_000)
    await world.settle()
    expect(world.events).toHaveLength(1)
    expect(process.standing()).toMatchObject({ is: 'stuck', because: 'VAC "platinum" does not exist.' })
    expect(world.modifyCalls()).toEqual([])
    await world.aClass('platinum', { iops: '9' })
    await world.settle()
    await world.untilSettled('platinum')
    expect(world.has()).toEqual({ iops: '9', throughput: '50' })
  })

  it('VAC-6 (T2, 40) keeps the earlier target in the status while the next class is missing', async () => {
    await silverAndGold()
    world.fails('INTERNAL')
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    const { conditions: before } = await world.status()
    await world.setClass('platinum')
    await untilStatus('Pending')
    const status = await world.status()
    expect(status.modifyVolumeStatus).toEqual({ targetVolumeAttributesClassName: 'gold', status: 'Pending' })
    expect(status.conditions?.map(({ type }) => type)).toEqual(before?.map(({ type }) => type))
    expect(status.currentVolumeAttributesClassName).toBe('silver')
    expect((await world.volume()).spec?.volumeAttributesClassName).toBe('silver')
  })

  it('VAC-6 (T2) goes from Infeasible to Pending, keeps the earlier error and stops retrying it', async () => {
    await silverAndGold()
    world.fails('INVALID_ARGUMENT')
    world.start()
    await world.setClass('gold')
    await untilStatus('Infeasible')
    await world.setClass('platinum')
    await untilStatus('Pending')
    expect((await world.status()).modifyVolumeStatus).toEqual({
      targetVolumeAttributesClassName: 'gold',
      status: 'Pending',
    })
    expect(Object.keys(await conditions()).sort()).toEqual(['ModifyVolumeError', 'ModifyingVolume'])
    await world.server.clock.advance(3_600_000)
    await world.settle()
    expect(world.modifyCalls()).toHaveLength(1)
    expect(world.events.at(-1)?.message).toBe('VAC "platinum" does not exist.')
  })

  it('VAC-6 repeats no event after a restart', async () => {
    await silverAndGold()
    const first = world.start()
    await world.setClass('platinum')
    await untilStatus('Pending')
    await first.stop()
    world.start()
    await world.settle()
    expect(world.events).toHaveLength(1)
  })

  it('VAC-6 records another event for another missing class', async () => {
    await silverAndGold()
    world.start()
    await world.setClass('platinum')
    await untilStatus('Pending')
    await world.setClass('iridium')
    await untilEvent('VolumeModifyFailed', 2)
    expect(world.events[1]?.message).toBe('VAC "iridium" does not exist.')
  })

  it('VAC-8 records an event and makes no call for a class of another driver', async () => {
    await silverAndGold()
    await world.aClass('theirs', { iops: '9' }, 'other.example.com')
    world.start()
    await world.setClass('theirs')
    await untilStatus('Pending')
    await world.settle()
    expect(world.events).toHaveLength(1)
    expect(world.events[0]).toMatchObject({ type: 'Warning', reason: 'VolumeModifyFailed' })
    expect(world.events[0]?.message).toContain(
      'VAC theirs referenced in PVC is for driver other.example.com which does not match driver name disks.example.com',
    )
    expect(world.modifyCalls()).toEqual([])
    await world.setClass('gold')
    await world.untilSettled('gold')
  })

  it('VAC-8 records an event and makes no call for a driver without MODIFY_VOLUME', async () => {
    await silverAndGold({ settings: { controller: ['CREATE_DELETE_VOLUME'] } })
    world.start()
    await world.setClass('gold')
    await untilStatus('Pending')
    await world.settle()
    expect(world.events).toHaveLength(1)
    expect(world.events[0]?.message).toContain('controller MODIFY_VOLUME capability is not reported')
    expect(world.modifyCalls()).toEqual([])
    await world.setClass('silver')
    await world.untilSettled('silver')
    expect(world.modifyCalls()).toEqual([])
  })

  it('SYS-15 waits while the server does not serve classes', async () => {
    const versions = ['v1', 'v1beta1', 'v1alpha1']
    const off = versions.map((version) => `storage.k8s.io/${version}/volumeattributesclasses=false`)
    world = await aWorld({ runtimeConfig: off.join(',') })
    await world.aClaim()
    const process = world.start()
    await world.setClass('gold')
    await world.until(() => process.standing()?.is === 'waiting', 'the wait')
    expect((await world.status()).modifyVolumeStatus).toBeUndefined()
    expect(world.events).toEqual([])
  })
})

describe('a driver that fails', () => {
  it('VAC-6 (T5, T8, 45, 48) INVALID_ARGUMENT: Infeasible, retried after slowRetryMs, attributes unchanged', async () => {
    await silverAndGold()
    world.fails('INVALID_ARGUMENT', 2)
    world.start()
    await world.setClass('gold')
    await untilStatus('Infeasible')
    expect((await world.status()).modifyVolumeStatus).toEqual({
      targetVolumeAttributesClassName: 'gold',
      status: 'Infeasible',
    })
    expect(await conditions()).toMatchObject({
      ModifyingVolume: { message: 'Modifying volume to "gold" failed. Waiting for retry.' },
      ModifyVolumeError: {
        reason: 'InvalidArgument',
        message: 'ControllerModifyVolume failed because of a fault rule',
      },
    })
    expect((await world.status()).currentVolumeAttributesClassName).toBe('silver')
    expect(world.has()).toEqual({ iops: '500', throughput: '50' })
    await world.server.clock.advance(299_000)
    await world.settle()
    expect(world.modifyCalls()).toHaveLength(1)
    await world.server.clock.advance(2_000)
    await untilEvent('VolumeModify', 2)
    expect(world.modifyCalls()).toHaveLength(2)
    expect((await conditions()).ModifyVolumeError?.reason).toBe('InvalidArgument') // until it has worked
    await world.settle()
    await world.server.clock.advance(301_000)
    await untilEvent('VolumeModifySuccessful')
    expect(world.modifyCalls()).toHaveLength(3)
    await world.untilSettled('gold')
  })

  it('VAC-6 (T6, 45, 46) another final error: InProgress, retried with backoff', async () => {
    await silverAndGold()
    world.fails('INTERNAL', 2)
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    await world.settle()
    expect((await world.status()).modifyVolumeStatus?.status).toBe('InProgress')
    expect(await conditions()).toMatchObject({
      ModifyingVolume: { message: 'Modifying volume to "gold" failed. Waiting for retry.' },
      ModifyVolumeError: { reason: 'Internal' },
    })
    expect(world.events.at(-1)?.message).toBe(
      'rpc error: code = Internal desc = ControllerModifyVolume failed because of a fault rule',
    )
    await world.untilSettled('gold')
    expect(world.modifyCalls()).toHaveLength(3)
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
  ] as const)('VAC-6 (T6, T9) %s: InProgress, and another class is tried at once', async (code, reason) => {
    await silverAndGold()
    await world.aClass('bronze', { iops: '5', throughput: '50' })
    world.fails(code, 1)
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    await world.settle()
    expect((await world.status()).modifyVolumeStatus).toEqual({
      targetVolumeAttributesClassName: 'gold',
      status: 'InProgress',
    })
    expect(await conditions()).toMatchObject({
      ModifyingVolume: { message: 'Modifying volume to "gold" failed. Waiting for retry.' },
      ModifyVolumeError: { reason },
    })
    await world.setClass('bronze')
    await world.settle()
    expect((await world.status()).currentVolumeAttributesClassName).toBe('bronze')
    expect(world.modifyCalls().map(({ iops }) => iops)).toEqual(['1000', '5'])
  })

  it('VAC-6 (51) an error without a code: retried, without a new status', async () => {
    await silverAndGold()
    const modify = world.fake.controller.controllerModifyVolume
    let failures = 2
    Object.assign(world.fake.controller, {
      controllerModifyVolume(...args: Parameters<typeof modify>) {
        if (failures-- > 0) throw new Error('the pipe broke')
        return modify(...args)
      },
    })
    world.start()
    await world.setClass('gold')
    await world.until(() => failures === 1, 'the first try')
    await world.settle()
    const status = await world.status()
    expect(status.modifyVolumeStatus).toEqual({ targetVolumeAttributesClassName: 'gold', status: 'InProgress' })
    expect(status.currentVolumeAttributesClassName).toBe('silver')
    await world.untilSettled('gold')
    expect(world.reasons()).toEqual(['VolumeModify', 'VolumeModifySuccessful'])
  })

  it.each(['CANCELLED', 'DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'ABORTED', 'UNAVAILABLE'] as const)(
    'VAC-6 (T7, 48) %s: still in progress',
    async (code) => {
      await silverAndGold()
      world.fails(code, 1)
      world.start()
      await world.setClass('gold')
      await untilEvent('VolumeModifyFailed')
      await world.settle()
      expect((await world.status()).modifyVolumeStatus?.status).toBe('InProgress')
      expect((await conditions()).ModifyingVolume?.message).toBe('Modifying volume to "gold" is still in progress.')
      expect(world.events.at(-1)?.message).toMatch(/\. Still modifying to VAC gold$/)
      await world.untilSettled('gold')
    },
  )

  it('VAC-6 (T9) another class is tried at once', async () => {
    await silverAndGold()
    await world.aClass('bronze', { iops: '5' })
    world.fails('INVALID_ARGUMENT', 1)
    world.start()
    await world.setClass('gold')
    await untilStatus('Infeasible')
    await world.setClass('bronze')
    await world.settle()
    await world.untilSettled('bronze')
    expect(world.has()).toEqual({ iops: '5', throughput: '50' })
  })

  it('VAC-6 (T13, 46) repeats the call until it has a final response, then applies the new request', async () => {
    await silverAndGold()
    await world.aClass('bronze', { iops: '5' })
    world.fails('ABORTED', 2)
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    await world.setClass('bronze')
    await world.untilSettled('bronze')
    expect(world.modifyCalls().map(({ iops }) => iops)).toEqual(['1000', '1000', '1000', '5'])
    expect((await world.volume()).spec?.volumeAttributesClassName).toBe('bronze')
  })

  it('VAC-6 (T14) treats a modification in progress as not answered after a restart', async () => {
    await silverAndGold()
    await world.aClass('bronze', { iops: '5' })
    world.fails('INTERNAL')
    const first = world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    await first.stop()
    await world.setClass('bronze')
    world.rules([])
    world.start()
    await world.untilSettled('bronze')
    expect(world.modifyCalls().at(-2)).toEqual({ iops: '1000', throughput: '100' })
  })

  it('VAC-6 (50) keeps a condition’s transition time while its reason is the same', async () => {
    await silverAndGold()
    world.rules([
      { nth: 1, effect: { do: 'fail', code: 'INTERNAL', message: 'one' } },
      { nth: 2, effect: { do: 'fail', code: 'INTERNAL', message: 'two' } },
      { nth: 3, effect: { do: 'fail', code: 'INTERNAL', message: 'three' } },
      { nth: 4, effect: { do: 'fail', code: 'PERMISSION_DENIED', message: 'four' } },
    ])
    world.start()
    await world.setClass('gold')
    const times: (string | undefined)[] = []
    const looks: (string | undefined)[] = []
    for (const message of ['one', 'two', 'three', 'four']) {
      await world.until(async () => (await conditions()).ModifyVolumeError?.message === message, message)
      const { lastTransitionTime, lastProbeTime } = (await conditions()).ModifyVolumeError ?? {}
      times.push(lastTransitionTime)
      looks.push(lastProbeTime)
    }
    expect(times[2]).toBe(times[0])
    expect(times[3]).not.toBe(times[0])
    expect(looks[2]).not.toBe(looks[0])
  })

  it('VAC-5 (49) keeps conditions of other types', async () => {
    await silverAndGold()
    const resizing = { type: 'Resizing', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }
    await world.patchClaim('data', { status: { conditions: [resizing] } }, 'status')
    world.fails('INTERNAL', 1)
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifySuccessful')
    expect((await world.status()).conditions?.map(({ type }) => type)).toEqual(['Resizing'])
  })

  it('VAC-6 does not write a repeated error again', async () => {
    await silverAndGold()
    world.fails('INTERNAL', 5)
    const process = world.start()
    await world.setClass('gold')
    await world.untilSettled('gold')
    expect(world.modifyCalls()).toHaveLength(6)
    expect(process.calls.filter((call) => call === 'commit')).toHaveLength(3)
  })

  it('PROV-16 strips secrets in driver errors from events and status', async () => {
    await silverAndGold()
    const data = { key: Buffer.from('hunter2hunter2').toString('base64') }
    await world.server.post('/api/v1/namespaces/kube-system/secrets', { metadata: { name: 'grow' }, data })
    await world.aClaim('locked', { csi: { controllerExpandSecretRef: { name: 'grow', namespace: 'kube-system' } } })
    world.rules([{ effect: { do: 'fail', code: 'INTERNAL', message: 'no entry with hunter2hunter2' } }])
    world.start()
    await world.setClass('gold', 'locked')
    await untilEvent('VolumeModifyFailed')
    await world.settle()
    expect(JSON.stringify([world.events, await world.claim('locked')])).not.toContain('hunter2')
  })
})

describe('writes that fail', () => {
  it('VAC-5 (T16) reads the claim again after a conflict, without an event', async () => {
    await silverAndGold()
    await world.aClass('bronze', { iops: '5' })
    let conflicts = 1
    world.start({
      async intercept(verb) {
        if (verb === 'commit' && conflicts-- > 0) await world.setClass('bronze')
      },
    })
    await world.setClass('gold')
    await world.untilSettled('bronze')
    expect(world.modifyCalls()).toEqual([{ iops: '5' }])
    expect(world.reasons()).toEqual(['VolumeModify', 'VolumeModifySuccessful'])
  })

  it('VAC-5 (T15) repeats the call if the server fails before the result is saved', async () => {
    await silverAndGold()
    let commits = 0
    world.start({
      intercept(verb) {
        if (verb === 'commit' && ++commits === 2) throw new Error('the server is gone')
      },
    })
    await world.setClass('gold')
    await world.untilSettled('gold')
    expect(world.modifyCalls()).toHaveLength(2)
    expect(world.reasons()).toEqual(['VolumeModify', 'VolumeModifySuccessful'])
  })

  it('VAC-5 saves the volume’s attributes if the claim is deleted during the call', async () => {
    await silverAndGold()
    world.rules([{ effect: { do: 'hang' } }])
    world.start()
    await world.setClass('gold')
    await world.until(() => world.fake.script.hanging === 1, 'the call')
    await world.patchClaim('data', { metadata: { finalizers: null } })
    await world.server.delete('/api/v1/namespaces/default/persistentvolumeclaims/data')
    world.fake.script.release()
    await world.until(async () => (await world.volume()).spec?.volumeAttributesClassName === 'gold', 'the volume')
    expect(world.has()).toEqual({ iops: '1000', throughput: '100' })
  })
})

describe('rollback', () => {
  it('VAC-7 from Pending: clears the status without a call', async () => {
    await silverAndGold()
    world.start()
    await world.setClass('platinum')
    await untilStatus('Pending')
    await world.setClass('silver')
    await world.untilSettled('silver')
    expect(world.modifyCalls()).toEqual([])
    expect(world.reasons()).toEqual(['VolumeModifyFailed', 'VolumeModifyCanceled'])
  })

  it('VAC-7 from Infeasible: clears the status without a call and stops retrying', async () => {
    await silverAndGold()
    world.fails('INVALID_ARGUMENT')
    world.start()
    await world.setClass('gold')
    await untilStatus('Infeasible')
    await world.setClass('silver')
    await world.untilSettled('silver')
    await world.server.clock.advance(3_600_000)
    await world.settle()
    expect(world.modifyCalls()).toHaveLength(1)
    expect(world.has()).toEqual({ iops: '500', throughput: '50' })
  })

  it('VAC-7 (T11, 44, 47) from Infeasible to no class: cancels and clears the status', async () => {
    await noneAndGold()
    world.fails('INVALID_ARGUMENT')
    world.start()
    await world.setClass('gold')
    await untilStatus('Infeasible')
    await world.setClass(null)
    await world.untilSettled(undefined)
    expect(world.events.at(-1)).toMatchObject({
      type: 'Normal',
      reason: 'VolumeModifyCanceled',
      message: 'Cancelled modify.',
    })
    expect(world.modifyCalls()).toHaveLength(1)
    expect((await world.status()).modifyVolumeStatus).toBeUndefined()
  })

  it.each([
    ['Infeasible', null],
    ['Infeasible', ''],
    ['Pending', null],
    ['Pending', ''],
  ])('VAC-7 (T11, 44) from %s to %j: cancels without a call', async (state, none) => {
    await noneAndGold()
    world.fails('INVALID_ARGUMENT')
    world.start()
    await world.setClass(state === 'Pending' ? 'platinum' : 'gold')
    await untilStatus(state)
    const asked = world.modifyCalls().length
    await world.setClass(none)
    await world.untilSettled(undefined)
    expect(world.events.at(-1)?.reason).toBe('VolumeModifyCanceled')
    await world.aClass('platinum', { iops: '9' })
    await world.server.clock.advance(3_600_000)
    await world.settle()
    expect(world.modifyCalls()).toHaveLength(asked)
    expect(world.has()).toEqual({ iops: '1', throughput: '1' })
  })

  it.each(['INTERNAL', 'UNAVAILABLE'] as const)(
    'VAC-7 (T10) after %s: calls the driver with the class in effect',
    async (code) => {
      await silverAndGold()
      world.fails(code)
      world.start()
      await world.setClass('gold')
      await untilEvent('VolumeModifyFailed')
      world.rules([])
      await world.setClass('silver')
      await world.untilSettled('silver')
      expect(world.modifyCalls().at(-1)).toEqual({ iops: '500', throughput: '50' })
      expect(world.reasons().slice(-2)).toEqual(['VolumeModify', 'VolumeModifySuccessful'])
    },
  )

  it('VAC-7 undoes a modification whose response was lost', async () => {
    await silverAndGold()
    world.rules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    expect(world.has()).toEqual({ iops: '1000', throughput: '100' })
    await world.setClass('silver')
    await world.untilSettled('silver')
    expect(world.has()).toEqual({ iops: '500', throughput: '50' })
    expect((await world.volume()).spec?.volumeAttributesClassName).toBe('silver')
  })

  it('VAC-7 restores attributes that the class in effect does not set', async () => {
    await silverAndGold()
    await world.aClass('tiered', { tier: 'hot' })
    await world.aClass('cold', { tier: 'cold', iops: '7' })
    world.start()
    await world.setClass('tiered')
    await world.untilSettled('tiered')
    world.rules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    await world.setClass('cold')
    await untilEvent('VolumeModifyFailed')
    expect(world.has()).toEqual({ tier: 'cold', iops: '7', throughput: '50' })
    await world.setClass('tiered')
    await world.untilSettled('tiered')
    // 500 is from silver, the class before: the volume's annotation has it.
    expect(world.has()).toEqual({ tier: 'hot', iops: '500', throughput: '50' })
  })

  it('VAC-7 to no class: restores the attributes of the storage class', async () => {
    await noneAndGold()
    await world.server.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'fast' },
      provisioner: 'disks.example.com',
      parameters: { 'provisioned-iops-on-create': '300', throughput: '30', fsType: 'ext4' },
    })
    await world.aClaim('made', { storageClassName: 'fast', has: { iops: '300', throughput: '30' } })
    world.rules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    world.start()
    await world.setClass('gold', 'made')
    await untilEvent('VolumeModifyFailed')
    expect(world.has('made')).toEqual({ iops: '1000', throughput: '100' })
    await world.setClass(null, 'made')
    await world.untilSettled(undefined, 'made')
    expect(world.has('made')).toEqual({ iops: '300', throughput: '30' })
    expect(world.reasons().at(-1)).toBe('VolumeModifyCanceled')
  })

  it('VAC-7 to no class: restores the driver’s defaults', async () => {
    await noneAndGold()
    world.rules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    world.start({ options: { defaults: { iops: '1', throughput: '1' } } })
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    await world.setClass(null)
    await world.untilSettled(undefined)
    expect(world.has()).toEqual({ iops: '1', throughput: '1' })
  })

  it('VAC-7 to no class after a final error, previous values unknown: cancels', async () => {
    await noneAndGold()
    world.fails('INTERNAL')
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    await world.settle()
    const asked = world.modifyCalls().length
    await world.setClass(null)
    await world.untilSettled(undefined)
    expect(world.modifyCalls()).toHaveLength(asked)
    expect(world.has()).toEqual({ iops: '1', throughput: '1' })
  })

  it('VAC-7 (T12, 44) to no class without a final response, previous values unknown: completes the modification', async () => {
    await noneAndGold()
    world.rules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    await world.setClass(null)
    await world.untilSettled('gold')
    expect(world.has()).toEqual({ iops: '1000', throughput: '100' })
    expect(world.events.at(-1)?.message).toContain('could not be cancelled')
    await world.settle()
    expect((await world.status()).currentVolumeAttributesClassName).toBe('gold')
  })

  it('VAC-7 (47) to no class without a final response: cancels when the driver rejects the call', async () => {
    await noneAndGold()
    world.rules([
      { nth: 1, effect: { do: 'fail', code: 'UNAVAILABLE' } },
      { effect: { do: 'fail', code: 'INVALID_ARGUMENT' } },
    ])
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    await world.setClass(null)
    await world.untilSettled(undefined)
    expect(world.modifyCalls()).toHaveLength(2)
    expect(world.has()).toEqual({ iops: '1', throughput: '1' })
  })

  it('VAC-7 rolls back after a hanging call ends', async () => {
    await silverAndGold()
    world.rules([{ effect: { do: 'hang' }, times: 1 }])
    world.start()
    await world.setClass('gold')
    await world.until(() => world.fake.script.hanging === 1, 'the call')
    await world.setClass('silver')
    world.fake.script.release()
    await world.untilSettled('silver')
    expect(world.has()).toEqual({ iops: '500', throughput: '50' })
  })

  it('VAC-7 retries an infeasible rollback after slowRetryMs', async () => {
    await silverAndGold()
    world.fails('INTERNAL', 1)
    world.start()
    await world.setClass('gold')
    await untilEvent('VolumeModifyFailed')
    world.fails('INVALID_ARGUMENT', 1)
    await world.setClass('silver')
    await untilEvent('VolumeModifyFailed', 2)
    await world.settle()
    const asked = world.modifyCalls().length
    await world.server.clock.advance(299_000)
    await world.settle()
    expect(world.modifyCalls()).toHaveLength(asked)
    await world.untilSettled('silver')
    expect(world.has()).toEqual({ iops: '500', throughput: '50' })
  })

  it('VAC-7 rolls back a modification that another program started', async () => {
    await silverAndGold()
    const modifyVolumeStatus = { targetVolumeAttributesClassName: 'gold', status: 'InProgress' }
    await world.patchClaim('data', { status: { modifyVolumeStatus } }, 'status')
    world.fake.state.volumes['vol-data']!.mutableParameters = { iops: '1000', throughput: '50' }
    world.start()
    await world.untilSettled('silver')
    expect(world.has()).toEqual({ iops: '500', throughput: '50' })
  })

  it('VAC-7 clears the status that another program left behind', async () => {
    await noneAndGold()
    const modifyVolumeStatus = { targetVolumeAttributesClassName: 'gold', status: 'Infeasible' }
    const error = { type: 'ModifyVolumeError', status: 'True', reason: 'InvalidArgument', message: 'no' }
    await world.patchClaim('data', { status: { modifyVolumeStatus, conditions: [error] } }, 'status')
    world.start()
    await world.untilSettled(undefined)
    expect(world.modifyCalls()).toEqual([])
  })
})
