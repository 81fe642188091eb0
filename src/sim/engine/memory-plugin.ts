// A provisioner plugin that stores its volumes in memory: the in-process provisioner of the simulated system.
import type { ProvisionerPlugin } from '../../controllers/provisioning/plugin/contract.ts'
import { MEMORY_PLUGIN, MEMORY_PLUGIN_PATH } from '../plan/catalog.ts'

export interface MemoryPluginOptions {
  /** The sizes of the volumes in the plugin's storage, by name. The storage outlives the process. */
  readonly volumes: Map<string, bigint>
  /** Calls the storage. */
  call<T>(description: string, operation: () => T): Promise<T>
  onDelete(volumeName: string): void
}

export function createMemoryPlugin({ volumes, call, onDelete }: MemoryPluginOptions): ProvisionerPlugin {
  const resultOf = (name: string) => ({
    sizeBytes: volumes.get(name)!,
    source: { hostPath: { path: MEMORY_PLUGIN_PATH + name } },
  })
  return {
    name: MEMORY_PLUGIN,
    accessModes: ['ReadWriteOnce', 'ReadWriteMany'],
    provision: ({ volumeName, sizeBytes }) =>
      call(`provision ${volumeName}`, () => {
        if (!volumes.has(volumeName)) volumes.set(volumeName, sizeBytes)
        return resultOf(volumeName)
      }),
    delete: ({ source }) => {
      const name = source.hostPath?.path.slice(MEMORY_PLUGIN_PATH.length) ?? ''
      onDelete(name)
      return call(`delete ${name}`, () => void volumes.delete(name))
    },
    find: ({ volumeName }) =>
      call(`find ${volumeName}`, () => (volumes.has(volumeName) ? resultOf(volumeName) : undefined)),
    owns: ({ source }) => source.hostPath?.path.startsWith(MEMORY_PLUGIN_PATH) ?? false,
  }
}
