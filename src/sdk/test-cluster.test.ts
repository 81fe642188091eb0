import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineProvisioner } from '../controllers/provisioning/plugin/check-plugin.ts'
import type { ExistingVolume, ProvisionedVolume } from '../controllers/provisioning/plugin/contract.ts'
import { parameter } from '../controllers/provisioning/plugin/parameter.ts'
import { createMemoryPlugin } from './memory-plugin.fixture.ts'
import { startTestCluster } from './test-cluster.ts'

describe('the test cluster', () => {
  const PROVISIONED_VOLUMES: Partial<ProvisionedVolume>[] = [
    { source: { hostPath: { path: '/x', type: 'DirectoryOrCreate' } } },
    { source: { local: { path: '/mnt/disk' } }, reachableFrom: [{ 'kubernetes.io/hostname': 'n1' }] },
    { source: { nfs: { server: 'filer', path: '/x', readOnly: true } } },
    {
      source: { iscsi: { targetPortal: '10.0.0.1', iqn: 'iqn.2026-01.com.example:x', lun: 3, portals: ['10.0.0.2'] } },
    },
    { source: { fc: { targetWWNs: ['50060e801049cfd1'], lun: 0 } } },
    { source: { flexVolume: { driver: 'example.com/flex', options: { a: 'b' } } } },
    { source: { csi: { driver: 'csi.example.com', volumeHandle: 'h', volumeAttributes: { a: 'b' } } } },
  ]
  for (const provisionedVolume of PROVISIONED_VOLUMES) {
    it(`PROV-11 stores a source of type ${Object.keys(provisionedVolume.source!)[0]} unchanged and passes it to delete`, async () => {
      const deletedVolumes: ExistingVolume[] = []
      const cluster = await startTestCluster({
        name: 'example.com/one',
        provision: async ({ sizeBytes }) => ({ sizeBytes, ...provisionedVolume }) as ProvisionedVolume,
        delete: async (volume) => void deletedVolumes.push(volume),
      })
      try {
        const volume = await cluster.provision()
        expect(volume.source).toMatchObject(provisionedVolume.source!)
        await cluster.release(volume)
        expect(deletedVolumes[0]?.source).toEqual(volume.source)
      } finally {
        await cluster.stop()
      }
    })
  }

  it("PROV-17 modifies a volume, and rejects with the event's message if that fails", async () => {
    const requests: unknown[] = []
    const plugin = defineProvisioner({
      name: 'example.com/disks',
      csiDriver: 'disks.example.com',
      attributes: { tier: parameter.choice(['fast', 'slow'], { doc: 'tier of the disks' }) },
      provision: async ({ volumeName, sizeBytes }) => ({
        sizeBytes,
        source: { csi: { driver: 'disks.example.com', volumeHandle: volumeName } },
      }),
      delete: async () => {},
      modify: async ({ volume, attributes }) => void requests.push([volume.name, attributes]),
    })
    const cluster = await startTestCluster(plugin)
    try {
      const volume = await cluster.provision()
      await cluster.modify(volume, { tier: 'fast' })
      expect(requests).toEqual([[volume.name, { tier: 'fast' }]])
      await expect(cluster.modify(volume, { tier: 'warp' })).rejects.toThrow('expected fast or slow')
    } finally {
      await cluster.stop()
    }
  })
})

describe('a test cluster with a memory plugin', () => {
  let cluster: Awaited<ReturnType<typeof startTestCluster>>
  const memoryPlugin = createMemoryPlugin()
  beforeEach(async () => {
    cluster = await startTestCluster(memoryPlugin.plugin)
  })
  afterEach(() => cluster.stop())

  it('PROV-17 provisions the volume of a claim', async () => {
    const volume = await cluster.provision({ size: '5Gi', parameters: { tier: 'fast' } })
    expect(volume).toMatchObject({
      source: { nfs: { server: 'fast', path: `/${volume.name}` } },
      sizeBytes: 5n * 1024n ** 3n,
      labels: { tier: 'fast' },
      annotations: { 'pv.kubernetes.io/provisioned-by': 'example.com/memory' },
    })
  })

  it("PROV-10 rejects with the event's message if provisioning fails", async () => {
    await expect(cluster.provision({ parameters: { teir: 'fast' } })).rejects.toThrow('does not support: "teir"')
    const selector = { matchLabels: { tier: 'fast' } }
    await expect(cluster.provision({ parameters: { tier: 'slow' }, selector })).rejects.toThrow('the class is slow')
    await expect(cluster.provision({ selector: { matchLabels: { colour: 'red' } } })).rejects.toThrow('"colour"')
  })

  it("PROV-17 expands a volume, and rejects with the event's message if that fails", async () => {
    const volume = await cluster.provision({ size: '1Gi' })
    expect(await cluster.expand(volume, '3Gi')).toMatchObject({ name: volume.name, sizeBytes: 3n * 1024n ** 3n })
    const clusterWithoutExpand = await startTestCluster({ ...memoryPlugin.plugin, expand: undefined })
    try {
      const otherVolume = await clusterWithoutExpand.provision()
      await expect(clusterWithoutExpand.expand(otherVolume, '2Gi')).rejects.toThrow(
        'example.com/memory does not expand volumes',
      )
    } finally {
      await clusterWithoutExpand.stop()
    }
  })

  it('PROV-14 deletes the volume with its claim', async () => {
    const volume = await cluster.provision()
    expect(memoryPlugin.volumeTiers.has(volume.name)).toBe(true)
    await cluster.release(volume)
    expect(memoryPlugin.volumeTiers.has(volume.name)).toBe(false)
  })
})
