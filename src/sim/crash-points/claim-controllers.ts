// Runs the production controllers of claims as simulated processes: the binder with protection and an in-process plugin; and
// a provisioner for a CSI driver.
import { createBindingControllers, RunningProvisioners } from '../../controllers/binding/index.ts'
import { createProtectionControllers } from '../../controllers/protection/index.ts'
import { createCsiProvisioner } from '../../controllers/provisioning/csi/index.ts'
import { createProvisioningControllers } from '../../controllers/provisioning/index.ts'
import type { ProvisionerPlugin } from '../../controllers/provisioning/plugin/contract.ts'
import { provisionerOf } from '../../controllers/provisioning/plugin.ts'
import {
  type CsiDriver,
  CsiError,
  type DriverFacts,
  readDriverFacts,
  serializeCalls,
  waitUntilReady,
} from '../../csi/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { commonDeps, type ProcessContext } from '../engine/process-host.ts'
import type { Env } from '../environment/process.ts'
import { DRIVER } from './crash-point.ts'

const OPTIONS = { bindsOnSave: true }
const INTENT_LEASE = { namespace: 'kube-system', name: 'stowage-intents' }
const RESTART_DELAY_MS = 1_000

export async function runBinder({ env, client }: ProcessContext, plugin: ProvisionerPlugin): Promise<void> {
  const deps = controllerDeps(env, client)
  const provisioner = provisionerOf(plugin, { clock: env.clock })
  const options = { ...OPTIONS, inProcess: true }
  const runningProvisioners = new RunningProvisioners()
  await Promise.all([
    createProtectionControllers(deps).run(env.signal),
    createBindingControllers({ ...deps, inProcessProvisioners: [provisioner], runningProvisioners }).run(env.signal),
    createProvisioningControllers({ ...deps, provisioner, options, runningProvisioners }).run(env.signal),
  ])
}

export async function runProvisioner(context: ProcessContext): Promise<void> {
  const { env, client } = context
  const { driver, facts } = await connectDriver(context)
  const deps = controllerDeps(env, client)
  const provisioner = createCsiProvisioner({ ...deps, driver, facts })
  const options = { ...OPTIONS, intentLease: INTENT_LEASE } // used without transactions
  await createProvisioningControllers({ ...deps, provisioner, options }).run(env.signal)
}

export const controllerDeps = (env: Env, client: ProcessContext['client']) => {
  const { clock, random, log } = commonDeps(env)
  return { client, caches: createCacheSet({ client, clock, random }), clock, random, log }
}

/** Connects to the driver. Retries errors after which a real process would end and be restarted. */
export async function connectDriver({
  env,
  connect,
}: ProcessContext): Promise<{ driver: CsiDriver; facts: DriverFacts }> {
  const { clock, log, signal } = commonDeps(env)
  const driver = serializeCalls(connect({ address: DRIVER, clock, log }))
  for (;;) {
    try {
      await waitUntilReady(driver, { clock, log, signal })
      return { driver, facts: await readDriverFacts(driver, signal) }
    } catch (error) {
      if (!(error instanceof CsiError)) throw error
      await clock.sleep(RESTART_DELAY_MS)
    }
  }
}
