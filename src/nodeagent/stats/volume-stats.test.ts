// Tests the volume stats that the agent exports as metrics.
import { describe, expect, it } from 'vitest'
import { createAgentFixture, PODS } from '../agent.fixture.ts'

describe('the stats of a volume', () => {
  it('SYS-7 PIO-8 are exported as metrics until the pod is deleted', async () => {
    const rates = { readIops: 10, writeIops: 30, readBps: 1_000, writeBps: 2_000 }
    const fixture = await createAgentFixture({ agent: { ratesAt: async () => rates } })
    await fixture.createVolume('orders', { pv: { capacity: { storage: '1Gi', iops: '100', throughput: '10Mi' } } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    const exportedSamples = async () => {
      const lines = (await fixture.registry.metrics())
        .split('\n')
        .filter((line) => /^(kubelet|stowage)_volume/.test(line))
      return lines.map((line) => line.replace('namespace="default",persistentvolumeclaim="orders"', 'claim'))
    }
    await fixture.waitUntil(async () => (await exportedSamples()).length > 0, 'the metrics of the volume')
    expect(await exportedSamples()).toEqual([
      'kubelet_volume_stats_capacity_bytes{claim} 1073741824',
      'kubelet_volume_stats_available_bytes{claim} 1073741824',
      'kubelet_volume_stats_used_bytes{claim} 0',
      'stowage_volume_iops_used{claim,direction="read"} 10',
      'stowage_volume_iops_used{claim,direction="write"} 30',
      'stowage_volume_iops_available{claim,direction="read"} 90',
      'stowage_volume_iops_available{claim,direction="write"} 70',
      'stowage_volume_throughput_used_bytes{claim,direction="read"} 1000',
      'stowage_volume_throughput_used_bytes{claim,direction="write"} 2000',
      'stowage_volume_throughput_available_bytes{claim,direction="read"} 10484760',
      'stowage_volume_throughput_available_bytes{claim,direction="write"} 10483760',
    ])
    expect(await fixture.registry.metrics()).toMatch(
      /storage_operation_duration_seconds_count\{volume_plugin="kubernetes.io\/csi:fake.stowage.example",operation_name="volume_mount",status="success",migrated="false"\} 1/,
    )
    await fixture.server.delete(`${PODS}/shop`)
    await fixture.waitUntilDeleted('shop')
    await fixture.waitUntil(
      async () => (await exportedSamples()).length === 0,
      'the metrics of the volume to be removed',
    )
  })

  it('include the growth per day, from an hour after the volume was mounted', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    const growth = async () =>
      /^stowage_volume_growth_bytes_per_day\{.*\} .*$/m.exec(await fixture.registry.metrics())?.[0]
    await fixture.waitUntil(
      async () => (await fixture.registry.metrics()).includes('kubelet_volume_stats_used_bytes{'),
      'the usage of the volume',
    )
    expect(await growth()).toBe(undefined)
    for (let minute = 0; minute < 63; minute++) {
      await fixture.server.clock.advance(60_000)
      await fixture.waitUntilIdle()
    }
    expect(await growth()).toMatch(/\{namespace="default",persistentvolumeclaim="orders"\} 0$/)
  })

  it('PIO-8 use the provisioned IO of the attributes class if the volume has none', async () => {
    const rates = { readIops: 10, writeIops: 30, readBps: 1_000, writeBps: 2_000 }
    const fixture = await createAgentFixture({ agent: { ratesAt: async () => rates } })
    await fixture.server.post('/apis/storage.k8s.io/v1/volumeattributesclasses', {
      metadata: { name: 'gold' },
      driverName: 'fake.stowage.example',
      parameters: { iops: '500' },
    })
    await fixture.createVolume('orders', { pv: { volumeAttributesClassName: 'gold' } })
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    await fixture.waitUntil(
      async () => /stowage_volume_iops_available\{.*direction="read"\} 490$/m.test(await fixture.registry.metrics()),
      'the iops of the class',
    )
  })

  it('SYS-7 are collected with NodeGetVolumeStats every one to two minutes', async () => {
    const fixture = await createAgentFixture()
    await fixture.createVolume('orders')
    await fixture.createPod('shop', ['orders'])
    await fixture.waitUntilRunning('shop')
    const countCalls = () => fixture.fake.record.calls.filter(({ method }) => method === 'NodeGetVolumeStats').length
    await fixture.waitUntil(() => countCalls() === 2, 'the first two calls')
    for (let minute = 0; minute < 10; minute++) {
      await fixture.server.clock.advance(60_000)
      await fixture.waitUntilIdle()
    }
    expect(countCalls()).toBeGreaterThanOrEqual(2 + 5)
    expect(countCalls()).toBeLessThanOrEqual(2 + 10)
  })
})
