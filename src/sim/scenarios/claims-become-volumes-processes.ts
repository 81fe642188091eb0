// The production controllers as processes of a world: the binder with protection and a plugin of its own, and a
// provisioner for a CSI driver. What stands between a process and the world is given by the scenario.
import { setMaxListeners } from 'node:events'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createBindingControllers } from '../../controllers/binding/index.ts'
import { createProtectionControllers } from '../../controllers/protection/index.ts'
import { createCsiProvisioner } from '../../controllers/provisioning/csi/index.ts'
import { createProvisioningControllers } from '../../controllers/provisioning/index.ts'
import type { ProvisionerPlugin } from '../../controllers/provisioning/plugin/contract.ts'
import { provisionerOf } from '../../controllers/provisioning/plugin.ts'
import {
  type CsiDriver,
  CsiError,
  type DriverFacts,
  driverFacts,
  serializeCalls,
  waitUntilReady,
} from '../../csi/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { PLUGIN_PATH, pluginAsset } from '../checkers/assets.ts'
import type { Env } from '../process.ts'

/** With or without a plugin whose volumes it makes and deletes itself. */
export function runBinder(env: Env, client: Client, plugin?: ProvisionerPlugin, options = BINDS_AT_ONCE): void {
  const { clock, random, signal } = env
  setMaxListeners(0, signal) // every claim in work listens to it
  const caches = createCacheSet({ client, clock, random })
  const deps = { client, caches, clock, random, log: silentLog }
  const inProcess = plugin ? [provisionerOf(plugin, { clock })] : []
  void createProtectionControllers(deps).run(signal)
  void createBindingControllers({ ...deps, inProcess }).run(signal)
  for (const provisioner of inProcess) {
    void createProvisioningControllers({ ...deps, provisioner, options: { ...options, inProcess: true } }).run(signal)
  }
}

/** As in the program; where a commit is not one transaction it makes no difference. */
const BINDS_AT_ONCE = { bindsOnSave: true }

export async function runProvisioner(
  env: Env,
  client: Client,
  driver: CsiDriver,
  options = BINDS_AT_ONCE,
): Promise<void> {
  const { clock, random, signal } = env
  const csi = serializeCalls(driver)
  const facts = await factsOf(csi, env)
  setMaxListeners(0, signal) // every claim in work listens to it
  const caches = createCacheSet({ client, clock, random })
  const deps = { client, caches, clock, random, log: silentLog }
  const provisioner = createCsiProvisioner({ ...deps, driver: csi, facts })
  await createProvisioningControllers({ ...deps, provisioner, options }).run(signal)
}

/** A real process would end when the driver fails here, and be started again. */
export async function factsOf(csi: CsiDriver, { clock, signal }: Env): Promise<DriverFacts> {
  for (;;) {
    try {
      await waitUntilReady(csi, { clock, log: silentLog, signal })
      return await driverFacts(csi, signal)
    } catch (error) {
      if (!(error instanceof CsiError)) throw error
      await clock.sleep(RESTART_MS)
    }
  }
}

const RESTART_MS = 1_000

export const PLUGIN = 'memory.stowage.example/plugin'

/** A plugin whose storage outlives its process, as any storage does. `pass` is the way there and back. */
export function memoryPlugin(
  assets: Map<string, bigint>,
  pass: <T>(what: string, act: () => T) => Promise<T>,
  destroys: (asset: string) => void,
): ProvisionerPlugin {
  const made = (name: string) => ({ sizeBytes: assets.get(name)!, source: { hostPath: { path: PLUGIN_PATH + name } } })
  return {
    name: PLUGIN,
    accessModes: ['ReadWriteOnce', 'ReadWriteMany'],
    provision: ({ volumeName, sizeBytes }) =>
      pass(`provision ${volumeName}`, () => {
        if (!assets.has(volumeName)) assets.set(volumeName, sizeBytes)
        return made(volumeName)
      }),
    delete: ({ source }) => {
      const name = source.hostPath?.path.slice(PLUGIN_PATH.length) ?? ''
      destroys(pluginAsset(name))
      return pass(`delete ${name}`, () => void assets.delete(name))
    },
    find: ({ volumeName }) => pass(`find ${volumeName}`, () => (assets.has(volumeName) ? made(volumeName) : undefined)),
    owns: ({ source }) => source.hostPath?.path.startsWith(PLUGIN_PATH) ?? false,
  }
}
