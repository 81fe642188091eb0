import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDirectoryPlugin } from '../controllers/provisioning/directory/index.ts'
import type { AnyProvisionerPlugin } from '../controllers/provisioning/plugin/contract.ts'
import {
  defineProvisioner,
  type ExistingVolume,
  InfeasibleError,
  type ProvisionedVolume,
  parameter,
} from './provisioner.ts'
import { startTestCluster, testProvisioner } from './testing.ts'

/** A plugin that keeps its volumes in a map. */
function memoryPlugin(overrides: Partial<AnyProvisionerPlugin> = {}) {
  const assets = new Map<string, string>()
  const plugin = defineProvisioner({
    name: 'example.com/memory',
    parameters: { tier: parameter.choice(['fast', 'slow'], { doc: 'which disks', default: 'slow' }) },
    labels: { tier: ['fast', 'slow'] },
    async provision({ volumeName, sizeBytes, parameters, labels }) {
      const tier = assets.get(volumeName) ?? parameters.tier
      if (!labels.tier.some((accepted) => accepted === tier)) throw new InfeasibleError(`the class is ${tier}`)
      assets.set(volumeName, tier)
      return { sizeBytes, source: { nfs: { server: tier, path: `/${volumeName}` } }, labels: { tier } }
    },
    async delete({ name }) {
      assets.delete(name)
    },
    owns: ({ source }) => source.nfs !== undefined,
  }) as AnyProvisionerPlugin
  return { assets, plugin: { ...plugin, ...overrides } }
}

describe('testProvisioner', () => {
  it('PROV-17 passes a correct provisioner and leaves nothing behind', async () => {
    const { assets, plugin } = memoryPlugin()
    await testProvisioner(plugin, { claim: { parameters: { tier: 'fast' } } })
    expect([...assets]).toEqual([])
  })

  it('PROV-12 PROV-17 tests another class if one is given', async () => {
    const seen = new Set<string>()
    const { plugin } = memoryPlugin()
    const { provision } = plugin
    plugin.provision = async (request, call) => {
      seen.add(String(request.parameters.tier))
      return provision(request, call)
    }
    const claim = { parameters: { tier: 'fast' } }
    await testProvisioner(plugin, { claim })
    expect([...seen]).toEqual(['fast', 'slow'])
    seen.clear()
    await testProvisioner(plugin, { claim, otherParameters: { tier: 'fast' } })
    expect([...seen]).toEqual(['fast'])
    const wrong = testProvisioner(plugin, { claim, otherParameters: { tier: 'warp' } })
    await expect(wrong).rejects.toThrow('otherParameters: Class "another" has "warp"')
  })

  it('PROV-12 PROV-17 accepts a provisioner that reports an unknown outcome for the other class', async () => {
    const { plugin } = memoryPlugin()
    const { provision } = plugin
    plugin.provision = async (request, call) => {
      if (request.parameters.tier === 'fast') throw new Error('the pool is another')
      return provision(request, call)
    }
    await testProvisioner(plugin)
  })

  describe('with a directory', () => {
    let root: string
    beforeEach(async () => {
      root = await mkdtemp(join(tmpdir(), 'stowage-conformance-'))
    })
    afterEach(() => rm(root, { recursive: true, force: true }))

    it('PROV-17 passes the built-in directory provisioner', async () => {
      await testProvisioner(await openDirectoryPlugin({ root }), { claim: { parameters: { mode: '0700' } } })
      expect(await readdir(root)).toEqual([])
    })
  })

  const BROKEN: [string, Partial<AnyProvisionerPlugin>, string][] = [
    [
      'returns one volume for all claims',
      { provision: async ({ sizeBytes }) => ({ sizeBytes, source: { nfs: { server: 's', path: '/' } } }) },
      'two claims get two volumes',
    ],
    [
      'creates another volume for the same request',
      { provision: async ({ sizeBytes }) => ({ sizeBytes, source: { nfs: { server: 's', path: `/${counter++}` } } }) },
      'the same request returns the same volume',
    ],
    [
      'creates another volume for another class',
      {
        provision: async ({ volumeName, sizeBytes, parameters }) => ({
          sizeBytes,
          source: { nfs: { server: String(parameters.tier), path: `/${volumeName}` } },
        }),
      },
      'the volume name, not the parameters, identifies the volume',
    ],
    [
      'denies the earlier volume for another class',
      {
        async provision({ volumeName, sizeBytes, parameters }) {
          if (parameters.tier === 'fast') throw new InfeasibleError('not here')
          return { sizeBytes, source: { nfs: { server: 's', path: `/${volumeName}` } } }
        },
      },
      'the volume name, not the parameters, identifies the volume: the earlier one is returned. Got "not here"',
    ],
    ['does not find its volume', { find: async () => undefined }, 'find returns the provisioned volume'],
    ['owns everything', { owns: () => true }, 'owns rejects a foreign volume'],
    [
      'fails to delete a deleted volume',
      {
        delete: (() => {
          const gone = new Set<string>()
          return async ({ name }: { name: string }) => {
            if (gone.has(name)) throw new Error('no such volume')
            gone.add(name)
          }
        })(),
      },
      'deleting a deleted volume succeeds',
    ],
  ]
  let counter = 0
  for (const [what, overrides, name] of BROKEN) {
    it(`PROV-17 fails a provisioner that ${what}`, async () => {
      const { plugin } = memoryPlugin(overrides)
      await expect(testProvisioner(plugin)).rejects.toThrow(`The provisioner breaks a rule: ${name}`)
    })
  }
})

describe('volume sources', () => {
  const local = { source: { local: { path: '/mnt/disk' } }, reachableFrom: [{ 'kubernetes.io/hostname': 'n1' }] }
  const MADE: Partial<ProvisionedVolume>[] = [
    { source: { hostPath: { path: '/x', type: 'DirectoryOrCreate' } } },
    local,
    { source: { nfs: { server: 'filer', path: '/x', readOnly: true } } },
    {
      source: { iscsi: { targetPortal: '10.0.0.1', iqn: 'iqn.2026-01.com.example:x', lun: 3, portals: ['10.0.0.2'] } },
    },
    { source: { fc: { targetWWNs: ['50060e801049cfd1'], lun: 0 } } },
    { source: { flexVolume: { driver: 'example.com/flex', options: { a: 'b' } } } },
    { source: { csi: { driver: 'csi.example.com', volumeHandle: 'h', volumeAttributes: { a: 'b' } } } },
  ]
  for (const made of MADE) {
    it(`PROV-11 ${Object.keys(made.source!)[0]} is stored unchanged, and passed to delete`, async () => {
      const deleted: ExistingVolume[] = []
      const cluster = await startTestCluster({
        name: 'example.com/one',
        provision: async ({ sizeBytes }) => ({ sizeBytes, ...made }) as ProvisionedVolume,
        delete: async (volume) => void deleted.push(volume),
      })
      try {
        const volume = await cluster.provision()
        expect(volume.source).toMatchObject(made.source!)
        await cluster.release(volume)
        expect(deleted[0]?.source).toEqual(volume.source)
      } finally {
        await cluster.stop()
      }
    })
  }
})

describe('startTestCluster', () => {
  let cluster: Awaited<ReturnType<typeof startTestCluster>>
  const memory = memoryPlugin()
  beforeEach(async () => {
    cluster = await startTestCluster(memory.plugin)
  })
  afterEach(() => cluster.stop())

  it('PROV-17 returns the volume of a claim', async () => {
    const volume = await cluster.provision({ size: '5Gi', parameters: { tier: 'fast' } })
    expect(volume).toMatchObject({
      source: { nfs: { server: 'fast', path: `/${volume.name}` } },
      sizeBytes: 5n * 1024n ** 3n,
      labels: { tier: 'fast' },
      annotations: { 'pv.kubernetes.io/provisioned-by': 'example.com/memory' },
    })
  })

  it('PROV-10 rejects with the reason if provisioning fails', async () => {
    await expect(cluster.provision({ parameters: { teir: 'fast' } })).rejects.toThrow('does not know: "teir"')
    const selector = { matchLabels: { tier: 'fast' } }
    await expect(cluster.provision({ parameters: { tier: 'slow' }, selector })).rejects.toThrow('the class is slow')
    await expect(cluster.provision({ selector: { matchLabels: { colour: 'red' } } })).rejects.toThrow('"colour"')
  })

  it('PROV-14 deletes the volume with its claim', async () => {
    const volume = await cluster.provision()
    expect(memory.assets.has(volume.name)).toBe(true)
    await cluster.release(volume)
    expect(memory.assets.has(volume.name)).toBe(false)
  })
})
