// The processes of a cluster that places pods where their volumes fit: the scheduler, the controllers around claims, and
// what stands beside the CSI driver: its provisioner and the producer of capacity objects. All of it is production code.
import { setMaxListeners } from 'node:events'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createBindingControllers } from '../../controllers/binding/index.ts'
import { createCapacityControllers } from '../../controllers/capacity/index.ts'
import { createEphemeralController } from '../../controllers/ephemeral/index.ts'
import { createGarbageController } from '../../controllers/garbage-collection/index.ts'
import { createProtectionControllers } from '../../controllers/protection/index.ts'
import { createCsiProvisioner } from '../../controllers/provisioning/csi/index.ts'
import { createProvisioningControllers } from '../../controllers/provisioning/index.ts'
import { type CsiDriver, serializeCalls } from '../../csi/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { createScheduler, type Scheduler } from '../../scheduler/index.ts'
import type { Env } from '../process.ts'
import { factsOf } from './claims-become-volumes-processes.ts'

export const CAPACITY_NAMESPACE = 'kube-system'
const CAPACITY_WORKERS = 10

export function runScheduler(env: Env, client: Client, options: { readonly capacityReservation: boolean }): Scheduler {
  const scheduler = createScheduler({ ...depsOf(env, client), ...options })
  void scheduler.run(env.signal)
  return scheduler
}

/** What turns a pod's templates into claims, binds them, and clears up after pods that are gone. */
export function runClaimControllers(env: Env, client: Client): void {
  const deps = depsOf(env, client)
  void createBindingControllers({ ...deps, inProcess: [] }).run(env.signal)
  void createProtectionControllers(deps).run(env.signal)
  void createEphemeralController(deps).run(env.signal)
  void createGarbageController({ ...deps, kinds: [podKind, persistentVolumeClaimKind] }).run(env.signal)
}

/** Beside the driver. Local storage: a volume is wanted on the selected node and nowhere else. */
export async function runStorage(env: Env, client: Client, driver: CsiDriver): Promise<void> {
  const csi = serializeCalls(driver)
  const facts = await factsOf(csi, env)
  const deps = { ...depsOf(env, client), driver: csi, facts }
  const provisioner = createCsiProvisioner({ ...deps, options: { strictTopology: true } })
  const options = { namespace: CAPACITY_NAMESPACE, workers: CAPACITY_WORKERS }
  void createProvisioningControllers({ ...deps, provisioner }).run(env.signal)
  await createCapacityControllers({ ...deps, mode: { is: 'central' }, options }).run(env.signal)
}

function depsOf({ clock, random, signal }: Env, client: Client) {
  setMaxListeners(0, signal) // every claim and pod in work listens to it
  return { client, caches: createCacheSet({ client, clock, random }), clock, random, log: silentLog }
}
