// A cluster for the warm-up, which exists only in memory: an API server, the controllers and a CSI driver, composed as `stowage up` composes
// them, with a store, metrics, journal and audit of their own. Functions of the same source text share type feedback and
// machine code, so that work of this cluster also compiles the code of the real one.
import { setMaxListeners } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import type { FeatureGates } from '../../api/feature-gates.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import {
  createApiServer,
  createAudit,
  createAuthenticator,
  createBootstrapRoles,
  createBuiltIns,
  createHttpsServer,
  createJournal,
  createRbac,
  defaultAuditPolicy,
  inProcessClient,
  limitEvents,
  openOperationBoard,
  type Pki,
  parseRuntimeConfig,
  SYSTEM_USER,
  standardAdmission,
  versionInfo,
} from '../../apiserver/index.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { createClientMetrics, createOperationRegistry } from '../../runtime/index.ts'
import { openMemoryStore } from '../../store/index.ts'
import { runControllers } from '../controllers.ts'
import { createComponentClients } from '../server/component-clients.ts'
import { cancellableClock } from './cancellable-clock.ts'
import { serveSyntheticDriver } from './synthetic-driver.ts'
import { connectSyntheticUser, type SyntheticUser } from './synthetic-user.ts'

export interface SyntheticClusterOptions {
  readonly gates: FeatureGates
  /** The credentials of the real server, which need not be generated again. */
  readonly pki: Pick<Pki, 'caCert' | 'servingCert' | 'servingKey' | 'admin'>
  readonly clock: Clock
  readonly random: Random
  /** Ends the use of the cluster early. */
  readonly signal: AbortSignal
  /** The connections of its user. */
  readonly connections: number
}

/** Starts the cluster, calls `use` with its user, and stops the cluster. Rejects if the signal is aborted. */
export async function withSyntheticCluster(
  options: SyntheticClusterOptions,
  use: (user: SyntheticUser) => Promise<void>,
): Promise<void> {
  const { clock, cancelTimers } = cancellableClock(options.clock)
  const stop = new AbortController()
  setMaxListeners(0, stop.signal) // every watch of every controller adds a listener
  const closers: (() => unknown)[] = []
  try {
    await runCluster({ ...options, clock, stop: stop.signal, closers }, use)
  } finally {
    stop.abort()
    for (const close of closers.reverse()) await close()
    cancelTimers()
  }
}

interface RunOptions extends SyntheticClusterOptions {
  readonly stop: AbortSignal
  /** Receives the functions that close the parts, in the order of their creation. */
  readonly closers: (() => unknown)[]
}

async function runCluster(options: RunOptions, use: (user: SyntheticUser) => Promise<void>): Promise<void> {
  const { clock, random, gates, pki, connections, stop: signal, closers } = options
  const common = { clock, random, log: silentLog, signal }
  const store = await openMemoryStore({ clock })
  closers.push(() => store.close())
  const rbac = createRbac({ store, clock, log: silentLog })
  const journal = createJournal({ clock, random, isStoreShared: false })
  const operations = await openOperationBoard({ clock, onActivities: journal.addActivities })
  closers.push(() => operations.close())
  const server = createApiServer({
    ...common,
    store,
    operations,
    journal,
    kinds: ALL_KINDS,
    gates,
    runtimeConfig: parseRuntimeConfig('', ALL_KINDS),
    version: versionInfo(),
    authenticator: createAuthenticator({ caCert: pki.caCert, tokenAuthenticators: [], apiAudiences: [], clock }),
    authorizer: rbac.authorizer,
    admission: standardAdmission([rbac.escalationCheck]),
    audit: createAudit({ policy: await defaultAuditPolicy(), write: () => {}, clock }),
  })
  await createBuiltIns(server.objects)
  const client = inProcessClient(server.objects, SYSTEM_USER)
  await createBootstrapRoles(client, server.resources)
  await rbac.start({ client, signal })
  await limitEvents({ ...common, store, registry: server.metrics.registry })

  const { api, csi, remove } = await createSockets()
  closers.push(remove)
  const driver = await serveSyntheticDriver(csi, clock)
  closers.push(() => driver.stop())
  const listener = createHttpsServer({ ...common, handle: server.handle, pki })
  await listener.listen({ path: api })
  closers.push(() => listener.stop())

  const operationRegistry = createOperationRegistry({ process: 'warm-up', clock })
  operationRegistry.subscribe(operations.applyLocal)
  journal.recordActivitiesOf(operationRegistry)
  const registry = new Registry()
  const metrics = createClientMetrics(registry, operationRegistry)
  const clientOf = createComponentClients({ ...common, server, authorizer: rbac.authorizer, metrics })
  const controllers = runControllers({
    ...common,
    registry,
    metrics,
    client: clientOf('manager'),
    clientOf,
    gates,
    rootCa: pki.caCert,
    isStoreShared: false,
    inProcessProvisioners: [],
    drivers: [{ address: csi }],
  })
  closers.push(() => controllers.catch(() => {}))

  async function runUser(): Promise<void> {
    const user = await connectSyntheticUser({ socket: api, pki, connections, signal })
    await user.createClaims()
    await remove() // all connections are open now, and a process that is killed later leaves no files
    await use(user)
  }
  await Promise.race([runUser(), controllers, rejectWhenAborted(options.signal)])
}

/** Creates a directory for the sockets that only this user can access. */
async function createSockets() {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-warm-up-'))
  return { api: join(dir, 'api'), csi: join(dir, 'csi'), remove: () => rm(dir, { recursive: true, force: true }) }
}

const rejectWhenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
