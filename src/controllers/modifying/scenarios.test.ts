// The user stories of the KEPs for attributes classes and provisioned IO, with load, feature gates, quota and metrics.
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../api/feature-gates.ts'
import { done } from '../../runtime/index.ts'
import { memoryMedium } from '../../store/index.ts'
import type { VolumeChange } from '../volume-changes/index.ts'
import { createModifyingMetrics } from './index.ts'
import { aWorld, type World } from './modifying.fixture.ts'

let world: World
afterEach(() => world.close())

const CLAIM = '/api/v1/namespaces/default/persistentvolumeclaims/data'
const QUOTAS = '/api/v1/namespaces/default/resourcequotas'

async function silverAndGold(): Promise<void> {
  world = await aWorld()
  await world.aClass('silver', { iops: '500' })
  await world.aClass('gold', { iops: '1000' })
}

describe('feature gates', () => {
  it('VAC-12 rejects a class while the gate is off, and modifies again when it is on', async () => {
    const medium = memoryMedium()
    world = await aWorld({ medium })
    await world.aClass('silver', { iops: '500' })
    await world.aClass('gold', { iops: '1000' })
    await world.aClaim('data', { className: 'silver', has: { iops: '500' } })
    world.start()
    await world.setClass('gold')
    await world.untilSettled('gold')
    const { fake } = world
    await world.close()

    const gates = 'VolumeAttributesClass=false'
    world = await aWorld({ medium, gates, fake })
    world.start({ gates: parseFeatureGates(gates) })
    const refused = await world.server.patch(CLAIM, { spec: { volumeAttributesClassName: 'silver' } })
    expect([refused.status, refused.json.message]).toEqual([
      422,
      'PersistentVolumeClaim "data" is invalid: spec.volumeAttributesClassName: Forbidden: ' +
        'update is forbidden when the VolumeAttributesClass feature gate is disabled',
    ])
    await world.settle()
    expect(world.has()).toEqual({ iops: '1000' })
    expect((await world.status()).currentVolumeAttributesClassName).toBe('gold')
    await world.close()

    world = await aWorld({ medium, fake })
    world.start()
    await world.setClass('silver')
    await world.untilSettled('silver')
    expect(world.has()).toEqual({ iops: '500' })
  })

  it('VAC-12 resumes a modification when the gate is on again', async () => {
    const medium = memoryMedium()
    world = await aWorld({ medium })
    await world.aClass('gold', { iops: '1000' })
    await world.aClaim()
    world.fails('INTERNAL')
    world.start()
    await world.setClass('gold')
    await world.until(() => world.events.length === 2, 'the failure')
    const { fake } = world
    await world.close()
    const before = fake.record.calls.length

    const gates = 'VolumeAttributesClass=false'
    world = await aWorld({ medium, gates, fake })
    world.rules([])
    world.start({ gates: parseFeatureGates(gates) })
    await world.settle()
    expect(fake.record.calls.length - before).toBeLessThanOrEqual(4) // what it is, at the start
    expect((await world.status()).modifyVolumeStatus?.status).toBe('InProgress')
    await world.close()

    world = await aWorld({ medium, fake })
    world.start()
    await world.untilSettled('gold')
  })

  it.each([
    'VolumeAttributesClass=false',
    'VolumeProvisionedIO=false',
    'VolumeAttributesClass=false,VolumeProvisionedIO=false',
  ])(
    'VAC-12 PIO-1 gates on in the API server, controller with %s: stores values and ignores what is off',
    async (off) => {
      await silverAndGold()
      await world.aClaim('data', { className: 'silver', has: { iops: '500' } })
      const gates = parseFeatureGates(off)
      world.start({ gates })
      await world.setClass('gold')
      await world.setIo({ throughput: '10' })
      await world.settle()
      const { currentVolumeAttributesClassName, capacity } = await world.status()
      expect(currentVolumeAttributesClassName).toBe(gates.enabled('VolumeAttributesClass') ? 'gold' : 'silver')
      expect(capacity?.throughput).toBe(gates.enabled('VolumeProvisionedIO') ? '10Mi' : undefined)
    },
  )

  it('PIO-1 rejects a class that contradicts amounts in effect while their gate is off', async () => {
    await silverAndGold()
    await world.aClaim('data', { io: { iops: '3k' }, has: { iops: '3000' } })
    world.start({ gates: parseFeatureGates('VolumeProvisionedIO=false') })
    await world.setClass('gold')
    await world.until(async () => (await world.status()).modifyVolumeStatus?.status === 'Infeasible', 'the refusal')
    expect(world.has()).toEqual({ iops: '3000' })
    expect((await world.status()).capacity?.iops).toBe('3k')
    expect(world.events.at(-1)?.message).toMatch(/requests 3k iops, but its VolumeAttributesClass says iops "1000"/)
  })
})

describe('many claims', () => {
  it('VAC-14 modifies 500 claims without errors, within the worker limit', async () => {
    await silverAndGold()
    const names = Array.from({ length: 500 }, (_, index) => `data-${index}`)
    for (const name of names) await world.aClaim(name, { className: 'silver', has: { iops: '500' } })
    let [running, most] = [0, 0]
    const modify = world.fake.controller.controllerModifyVolume
    Object.assign(world.fake.controller, {
      async controllerModifyVolume(...args: Parameters<typeof modify>) {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setImmediate(resolve))
        return modify(...args).finally(() => running--)
      },
    })
    const process = world.start({ workers: 7 })
    await Promise.all(names.map((name) => world.setClass('gold', name)))
    await world.until(() => world.reasons().filter((one) => one === 'VolumeModifySuccessful').length === 500, 'all')
    for (const name of names) expect(world.has(name)).toEqual({ iops: '1000' })
    expect(world.reasons()).not.toContain('VolumeModifyFailed')
    expect(most).toBe(7)
    expect(process.calls.filter((call) => call === 'commit')).toHaveLength(1_000)
    // One read of each volume before its first call: the undo record is built from it.
    expect(process.calls.filter((call) => call === 'get')).toHaveLength(500)
    expect(process.calls.filter((call) => call === 'list')).toEqual([])
  })

  it('VAC-14 PLUS-10 does not modify a volume during its expansion, within one worker limit', async () => {
    await silverAndGold()
    await world.aClaim('data', { className: 'silver', has: { iops: '500' } })
    const order: string[] = []
    let finish = () => {}
    const growing: VolumeChange = {
      name: 'expanding',
      matters: (next, old) => next.spec?.resources?.requests?.storage !== old.spec?.resources?.requests?.storage,
      async reconcile({ claim }) {
        if (claim.spec?.resources?.requests?.storage === '1Gi') return done
        order.push('growing')
        await new Promise<void>((resolve) => {
          finish = resolve
        })
        order.push('grown')
        return done
      },
    }
    world.start({ others: [growing] })
    await world.settle()
    await world.server.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'grows' },
      provisioner: 'p',
      allowVolumeExpansion: true,
    })
    await world.aClaim('both', { className: 'silver', storageClassName: 'grows', has: { iops: '500' } })
    await world.settle()
    await world.patchClaim('both', {
      spec: { volumeAttributesClassName: 'gold', resources: { requests: { storage: '2Gi' } } },
    })
    await world.until(() => order.includes('growing'), 'the expansion')
    await world.settle()
    expect(world.modifyCalls()).toEqual([])
    finish()
    await world.untilSettled('gold', 'both')
    expect(order).toEqual(['growing', 'grown'])
  })
})

describe('size and attributes in one edit', () => {
  async function aGrowingClaim(): Promise<void> {
    await silverAndGold()
    await world.server.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'grows' },
      provisioner: 'disks.example.com',
      allowVolumeExpansion: true,
    })
    await world.aClaim('data', { className: 'silver', storageClassName: 'grows', has: { iops: '500' } })
  }
  const edit = (size: string, volumeAttributesClassName: string) =>
    world.patchClaim('data', { spec: { volumeAttributesClassName, resources: { requests: { storage: size } } } })
  const changes = () => world.fake.record.calls.map(({ method }) => method).filter((one) => /Expand|Modify/.test(one))

  it('PLUS-10 expand first, then modify', async () => {
    await aGrowingClaim()
    world.start({ expands: true })
    await edit('2Gi', 'gold')
    await world.until(() => changes().length === 2, 'both')
    await world.until(async () => (await world.volume()).spec?.volumeAttributesClassName === 'gold', 'the class')
    expect(changes()).toEqual(['ControllerExpandVolume', 'ControllerModifyVolume'])
    expect(world.fake.state.volumes['vol-data']).toMatchObject({ capacityBytes: 2 * 1024 ** 3 })
    expect(world.has()).toEqual({ iops: '1000' })
    expect(world.fake.record.overlaps).toEqual([])
  })

  it('PLUS-10 modify although the size is infeasible', async () => {
    await aGrowingClaim()
    world.fake.script.setRules([{ method: 'ControllerExpandVolume', effect: { do: 'fail', code: 'OUT_OF_RANGE' } }])
    world.start({ expands: true })
    await edit('2Gi', 'gold')
    await world.until(async () => (await world.status()).currentVolumeAttributesClassName === 'gold', 'the class')
    expect((await world.status()).allocatedResourceStatuses).toEqual({ storage: 'ControllerResizeInfeasible' })
  })

  it('PLUS-10 count as one change: the next edit waits for the cooldown and records an event', async () => {
    await aGrowingClaim()
    world.start({ expands: true, throttle: { cooldownMs: 3_600_000, budget: { changes: 1, periodMs: 60_000 } } })
    await edit('2Gi', 'gold')
    await world.until(async () => (await world.volume()).spec?.volumeAttributesClassName === 'gold', 'the class')
    expect(changes()).toHaveLength(2)
    await edit('2Gi', 'silver')
    await world.until(() => world.reasons().includes('VolumeChangeDelayed'), 'the event')
    await world.server.clock.advance(3_000_000)
    await world.settle()
    expect(changes()).toHaveLength(2)
    await world.server.clock.advance(900_000)
    await world.until(async () => (await world.volume()).spec?.volumeAttributesClassName === 'silver', 'the class')
    expect(world.reasons().filter((one) => one === 'VolumeChangeDelayed')).toHaveLength(1)
    expect(world.has()).toEqual({ iops: '500' })
  })

  it('PLUS-10 roll back without delay', async () => {
    await aGrowingClaim()
    world.rules([{ effect: { do: 'loseReply', as: 'unavailable' }, times: 1 }])
    world.start({ throttle: { cooldownMs: 3_600_000, budget: { changes: 1, periodMs: 3_600_000 } } })
    await world.setClass('gold')
    await world.until(() => world.reasons().includes('VolumeModifyFailed'), 'the failure')
    await world.setClass('silver')
    await world.untilSettled('silver')
    expect(world.has()).toEqual({ iops: '500' })
  })
})

describe('quota', () => {
  it('PIO-7 charges a higher amount at once, and releases a lower one after the driver has confirmed', async () => {
    world = await aWorld()
    await world.server.post(QUOTAS, { metadata: { name: 'io' }, spec: { hard: { 'limits.iops': '1000' } } })
    await world.server.patch(`${QUOTAS}/io/status`, {
      status: { hard: { 'limits.iops': '1000' }, used: { 'limits.iops': '0' } },
    })
    const used = async () => (await world.server.get(`${QUOTAS}/io`)).json.status.used['limits.iops']
    await world.aClaim('data', { io: { iops: '500' }, has: { iops: '500' } })
    expect(await used()).toBe('500')
    const refused = await world.server.patch(CLAIM, { spec: { resources: { requests: { iops: '1001' } } } })
    expect(refused.status).toBe(403)
    world.rules([{ effect: { do: 'hang' } }])
    world.start()
    await world.setIo({ iops: '100' })
    await world.until(() => world.fake.script.hanging === 1, 'the call')
    expect(await used()).toBe('500')
    world.fake.script.release()
    await world.until(async () => (await used()) === '100', 'the charge to fall')
  })
})

describe('metrics', () => {
  it('VAC-11 PIO-9 count calls and failures, for classes and for amounts', async () => {
    await silverAndGold()
    await world.aClaim('data', { className: 'silver', has: { iops: '500' } })
    const registry = new Registry()
    world.start({ metrics: createModifyingMetrics(registry) })
    world.fails('UNAVAILABLE', 1)
    await world.setClass('gold')
    await world.untilSettled('gold')
    world.fails('OUT_OF_RANGE', 1)
    await world.setIo({ throughput: '10' })
    await world.until(
      () => world.reasons().includes('VolumeModifyFailed') && world.modifyCalls().length === 3,
      'the refusal',
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
