// A plugin that stores its volumes in maps.
import { defineProvisioner } from '../controllers/provisioning/plugin/check-plugin.ts'
import type { AnyProvisionerPlugin } from '../controllers/provisioning/plugin/contract.ts'
import { InfeasibleError } from '../controllers/provisioning/plugin/failures.ts'
import { parameter } from '../controllers/provisioning/plugin/parameter.ts'

export function createMemoryPlugin(overrides: Partial<AnyProvisionerPlugin> = {}) {
  const volumeTiers = new Map<string, string>()
  const volumeSizes = new Map<string, bigint>()
  const plugin = defineProvisioner({
    name: 'example.com/memory',
    parameters: { tier: parameter.choice(['fast', 'slow'], { doc: 'tier of the disks', default: 'slow' }) },
    labels: { tier: ['fast', 'slow'] },
    async provision({ volumeName, sizeBytes, parameters, labels }) {
      const tier = volumeTiers.get(volumeName) ?? parameters.tier
      if (!labels.tier.some((accepted) => accepted === tier)) throw new InfeasibleError(`the class is ${tier}`)
      volumeTiers.set(volumeName, tier)
      return { sizeBytes, source: { nfs: { server: tier, path: `/${volumeName}` } }, labels: { tier } }
    },
    async delete({ name }) {
      volumeTiers.delete(name)
    },
    async expand({ volume: { name, sizeBytes: currentBytes }, sizeBytes: requestedBytes }) {
      if (requestedBytes > (volumeSizes.get(name) ?? currentBytes)) volumeSizes.set(name, requestedBytes)
      return { sizeBytes: volumeSizes.get(name) ?? currentBytes }
    },
    owns: ({ source }) => source.nfs !== undefined,
  }) as AnyProvisionerPlugin
  return { volumeTiers, plugin: { ...plugin, ...overrides } }
}
