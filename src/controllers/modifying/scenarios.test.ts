// Scenarios of the modifying controller with an API server and a fake driver: feature gates, many claims, edits of
// size and attributes together, quota, and metrics.
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../api/feature-gates.ts'
import { done } from '../../runtime/index.ts'
import { memoryMedium } from '../../store/index.ts'
import type { VolumeChange } from '../volume-changes/index.ts'
import { createModifyingMetrics } from './index.ts'
import { createModifyingFixture, type ModifyingFixture } from './modifying.fixture.ts'

let fixture: ModifyingFixture
afterEach(() => fixture.close())

const CLAIM = '/api/v1/namespaces/default/persistentvolumeclaims/data'
const QUOTAS = '/api/v1/namespaces/default/resourcequotas'

async function createFixtureWithClasses(): Promise<void> {
  fixture = await createModifyingFixture()
  await fixture.createClass('silver', { iops: '500' })
  await fixture.createClass('gold', { iops: '1000' })
}

describe('the modifying controller with feature gates', () => {
  it('VAC-12 does not change the class while the gate is disabled, and modifies the volume after it is enabled again', async () => {
    const medium = memoryMedium()
    fixture = await createModifyingFixture({ medium })
    await fixture.createClass('silver', { iops: '500' })
    await fixture.createClass('gold', { iops: '1000' })
    await fixture.createClaim('data', { className: 'silver', attributes: { iops: '500' } })
    fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntilSettled('gold')
    const { fake } = fixture
    await fixture.close()

    const gates = 'VolumeAttributesClass=false'
    fixture = await createModifyingFixture({ medium, gates, fake })
    fixture.start({ gates: parseFeatureGates(gates) })
    const response = await fixture.server.patch(CLAIM, { spec: { volumeAttributesClassName: 'silver' } })
    expect([response.status, response.json.message]).toEqual([
      422,
      'PersistentVolumeClaim "data" is invalid: spec.volumeAttributesClassName: Forbidden: ' +
        'update is forbidden when the VolumeAttributesClass feature gate is disabled',
    ])
    await fixture.settle()
    expect(fixture.driverAttributes()).toEqual({ iops: '1000' })
    expect((await fixture.status()).currentVolumeAttributesClassName).toBe('gold')
    await fixture.close()

    fixture = await createModifyingFixture({ medium, fake })
    fixture.start()
    await fixture.setClass('silver')
    await fixture.waitUntilSettled('silver')
    expect(fixture.driverAttributes()).toEqual({ iops: '500' })
  })

  it('VAC-12 resumes a modification after the gate is enabled again', async () => {
    const medium = memoryMedium()
    fixture = await createModifyingFixture({ medium })
    await fixture.createClass('gold', { iops: '1000' })
    await fixture.createClaim()
    fixture.failCalls('INTERNAL')
    fixture.start()
    await fixture.setClass('gold')
    await fixture.waitUntil(() => fixture.events.length === 2, 'the failure to be reported')
    const { fake } = fixture
    await fixture.close()
    const callsBefore = fake.record.calls.length

    const gates = 'VolumeAttributesClass=false'
    fixture = await createModifyingFixture({ medium, gates, fake })
    fixture.setRules([])
    fixture.start({ gates: parseFeatureGates(gates) })
    await fixture.settle()
    expect(fake.record.calls.length - callsBefore).toBeLessThanOrEqual(4) // identity calls at startup
    expect((await fixture.status()).modifyVolumeStatus?.status).toBe('InProgress')
    await fixture.close()

    fixture = await createModifyingFixture({ medium, fake })
    fixture.start()
    await fixture.waitUntilSettled('gold')
  })

  it.each([
    'VolumeAttributesClass=false',
    'VolumeProvisionedIO=false',
    'VolumeAttributesClass=false,VolumeProvisionedIO=false',
  ])('VAC-12 PIO-1 ignores the fields of disabled gates with %s', async (disabledGates) => {
    await createFixtureWithClasses()
    await fixture.createClaim('data', { className: 'silver', attributes: { iops: '500' } })
    const gates = parseFeatureGates(disabledGates)
    fixture.start({ gates })
    await fixture.setClass('gold')
    await fixture.setIo({ throughput: '10' })
    await fixture.settle()
    const { currentVolumeAttributesClassName, capacity } = await fixture.status()
    expect(currentVolumeAttributesClassName).toBe(gates.enabled('VolumeAttributesClass') ? 'gold' : 'silver')
    expect(capacity?.throughput).toBe(gates.enabled('VolumeProvisionedIO') ? '10Mi' : undefined)
  })

  it('PIO-1 rejects a class that contradicts the current IO amounts, even if VolumeProvisionedIO is disabled', async () => {
    await createFixtureWithClasses()
    await fixture.createClaim('data', { io: { iops: '3k' }, attributes: { iops: '3000' } })
    fixture.start({ gates: parseFeatureGates('VolumeProvisionedIO=false') })
    await fixture.setClass('gold')
    await fixture.waitUntil(
      async () => (await fixture.status()).modifyVolumeStatus?.status === 'Infeasible',
      'the request to be rejected',
    )
    expect(fixture.driverAttributes()).toEqual({ iops: '3000' })
    expect((await fixture.status()).capacity?.iops).toBe('3k')
    expect(fixture.events.at(-1)?.message).toMatch(
      /requests 3k iops, but its VolumeAttributesClass specifies iops "1000"/,
    )
  })
})

describe('many claims', () => {
  it('VAC-14 modifies 500 claims without errors, within the worker limit', async () => {
    await createFixtureWithClasses()
    const names = Array.from({ length: 500 }, (_, index) => `data-${index}`)
    for (const name of names) await fixture.createClaim(name, { className: 'silver', attributes: { iops: '500' } })
    let [runningCount, maxRunningCount] = [0, 0]
    const modify = fixture.fake.controller.controllerModifyVolume
    Object.assign(fixture.fake.controller, {
      async controllerModifyVolume(...args: Parameters<typeof modify>) {
        maxRunningCount = Math.max(maxRunningCount, ++runningCount)
        await new Promise((resolve) => setImmediate(resolve))
        return modify(...args).finally(() => runningCount--)
      },
    })
    const { calls } = fixture.start({ workers: 7 })
    await Promise.all(names.map((name) => fixture.setClass('gold', name)))
    await fixture.waitUntil(
      () => fixture.eventReasons().filter((reason) => reason === 'VolumeModifySuccessful').length === 500,
      'all claims to be modified',
    )
    for (const name of names) expect(fixture.driverAttributes(name)).toEqual({ iops: '1000' })
    expect(fixture.eventReasons()).not.toContain('VolumeModifyFailed')
    expect(maxRunningCount).toBe(7)
    expect(calls.filter((call) => call === 'commit')).toHaveLength(1_000)
    // One read of each volume before its first call, to check that the cache is up to date.
    expect(calls.filter((call) => call === 'get')).toHaveLength(500)
    expect(calls.filter((call) => call === 'list')).toEqual([])
  })

  it('VAC-14 PLUS-10 does not modify a volume while it is being expanded', async () => {
    await createFixtureWithClasses()
    await fixture.createClaim('data', { className: 'silver', attributes: { iops: '500' } })
    const order: string[] = []
    let finishExpansion = () => {}
    const expansion: VolumeChange = {
      name: 'expanding',
      matters: (next, old) => next.spec?.resources?.requests?.storage !== old.spec?.resources?.requests?.storage,
      async reconcile({ claim }) {
        if (claim.spec?.resources?.requests?.storage === '1Gi') return done
        order.push('expansion started')
        await new Promise<void>((resolve) => {
          finishExpansion = resolve
        })
        order.push('expansion finished')
        return done
      },
    }
    fixture.start({ otherChanges: [expansion] })
    await fixture.settle()
    await fixture.server.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'expandable' },
      provisioner: 'p',
      allowVolumeExpansion: true,
    })
    await fixture.createClaim('both', {
      className: 'silver',
      storageClassName: 'expandable',
      attributes: { iops: '500' },
    })
    await fixture.settle()
    await fixture.patchClaim('both', {
      spec: { volumeAttributesClassName: 'gold', resources: { requests: { storage: '2Gi' } } },
    })
    await fixture.waitUntil(() => order.includes('expansion started'), 'the expansion to start')
    await fixture.settle()
    expect(fixture.modifyCalls()).toEqual([])
    finishExpansion()
    await fixture.waitUntilSettled('gold', 'both')
    expect(order).toEqual(['expansion started', 'expansion finished'])
  })
})

describe('edits of size and attributes', () => {
  async function createFixtureWithExpandableClaim(): Promise<void> {
    await createFixtureWithClasses()
    await fixture.server.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'expandable' },
      provisioner: 'disks.example.com',
      allowVolumeExpansion: true,
    })
    await fixture.createClaim('data', {
      className: 'silver',
      storageClassName: 'expandable',
      attributes: { iops: '500' },
    })
  }
  const editClaim = (size: string, volumeAttributesClassName: string) =>
    fixture.patchClaim('data', { spec: { volumeAttributesClassName, resources: { requests: { storage: size } } } })
  const changeMethods = () =>
    fixture.fake.record.calls.map(({ method }) => method).filter((method) => /Expand|Modify/.test(method))

  it('PLUS-10 expand the volume first, then modify it', async () => {
    await createFixtureWithExpandableClaim()
    fixture.start({ runsExpansion: true })
    await editClaim('2Gi', 'gold')
    await fixture.waitUntil(() => changeMethods().length === 2, 'both driver calls')
    await fixture.waitUntil(
      async () => (await fixture.volume()).spec?.volumeAttributesClassName === 'gold',
      'the class to take effect',
    )
    expect(changeMethods()).toEqual(['ControllerExpandVolume', 'ControllerModifyVolume'])
    expect(fixture.fake.state.volumes['vol-data']).toMatchObject({ capacityBytes: 2 * 1024 ** 3 })
    expect(fixture.driverAttributes()).toEqual({ iops: '1000' })
    expect(fixture.fake.record.overlaps).toEqual([])
  })

  it('PLUS-10 modify the volume even if the size is infeasible', async () => {
    await createFixtureWithExpandableClaim()
    fixture.fake.script.setRules([{ method: 'ControllerExpandVolume', effect: { do: 'fail', code: 'OUT_OF_RANGE' } }])
    fixture.start({ runsExpansion: true })
    await editClaim('2Gi', 'gold')
    await fixture.waitUntil(
      async () => (await fixture.status()).currentVolumeAttributesClassName === 'gold',
      'the class to take effect',
    )
    expect((await fixture.status()).allocatedResourceStatuses).toEqual({ storage: 'ControllerResizeInfeasible' })
  })

  it('PLUS-10 count as one change, and delay the next edit until the cooldown ends', async () => {
    await createFixtureWithExpandableClaim()
    fixture.start({
      runsExpansion: true,
      throttle: { cooldownMs: 3_600_000, budget: { changes: 1, periodMs: 60_000 } },
    })
    await editClaim('2Gi', 'gold')
    await fixture.waitUntil(
      async () => (await fixture.volume()).spec?.volumeAttributesClassName === 'gold',
      'the class to take effect',
    )
    expect(changeMethods()).toHaveLength(2)
    await editClaim('2Gi', 'silver')
    await fixture.waitUntil(() => fixture.eventReasons().includes('VolumeChangeDelayed'), 'the event to be recorded')
    await fixture.server.clock.advance(3_000_000)
    await fixture.settle()
    expect(changeMethods()).toHaveLength(2)
    await fixture.server.clock.advance(900_000)
    await fixture.waitUntil(
      async () => (await fixture.volume()).spec?.volumeAttributesClassName === 'silver',
      'the class to take effect',
    )
    expect(fixture.eventReasons().filter((reason) => reason === 'VolumeChangeDelayed')).toHaveLength(1)
    expect(fixture.driverAttributes()).toEqual({ iops: '500' })
  })

  it('PLUS-10 can be rolled back without waiting for the throttle', async () => {
    await createFixtureWithExpandableClaim()
    fixture.setRules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    fixture.start({ throttle: { cooldownMs: 3_600_000, budget: { changes: 1, periodMs: 3_600_000 } } })
    await fixture.setClass('gold')
    await fixture.waitUntil(() => fixture.eventReasons().includes('VolumeModifyFailed'), 'the failure to be reported')
    await fixture.setClass('silver')
    await fixture.waitUntilSettled('silver')
    expect(fixture.driverAttributes()).toEqual({ iops: '500' })
  })
})

describe('quota', () => {
  it('PIO-7 rejects an increase beyond the quota, and releases a decrease after the driver confirms it', async () => {
    fixture = await createModifyingFixture()
    await fixture.server.post(QUOTAS, { metadata: { name: 'io' }, spec: { hard: { 'limits.iops': '1000' } } })
    await fixture.server.patch(`${QUOTAS}/io/status`, {
      status: { hard: { 'limits.iops': '1000' }, used: { 'limits.iops': '0' } },
    })
    const readUsed = async () => (await fixture.server.get(`${QUOTAS}/io`)).json.status.used['limits.iops']
    await fixture.createClaim('data', { io: { iops: '500' }, attributes: { iops: '500' } })
    expect(await readUsed()).toBe('500')
    const response = await fixture.server.patch(CLAIM, { spec: { resources: { requests: { iops: '1001' } } } })
    expect(response.status).toBe(403)
    fixture.setRules([{ effect: { do: 'hang' } }])
    fixture.start()
    await fixture.setIo({ iops: '100' })
    await fixture.waitUntil(() => fixture.fake.script.hangingCount === 1, 'the driver call')
    expect(await readUsed()).toBe('500')
    fixture.fake.script.release()
    await fixture.waitUntil(async () => (await readUsed()) === '100', 'the quota usage to drop')
  })
})

describe('metrics', () => {
  it('VAC-11 PIO-9 count calls and failures, for classes and for amounts', async () => {
    await createFixtureWithClasses()
    await fixture.createClaim('data', { className: 'silver', attributes: { iops: '500' } })
    const registry = new Registry()
    fixture.start({ metrics: createModifyingMetrics(registry) })
    fixture.failCalls('UNAVAILABLE', 1)
    await fixture.setClass('gold')
    await fixture.waitUntilSettled('gold')
    fixture.failCalls('OUT_OF_RANGE', 1)
    await fixture.setIo({ throughput: '10' })
    await fixture.waitUntil(
      () => fixture.eventReasons().includes('VolumeModifyFailed') && fixture.modifyCalls().length === 3,
      'the request to be rejected',
    )
    const driver = 'driver_name="disks.example.com"'
    const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith('controller_'))
    expect(lines.sort()).toEqual(
      [
        `controller_modify_volume_total{${driver}} 2`,
        `controller_modify_volume_errors_total{${driver},grpc_status_code="Unavailable"} 1`,
        `controller_update_io_provisioning_total{${driver}} 1`,
        `controller_update_io_provisioning_errors_total{${driver},grpc_status_code="OutOfRange"} 1`,
      ].sort(),
    )
  })
})
