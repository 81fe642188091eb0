import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openDirectoryPlugin } from '../controllers/provisioning/directory/index.ts'
import type { AnyProvisionerPlugin } from '../controllers/provisioning/plugin/contract.ts'
import { createMemoryPlugin } from './memory-plugin.fixture.ts'
import { InfeasibleError } from './provisioner.ts'
import { testProvisioner } from './testing.ts'

describe('testProvisioner', () => {
  it('PROV-17 passes a correct provisioner and deletes all volumes', async () => {
    const { volumeTiers, plugin } = createMemoryPlugin()
    await testProvisioner(plugin, { claim: { parameters: { tier: 'fast' } } })
    expect([...volumeTiers]).toEqual([])
  })

  it('PROV-17 repeats the request with the parameters of another class, which must be valid', async () => {
    const requestedTiers = new Set<string>()
    const { plugin } = createMemoryPlugin()
    const { provision } = plugin
    plugin.provision = async (request, call) => {
      requestedTiers.add(String(request.parameters.tier))
      return provision(request, call)
    }
    const claim = { parameters: { tier: 'fast' } }
    await testProvisioner(plugin, { claim })
    expect([...requestedTiers]).toEqual(['fast', 'slow'])
    requestedTiers.clear()
    await testProvisioner(plugin, { claim, otherParameters: { tier: 'fast' } })
    expect([...requestedTiers]).toEqual(['fast'])
    const result = testProvisioner(plugin, { claim, otherParameters: { tier: 'warp' } })
    await expect(result).rejects.toThrow('otherParameters: Class "another" has "warp"')
  })

  it('PROV-17 accepts a provisioner that reports an unknown outcome for the other class', async () => {
    const { plugin } = createMemoryPlugin()
    const { provision } = plugin
    plugin.provision = async (request, call) => {
      if (request.parameters.tier === 'fast') throw new Error('the class has another pool')
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

  const BROKEN_PLUGINS: [string, Partial<AnyProvisionerPlugin>, string][] = [
    [
      'returns one volume for all claims',
      { provision: async ({ sizeBytes }) => ({ sizeBytes, source: { nfs: { server: 's', path: '/' } } }) },
      'two claims get two volumes',
    ],
    [
      'creates another volume for the same request',
      {
        provision: async ({ sizeBytes }) => ({
          sizeBytes,
          source: { nfs: { server: 's', path: `/${volumeCount++}` } },
        }),
      },
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
      'reports no volume for another class, even though it created one earlier',
      {
        async provision({ volumeName, sizeBytes, parameters }) {
          if (parameters.tier === 'fast') throw new InfeasibleError('no fast disks')
          return { sizeBytes, source: { nfs: { server: 's', path: `/${volumeName}` } } }
        },
      },
      'the volume name, not the parameters, identifies the volume: the earlier one is returned. Got "no fast disks"',
    ],
    ['shrinks a volume', { expand: async ({ sizeBytes }) => ({ sizeBytes }) }, 'a volume never shrinks'],
    [
      'expands further with each call',
      {
        expand: (() => {
          let sizeBytes = 2n * 1024n ** 3n
          return async () => ({ sizeBytes: sizeBytes++ })
        })(),
      },
      'expanding an expanded volume returns its size',
    ],
    ['does not find its volume', { find: async () => undefined }, 'find returns the provisioned volume'],
    ['claims to own every volume', { owns: () => true }, 'owns rejects a foreign volume'],
    [
      'fails to delete a deleted volume',
      {
        delete: (() => {
          const deletedNames = new Set<string>()
          return async ({ name }: { name: string }) => {
            if (deletedNames.has(name)) throw new Error('no such volume')
            deletedNames.add(name)
          }
        })(),
      },
      'deleting a deleted volume succeeds',
    ],
  ]
  let volumeCount = 0
  for (const [flaw, overrides, rule] of BROKEN_PLUGINS) {
    it(`PROV-17 fails a provisioner that ${flaw}`, async () => {
      const { plugin } = createMemoryPlugin(overrides)
      await expect(testProvisioner(plugin)).rejects.toThrow(`The provisioner breaks a rule: ${rule}`)
    })
  }
})
