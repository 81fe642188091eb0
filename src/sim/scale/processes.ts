// Runs the processes of a cluster that schedules pods by storage capacity: the scheduler, the claim controllers, and the
// provisioner and capacity producer of a CSI driver. All of them are production code.
import { setMaxListeners } from 'node:events'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Client } from '../../client/index.ts'
import { createBindingControllers } from '../../controllers/binding/index.ts'
import { createCapacityControllers } from '../../controllers/capacity/index.ts'
import { createEphemeralController } from '../../controllers/ephemeral/index.ts'
import { createGarbageController } from '../../controllers/garbage-collection/index.ts'
import { createProtectionControllers } from '../../controllers/protection/index.ts'
import { createCsiProvisioner } from '../../controllers/provisioning/csi/index.ts'
import { createProvisioningControllers } from '../../controllers/provisioning/index.ts'
import { type CsiDriver, readDriverFacts, serializeCalls } from '../../csi/index.ts'
import { createScheduler, type Scheduler } from '../../scheduler/index.ts'
import { controllerDeps } from '../crash-points/claim-controllers.ts'
import type { Env } from '../environment/process.ts'

const CAPACITY_NAMESPACE = 'kube-system'
const CAPACITY_WORKERS = 10

export function runScheduler(env: Env, client: Client, options: { readonly reservesCapacity: boolean }): Scheduler {
  const scheduler = createScheduler({ ...depsOf(env, client), ...options })
  void scheduler.run(env.signal)
  return scheduler
}

/** Creates claims for ephemeral volumes, binds and protects claims, and deletes the claims of deleted pods. */
export function runClaimControllers(env: Env, client: Client): void {
  const deps = depsOf(env, client)
  void createBindingControllers({ ...deps, inProcessProvisioners: [] }).run(env.signal)
  void createProtectionControllers(deps).run(env.signal)
  void createEphemeralController(deps).run(env.signal)
  void createGarbageController({ ...deps, kinds: [podKind, persistentVolumeClaimKind] }).run(env.signal)
}

/** Runs the provisioner and the capacity producer. Storage is local, so a volume is created on the selected node only. */
export async function runStorage(env: Env, client: Client, driver: CsiDriver): Promise<void> {
  const csi = serializeCalls(driver)
  const facts = await readDriverFacts(csi, env.signal)
  const deps = { ...depsOf(env, client), driver: csi, facts }
  const provisioner = createCsiProvisioner({ ...deps, options: { strictTopology: true } })
  const options = { namespace: CAPACITY_NAMESPACE, workers: CAPACITY_WORKERS }
  void createProvisioningControllers({ ...deps, provisioner }).run(env.signal)
  await createCapacityControllers({ ...deps, mode: { is: 'central' }, options }).run(env.signal)
}

function depsOf(env: Env, client: Client) {
  setMaxListeners(0, env.signal) // one listener per claim and pod in progress
  return controllerDeps(env, client)
}
