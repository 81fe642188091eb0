import { Registry } from 'prom-client'
import { afterEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { ApiError } from '../../api/status-error.ts'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import { type BindingFixture, createBindingFixture } from './binding.fixture.ts'
import { createBindingMetrics } from './metrics.ts'

const AVAILABLE_STATUS = { status: { phase: 'Available' } }

let fixture: BindingFixture
afterEach(() => fixture.stop())

async function start(fixtureOptions?: Parameters<typeof createBindingFixture>[0]) {
  const registry = new Registry()
  fixture = await createBindingFixture({ bindingMetrics: createBindingMetrics(registry), ...fixtureOptions })
  return async (name: string) =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith(name) && !line.includes('_bucket'))
}

describe('binding metrics', () => {
  it('VAC-11 count volumes and claims by class, mode and plugin', async () => {
    const metricLines = await start()
    await fixture.createVolume('bound', AVAILABLE_STATUS)
    await fixture.createVolume('free', {
      size: '9Gi',
      spec: { storageClassName: 'gold', volumeMode: 'Block' },
      ...AVAILABLE_STATUS,
    })
    const csi = { hostPath: undefined, csi: { driver: 'd.example.com', volumeHandle: 'h' } }
    await fixture.createVolume('csi', { spec: { ...csi, storageClassName: 'gold' }, ...AVAILABLE_STATUS })
    await fixture.createClaim('c')
    await fixture.createClaim('waits', {
      size: '50Gi',
      spec: { storageClassName: 'silver', volumeAttributesClassName: 'fast' },
    })
    await fixture.settle()
    expect((await metricLines('pv_collector_')).sort()).toEqual(
      [
        'pv_collector_total_pv_count{plugin_name="kubernetes.io/host-path",volume_mode="Filesystem"} 1',
        'pv_collector_total_pv_count{plugin_name="kubernetes.io/csi:d.example.com",volume_mode="Filesystem"} 1',
        'pv_collector_total_pv_count{plugin_name="kubernetes.io/host-path",volume_mode="Block"} 1',
        'pv_collector_bound_pv_count{storage_class=""} 1',
        'pv_collector_bound_pvc_count{namespace="default",storage_class="",volume_attributes_class=""} 1',
        'pv_collector_unbound_pv_count{storage_class="gold"} 2',
        'pv_collector_unbound_pvc_count{namespace="default",storage_class="silver",volume_attributes_class="fast"} 1',
      ].sort(),
    )
    await fixture.client.patch(
      persistentVolumeKind,
      { name: 'csi' },
      { type: 'merge', body: { metadata: { finalizers: null } } },
    )
    await fixture.client.delete(persistentVolumeKind, { name: 'csi' })
    await fixture.settle()
    expect(await metricLines('pv_collector_unbound_pv_count')).toEqual([
      'pv_collector_unbound_pv_count{storage_class="gold"} 1',
    ])
  })

  it('SYS-11 count assignments of the default class and their failures', async () => {
    let failures = 1
    const metricLines = await start({
      wrapClient: (client) => ({
        ...client,
        commit: async (writes, options) => {
          const isAssignment = JSON.stringify(writes.map((write) => 'patch' in write && write.patch.body)).includes(
            'storageClassName',
          )
          if (isAssignment && failures-- > 0) throw new ApiError(500, 'InternalError', 'injected')
          return client.commit(writes, options)
        },
      }),
    })
    await fixture.createClaim('c')
    await fixture.settle()
    await fixture.createClass('usual', {
      metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    })
    await fixture.settle()
    expect(await metricLines('retroactive_storageclass')).toEqual([
      'retroactive_storageclass_total 2',
      'retroactive_storageclass_errors_total 1',
    ])
  })

  it('SYS-11 measure provisioning until the claim is bound, and deletion of a volume', async () => {
    const metricLines = await start()
    await fixture.createClass('gold')
    const { metadata } = await fixture.createClaim('c', { spec: { storageClassName: 'gold' } })
    await fixture.settle()
    await fixture.api.clock.advance(3_000)
    await fixture.createVolume('provisioned', {
      spec: { storageClassName: 'gold', persistentVolumeReclaimPolicy: 'Delete' },
      annotations: { [PROVISIONED_BY]: 'disk.example.com' },
      claim: { name: 'c', uid: metadata.uid },
    })
    await fixture.settle()
    await fixture.client.patch(
      persistentVolumeClaimKind,
      { namespace: 'default', name: 'c' },
      { type: 'merge', body: { metadata: { finalizers: null } } },
    )
    await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'c' })
    await fixture.settle()
    await fixture.api.clock.advance(5_000)
    await fixture.client.patch(
      persistentVolumeKind,
      { name: 'provisioned' },
      { type: 'merge', body: { metadata: { finalizers: null } } },
    )
    await fixture.client.delete(persistentVolumeKind, { name: 'provisioned' })
    await fixture.settle()
    expect(await metricLines('volume_operation_total_seconds')).toEqual([
      'volume_operation_total_seconds_sum{plugin_name="disk.example.com",operation_name="provision"} 3',
      'volume_operation_total_seconds_count{plugin_name="disk.example.com",operation_name="provision"} 1',
      'volume_operation_total_seconds_sum{plugin_name="disk.example.com",operation_name="delete"} 5',
      'volume_operation_total_seconds_count{plugin_name="disk.example.com",operation_name="delete"} 1',
    ])
  })

  it('SYS-11 count volumes without a deleter as failed deletions', async () => {
    const metricLines = await start()
    await fixture.createVolume('pv', {
      claim: { name: 'gone', uid: 'gone' },
      spec: { persistentVolumeReclaimPolicy: 'Delete' },
    })
    await fixture.settle()
    expect(await metricLines('volume_operation_errors_total')).toEqual([
      'volume_operation_errors_total{plugin_name="N/A",operation_name="delete"} 1',
    ])
  })
})
