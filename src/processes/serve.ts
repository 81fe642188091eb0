// The process of `stowage up` and `stowage server`: opens the store, wires the API server, controllers and nodes, and runs
// until it is stopped.
import { setMaxListeners } from 'node:events'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseFeatureGates } from '../api/feature-gates.ts'
import type { ExpansionQuota } from '../api/kind.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import {
  BRIEF_HISTORY_PREFIXES,
  createApiServer,
  createBootstrapRoles,
  createBuiltIns,
  createRbac,
  inProcessClient,
  listenHttps,
  type Pki,
  type PublishedService,
  parseRuntimeConfig,
  publishKubernetesService,
  SYSTEM_USER,
  serviceAccountAdmission,
  standardAdmission,
  versionInfo,
} from '../apiserver/index.ts'
import type { Clock, Random } from '../base/clock.ts'
import { requireDiskSpace } from '../base/disk-space.ts'
import { ensureDirectory, writePrivateFile } from '../base/files.ts'
import { type ListenAddress, urlOf } from '../base/listen-address.ts'
import type { Logger } from '../base/log.ts'
import { asUsageError, UsageError } from '../base/usage-error.ts'
import { openDirectoryPlugin, openRoot, type Root } from '../controllers/provisioning/directory/index.ts'
import type { Provisioner } from '../controllers/provisioning/index.ts'
import { provisionerOf } from '../controllers/provisioning/plugin.ts'
import type { ThrottleOptions } from '../controllers/volume-changes/index.ts'
import { createClientMetrics } from '../runtime/index.ts'
import { stopWithin } from '../runtime/stop-within.ts'
import type { Store } from '../store/index.ts'
import { type AccountTokenSettings, openAccountTokens } from './account-tokens.ts'
import { type AuditSettings, openAudit } from './audit.ts'
import { registerCertificateMetrics } from './certificate-metrics.ts'
import { publishClusterInfo } from './cluster-info.ts'
import { createComponentClients } from './component-clients.ts'
import { CONTROLLERS, type DriverEndpoint, runControllers } from './controllers.ts'
import { openCredentials } from './credentials.ts'
import { checkStoredValues, followEncryption, loadEncryption } from './encryption.ts'
import { markIdleNodes } from './idle-nodes.ts'
import { createLocalDriverObjects, directoryClass } from './initial-objects.ts'
import { buildKubeconfig } from './kubeconfig.ts'
import { type StartedNodes, startNodes } from './local-nodes.ts'
import { createNodeIdentity } from './node-identity.ts'
import { openStore, parseStore, storeDirOf, type TlsFiles, warnOfPlainText } from './open-store.ts'
import { serverEndpointOf } from './server-endpoint.ts'
import { writeUpstreamConfigMaps } from './upstream-config-maps.ts'

export interface ServeOptions {
  readonly dataDir: string
  /** Value of the flag --store. Undefined for the embedded store. */
  readonly store: string | undefined
  readonly etcdTls: TlsFiles
  /** Directory of keys and certificates. Servers that share a store need the same ones. Default: in dataDir. */
  readonly pkiDir: string | undefined
  readonly listen: ListenAddress
  readonly accountTokens: AccountTokenSettings
  readonly featureGates: string
  readonly expansionQuota: ExpansionQuota
  readonly runtimeConfig: string
  readonly historyMinutes: number
  readonly audit: AuditSettings
  /** File with the configuration of encryption at rest. Default: encryption.yaml in pkiDir. */
  readonly encryptionProviderConfig: string | undefined
  /** Whether controllers run in this process. */
  readonly hasControllers: boolean
  /** Directory for the volumes of the class "directory". Default: in dataDir. */
  readonly volumesDir: string | undefined
  /** Sockets of CSI drivers whose controllers run in this process. */
  readonly driverSockets: readonly string[]
  /** Number of nodes to run on this machine, each with its own driver. Default: DEFAULT_NODES with an embedded store. */
  readonly nodes: number | undefined
  readonly poolBytes: number | undefined
  /** Whether the commands of pods run as processes on this machine. */
  readonly runCommands: boolean
  /** Whether the scheduler runs with the controllers. */
  readonly hasScheduler: boolean
  /** How long a driver must be missing on a node before its capacity objects are deleted. Default: 10 min. */
  readonly capacityMissingForMs: number | undefined
  /** Whether the scheduler reserves capacity that is assigned to a pod and not yet reported as used. */
  readonly capacityReservation: boolean
  /** Rate limit for changes to the volumes of each driver. */
  readonly throttle: ThrottleOptions | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** Called when the API server is ready. */
  onReady(server: ReadyServer): void
  /** Called when all nodes are ready. */
  onNodes(nodes: StartedNodes): void
}

export interface ReadyServer {
  readonly url: string
  readonly kubeconfig: string
  readonly dataDir: string
  /** Number of nodes that are starting. */
  readonly nodes: number
}

/** The smallest number of nodes with which topology has an effect on most workloads. */
const DEFAULT_NODES = 3

/** Credentials and an empty store take a tenth of this. */
const START_BYTES_MIN = 4 * 2 ** 20

const BRIEF_HISTORY_MS = 90_000
const BRIEF_HISTORY_ENTRIES_MAX = 20_000

export async function serve(options: ServeOptions): Promise<void> {
  const { dataDir, clock, random, log, signal } = options
  const gates = asUsageError(() => parseFeatureGates(options.featureGates))
  const runtimeConfig = asUsageError(() => parseRuntimeConfig(options.runtimeConfig, ALL_KINDS))
  const location = parseStore(options.store)
  const nodeCount = nodeCountOf(options, location.is === 'embedded')
  const throwUnusable = (error: NodeJS.ErrnoException): never => {
    if (!error.syscall) throw error // an error of the store already has a message for users
    throw new Error(
      `Cannot use ${dataDir} as data directory: ${describeSystemError(error)}. Choose another with --data-dir.`,
    )
  }
  await ensureDirectory(dataDir).catch(throwUnusable)
  await requireDiskSpace(dataDir, START_BYTES_MIN)

  if (location.is === 'embedded') await checkStoreExists(dataDir)
  else warnOfPlainText(location, log)
  const pkiDir = options.pkiDir ?? join(dataDir, 'pki')
  const encryption = await loadEncryption({
    configFile: options.encryptionProviderConfig,
    pkiDir,
    storeDir: location.is === 'embedded' ? storeDirOf(dataDir) : undefined,
    log,
  }).catch(throwUnusable)
  const store = await openStore({
    transformer: encryption.encryption,
    location,
    tlsFiles: options.etcdTls,
    dataDir,
    clock,
    history: {
      keepMs: options.historyMinutes * 60_000,
      brief: { prefixes: BRIEF_HISTORY_PREFIXES, keepMs: BRIEF_HISTORY_MS, entriesMax: BRIEF_HISTORY_ENTRIES_MAX },
    },
  }).catch(throwUnusable)
  try {
    await checkStoredValues(store, encryption)
    // Directory volumes work on one machine only. The root is opened first, so that a missing disk fails the start.
    const volumesRoot =
      options.hasControllers && location.is === 'embedded' ? await openVolumesRoot(options) : undefined
    const { address } = await serverEndpointOf(options.listen)
    const hosts = [...hostsOf(options.listen), address]
    const credentials = await openCredentials({ dir: pkiDir, hosts, clock, log })
    const { pki } = credentials
    const rbac = createRbac({ store, clock, log })
    const auditing = await openAudit({ settings: options.audit, dataDir, clock, log })
    const nodeIdentity = createNodeIdentity({ store, clock, log, next: rbac.authorizer })
    let url = ''
    const accountTokens = await openAccountTokens({
      ...options.accountTokens,
      pkiDir,
      store,
      clock,
      log,
      serverUrl: () => url,
    })
    const authenticator = await credentials.createAuthenticator({
      tokenAuthenticators: [nodeIdentity.authenticateToken, accountTokens.authenticator],
      apiAudiences: accountTokens.apiAudiences,
    })
    const server = createApiServer({
      store,
      clock,
      random,
      log,
      kinds: ALL_KINDS,
      gates,
      expansionQuota: options.expansionQuota,
      runtimeConfig,
      authenticator,
      authorizer: nodeIdentity.authorizer,
      admission: standardAdmission([
        rbac.escalationCheck,
        ...nodeIdentity.admission,
        serviceAccountAdmission({ random, rootCa: pki.caCert }),
      ]),
      audit: auditing.audit,
      version: versionInfo(),
      accountTokens,
    })
    const updateCertificateMetrics = registerCertificateMetrics(server.metrics.registry, pki)
    auditing.registerMetrics(server.metrics.registry)
    const bootstrap = server.health.addReadiness('bootstrap')
    if (store.problem) server.health.addCheck(location.is === 'etcd' ? 'etcd' : 'store', () => store.problem!())
    const listener = await listenHttps({ handle: server.handle, pki, ...options.listen, clock, log })
    url = urlOf(listener)
    // The first part to end stops the others.
    const stop = new AbortController()
    setMaxListeners(0, stop.signal) // every watch of every controller adds a listener
    const parts: Record<string, Promise<unknown> | undefined> = {}
    let stopNodes = async () => {}
    let service: PublishedService | undefined
    try {
      await createBuiltIns(server.objects, volumesRoot ? [directoryClass(nodeCount === 0)] : [])
      await nodeIdentity.start(server, stop.signal)
      const client = inProcessClient(server.objects, SYSTEM_USER)
      await createBootstrapRoles(client, server.resources)
      await rbac.start({ client, signal: stop.signal })
      await accountTokens.start(stop.signal)
      const endpoint = { address, port: listener.port }
      service = await publishKubernetesService({
        store,
        clock,
        random,
        log,
        endpoint,
        isShared: location.is === 'etcd',
      })
      await writeUpstreamConfigMaps({ client, caCert: pki.caCert, clock })
      await publishClusterInfo(client, { server: url, caCert: pki.caCert })
      if (nodeCount > 0) await createLocalDriverObjects(client)
      const nodesDir = join(dataDir, 'nodes')
      const hasNodes = options.hasControllers && location.is === 'embedded'
      const idleNodes = hasNodes ? await markIdleNodes({ dir: nodesDir, count: nodeCount, client, clock }) : []
      if (idleNodes.length > 0)
        log.warn({ nodes: idleNodes }, 'nodes of an earlier start are not running; increase --nodes to start them')
      const kubeconfig = join(dataDir, 'admin.kubeconfig')
      const writeKubeconfig = ({ caCert, admin }: Pki) =>
        writePrivateFile(kubeconfig, buildKubeconfig({ server: url, caCert, credential: admin }))
      await writeKubeconfig(pki)
      const onRenewed = async (renewed: Pki) => {
        updateCertificateMetrics(renewed)
        await writeKubeconfig(renewed)
      }
      await credentials.follow({ listener, server, onRenewed, signal: stop.signal })
      const inProcessProvisioners = volumesRoot ? [await openDirectoryProvisioner(volumesRoot, options)] : []
      bootstrap.ok()
      log.info({ url, dataDir, revision: store.revision }, 'ready')
      options.onReady({ url, kubeconfig, dataDir, nodes: nodeCount })
      void followEncryption({ ...encryption, store, clock, log, signal: stop.signal })

      const ends: Promise<unknown>[] = [untilStopped(signal, store)]
      const { registry } = server.metrics
      const common = { registry, clock, random, log, signal: stop.signal }
      const { poolBytes, runCommands, capacityReservation } = options
      const drivers: DriverEndpoint[] = [...new Set(options.driverSockets)].map((address) => ({ address }))
      if (nodeCount > 0) {
        const clientOf = (node: string) => nodeIdentity.clientOf(server, node)
        const nodes = startNodes({
          ...common,
          clientOf,
          serverUrl: url,
          count: nodeCount,
          dir: nodesDir,
          poolBytes,
          runCommands,
        })
        void nodes.ready.then((ready) => options.onNodes({ ...ready, idle: idleNodes }))
        stopNodes = nodes.stop
        ends.push(nodes.failure)
        drivers.unshift(...nodes.drivers)
      }
      if (options.hasControllers) {
        const isShared = location.is === 'etcd'
        const metrics = createClientMetrics(registry)
        const clientOf = createComponentClients({ ...common, server, authorizer: rbac.authorizer, metrics })
        parts.controllers = runControllers({
          ...common,
          client: clientOf('manager'),
          clientOf,
          metrics,
          names: CONTROLLERS.filter((name) => options.hasScheduler || name !== 'scheduler'),
          capacityMissingForMs: options.capacityMissingForMs,
          throttle: options.throttle,
          rootCa: pki.caCert,
          isShared,
          gates,
          capacityReservation,
          drivers,
          inProcessProvisioners,
          onHealth: (health) => {
            // Not part of readiness: the API server serves requests without its controllers.
            const problem = async () => health['/healthz/leader-election']?.()
            if (isShared) server.health.addCheck('leader-election', problem, { isReadiness: false })
          },
        })
        parts.certificates = nodeIdentity.runControllers({ server, pki, random, signal: stop.signal })
        ends.push(parts.controllers, parts.certificates)
      }
      await Promise.race(ends)
      log.info({}, 'stopping; waiting for requests in flight')
    } finally {
      bootstrap.fail('the server is shutting down')
      stop.abort(signal.reason)
      await stopWithin(
        { ...parts, nodes: stopNodes(), requests: listener.stop(), service: service?.stop() },
        { clock, log },
      )
      await stopWithin({ audit: auditing.close() }, { clock, log })
    }
  } finally {
    await stopWithin({ store: store.close() }, { clock, log })
    log.info({}, 'stopped')
  }
}

/** Nodes run with an embedded store only: servers that share a store would all run the same nodes. */
function nodeCountOf({ nodes, hasControllers }: ServeOptions, isEmbedded: boolean): number {
  if (isEmbedded && hasControllers) return nodes ?? DEFAULT_NODES
  if (!nodes) return 0
  throw new UsageError(
    '--nodes requires the embedded store. With --store, start `stowage node` on each machine, or set --nodes 0.',
  )
}

const openVolumesRoot = ({ dataDir, volumesDir, random }: ServeOptions): Promise<Root> =>
  openRoot(volumesDir ?? join(dataDir, 'volumes'), { file: join(dataDir, 'volumes.id'), random })

const openDirectoryProvisioner = async (root: Root, { clock, log }: ServeOptions): Promise<Provisioner> =>
  provisionerOf(await openDirectoryPlugin({ root, log }), { clock })

/** Returns the host names for the serving certificate in addition to the built-in ones. */
const hostsOf = ({ host }: ListenAddress): string[] => (host === '0.0.0.0' || host === '::' ? [] : [host])

/**
 * Throws if a server was ready in this directory before and its store is missing or empty: starting with a new store would
 * hide the loss. The kubeconfig shows that a server was ready, because it is written then.
 */
async function checkStoreExists(dataDir: string): Promise<void> {
  const kubeconfig = join(dataDir, 'admin.kubeconfig')
  const file = join(dataDir, 'store', 'store.mdb')
  const sizeOf = (path: string) =>
    stat(path).then(
      ({ size }) => size,
      () => 0,
    )
  if ((await sizeOf(kubeconfig)) === 0 || (await sizeOf(file)) > 0) return
  throw new Error(
    `A server has been ready in ${dataDir} before, but its store ${file} is missing or empty. ` +
      `Restore it from a backup, or remove ${kubeconfig} to start with an empty one.`,
  )
}

function describeSystemError(error: NodeJS.ErrnoException): string {
  const descriptions: Record<string, string> = {
    EACCES: 'permission denied',
    EPERM: 'not permitted',
    EROFS: 'the file system is read-only',
    EEXIST: 'it is a file',
    ENOTDIR: 'a part of the path is a file',
    ENOENT: 'no directory can be created there',
    ENOSPC: 'the disk is full',
  }
  return descriptions[error.code ?? ''] ?? error.message
}

/** Resolves when the process is stopped; rejects when the store fails. */
const untilStopped = (signal: AbortSignal, store: Store) =>
  new Promise<void>((resolve, reject) => {
    const watch = store.watch({
      prefix: NO_KEY,
      afterRevision: store.revision,
      onEvents: () => {},
      onEnd: (reason) => reject(new Error(`The store has failed, so the server stops: ${reason.message}`)),
    })
    const stop = () => {
      watch.close()
      resolve()
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })

/** A prefix that no key has. */
const NO_KEY = '\u0000'
