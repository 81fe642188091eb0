// Runs the process of `stowage up` and `stowage server`: opens the store, wires the API server, controllers and nodes, and runs
// until it is stopped.

import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { parseFeatureGates } from '../../api/feature-gates.ts'
import type { ExpansionQuota } from '../../api/kind.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import {
  type ApiRequest,
  createApiServer,
  createBuiltIns,
  createJournal,
  createNodeConnections,
  inProcessClient,
  type Journal,
  limitEvents,
  listenHttps,
  openOperationBoard,
  type Pki,
  type PublishedService,
  parseRuntimeConfig,
  publishKubernetesService,
  SYSTEM_USER,
  versionInfo,
} from '../../apiserver/index.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { writePrivateFile } from '../../base/files.ts'
import { type ListenAddress, urlOf } from '../../base/listen-address.ts'
import type { Logger } from '../../base/log.ts'
import { asUsageError } from '../../base/usage-error.ts'
import { openDirectoryPlugin, openRoot, type Root } from '../../controllers/provisioning/directory/index.ts'
import type { Provisioner } from '../../controllers/provisioning/index.ts'
import { provisionerOf } from '../../controllers/provisioning/plugin.ts'
import type { ThrottleOptions } from '../../controllers/volume-changes/index.ts'
import type { PodOptions } from '../../nodeagent/index.ts'
import { stopWithin } from '../../runtime/stop-within.ts'
import type { Store } from '../../store/index.ts'
import type { LostVolumePolicy } from '../../volumes/lost-volume-policy.ts'
import type { Placement } from '../../volumes/placement.ts'
import { buildKubeconfig } from '../kubeconfig.ts'
import type { TlsFiles } from '../open-store.ts'
import { parseStore } from '../store-location.ts'
import { openAccessControl } from './access-control.ts'
import type { AccountTokenSettings } from './account-tokens.ts'
import type { AuditSettings } from './audit.ts'
import { registerCertificateMetrics } from './certificate-metrics.ts'
import { publishClusterInfo } from './cluster-info.ts'
import type { RunningComponents } from './components.ts'
import { kubeconfigOf, openDataDirectory } from './data-directory.ts'
import type { DriverSource } from './drivers/driver-source.ts'
import type { DriverReport } from './drivers/start-drivers.ts'
import { followEncryption } from './encryption.ts'
import { findServerEndpoint } from './endpoint.ts'
import { createLocalDriverObjects, directoryClass } from './initial-objects.ts'
import { startJournal } from './journal.ts'
import { markIdleNodes } from './nodes/idle-nodes.ts'
import type { StartedNodes } from './nodes/local-nodes.ts'
import { findLocalAddress } from './nodes/local-streams.ts'
import { directoryOf, localNodeNames, type NodeNames, sharedNodeNames } from './nodes/node-names.ts'
import { connectAsViewer, followPeerOperations } from './peer-operations.ts'
import { copyPkiSource, followPkiSource } from './pki-source.ts'
import { type WrittenServerRecord, writeServerRecord } from './server-record.ts'
import { addStoreChecks } from './store-checks.ts'
import { writeUpstreamConfigMaps } from './upstream-config-maps.ts'

export interface ServeOptions {
  readonly dataDir: string
  /** Value of the flag --store. Undefined for the embedded store. */
  readonly store: string | undefined
  readonly etcdTls: TlsFiles
  /** Directory of keys and certificates. Servers that share a store need the same credentials. Default: in dataDir. */
  readonly pkiDir: string | undefined
  /** Directory from which shared credentials are copied to pkiDir. */
  readonly pkiSource: string | undefined
  readonly listen: ListenAddress
  /** Host names and addresses in the serving certificate, in addition to those that the server detects. */
  readonly servingHosts: readonly string[]
  readonly accountTokens: AccountTokenSettings
  readonly featureGates: string
  readonly expansionQuota: ExpansionQuota
  readonly runtimeConfig: string
  readonly historyMinutes: number
  /** The rate at which the embedded store is read in the background to find damage. 0 for never. */
  readonly scrubBytesPerSecond: number
  /** Whether to upgrade an etcd store without checksums to the newest format. */
  readonly upgradesEtcdFormat: boolean
  readonly audit: AuditSettings
  /** Whether to record changes to volumes in the journal, for timelines, metrics and traces. */
  readonly hasJournal: boolean
  /** Returns the journal that the server uses in place of its own. Benchmarks switch it on and off. Default: its own. */
  wrapJournal?(journal: Journal, store: Store): Journal
  /** The OTLP URL for traces of claims. Default: none are sent. */
  readonly tracesUrl: string | undefined
  /** The configuration file for encryption at rest. Default: encryption.yaml in pkiDir. */
  readonly encryptionProviderConfig: string | undefined
  /** Whether controllers run in this process. */
  readonly runsControllers: boolean
  /** Whether to compile hot code in the background after the start. */
  readonly warmsUp: boolean
  /** Directory for the volumes of the class "directory". Default: in dataDir. */
  readonly volumesDir: string | undefined
  /** The CSI drivers given with --driver. */
  readonly drivers: readonly DriverSource[]
  /** Number of nodes to run in this process, each with its own driver. Default: 3, or 1 on etcd. */
  readonly nodes: number | undefined
  readonly poolBytes: number | undefined
  readonly maxVolumesPerNode: number | undefined
  /** Options of the pods on this machine's nodes. */
  readonly podOptions: PodOptions
  /** Whether the scheduler runs with the controllers. */
  readonly runsScheduler: boolean
  /** How long a driver must be missing on a node before its capacity objects are deleted. Default: 10 min. */
  readonly capacityMissingForMs: number | undefined
  /** Whether the scheduler reserves capacity for assigned pods until the driver reports it as used. */
  readonly reservesCapacity: boolean
  /** The placement policy for classes without one. */
  readonly defaultPlacement: Placement | undefined
  readonly lostVolumePolicy: LostVolumePolicy | undefined
  /** How long a node may be silent before it counts as unreachable. Default: 40 s. */
  readonly nodeMonitorGraceMs: number | undefined
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
  /** Called when a driver given with --driver is ready, has a problem or has recovered. */
  onDriver(report: DriverReport): void
}

export interface ReadyServer {
  readonly url: string
  readonly kubeconfig: string
  readonly dataDir: string
  /** Number of nodes that are starting. */
  readonly nodes: number
}

const DEFAULT_NODES = 3
const DEFAULT_NODES_SHARED = 1

export async function serve(options: ServeOptions): Promise<void> {
  const { dataDir, clock, random, log, signal } = options
  const gates = asUsageError(() => parseFeatureGates(options.featureGates), '--feature-gates')
  const runtimeConfig = asUsageError(() => parseRuntimeConfig(options.runtimeConfig, ALL_KINDS))
  const location = parseStore(options.store)
  const isStoreShared = location.is === 'etcd'
  const nodeCount = countNodes(options, isStoreShared)
  const hasDrivers = options.drivers.length > 0
  const nameOf = isStoreShared ? sharedNodeNames({ hostname: hostname(), dataDir }) : localNodeNames
  const nodesDir = join(dataDir, 'nodes')
  if (hasDrivers) {
    const { checkDriverSources } = await import('./drivers/start-drivers.ts')
    checkDriverSources(options.drivers, listHosts({ dir: nodesDir, count: nodeCount, nameOf }))
  }
  const pkiDir = options.pkiDir ?? join(dataDir, 'pki')
  await copyPkiSource({ ...options, pkiDir })
  const { store, encryption } = await openDataDirectory({ ...options, pkiDir, location })
  let record: WrittenServerRecord | undefined
  try {
    record = await writeServerRecord({ ...options, pkiDir, isStoreShared })
    // Directory volumes work on one machine only. The root is opened first, so that a missing disk fails the start.
    const volumesRoot = options.runsControllers && !isStoreShared ? await openVolumesRoot(options) : undefined
    const { address } = await findServerEndpoint(options.listen)
    let url = ''
    const access = await openAccessControl({
      ...options,
      store,
      pkiDir,
      hosts: [...listCertificateHosts(options.listen), address, ...options.servingHosts],
      serverUrl: () => url,
    })
    const { pki } = access.credentials
    const journal = options.hasJournal ? openJournal(options, { store, isStoreShared }) : undefined
    const operations = await openOperationBoard({ clock, onActivities: journal?.addActivities })
    const server = createApiServer({
      ...access.serverOptions,
      store,
      operations,
      journal,
      clock,
      random,
      log,
      kinds: ALL_KINDS,
      gates,
      expansionQuota: options.expansionQuota,
      runtimeConfig,
      version: versionInfo(),
      nodeConnections: createNodeConnections({
        pki,
        clock,
        localAddressOf: (name) => (isStoreShared ? undefined : findLocalAddress(name, nodeCount, nameOf)),
      }),
    })
    const updateCertificateMetrics = registerCertificateMetrics(server.metrics.registry, pki)
    access.auditing.registerMetrics(server.metrics.registry)
    const bootstrap = server.health.addReadiness('bootstrap')
    addStoreChecks(server.health, store, { isStoreShared })
    let lastRequestMs = Number.NEGATIVE_INFINITY
    const handle = (request: ApiRequest) => {
      lastRequestMs = clock.monotonicMs()
      return server.handle(request)
    }
    const listener = await listenHttps({ handle, pki, ...options.listen, clock, log })
    url = urlOf(listener)
    // The first part to end stops the others.
    const stop = new AbortController()
    setMaxListeners(0, stop.signal) // every watch of every controller adds a listener
    let components: RunningComponents | undefined
    let service: PublishedService | undefined
    let warmUpEnd: Promise<void> | undefined
    try {
      await createBuiltIns(server.objects, volumesRoot ? [directoryClass(nodeCount === 0 && !hasDrivers)] : [])
      const client = inProcessClient(server.objects, SYSTEM_USER)
      await access.start(server, client, stop.signal)
      const endpoint = { address, port: listener.port }
      await limitEvents({ store, clock, log, registry: server.metrics.registry, signal: stop.signal })
      if (journal) await startJournal(journal, { ...options, store, server, signal: stop.signal })
      service = await publishKubernetesService({ store, clock, random, log, endpoint, isStoreShared })
      await writeUpstreamConfigMaps({ client, caCert: pki.caCert, clock })
      await publishClusterInfo(client, { server: url, caCert: pki.caCert })
      if (nodeCount > 0 || isStoreShared) await createLocalDriverObjects(client, { mayBeDefault: !hasDrivers })
      const idleNodes = options.runsControllers
        ? await markIdleNodes({ dir: nodesDir, count: nodeCount, nameOf, client, clock })
        : []
      if (idleNodes.length > 0)
        log.warn({ nodes: idleNodes }, 'nodes of an earlier start are not running; increase --nodes to start them')
      const kubeconfig = kubeconfigOf(dataDir)
      const writeKubeconfig = ({ caCert, admin }: Pki) =>
        writePrivateFile(kubeconfig, buildKubeconfig({ server: url, caCert, credential: admin }))
      await writeKubeconfig(pki)
      const onRenewed = async (renewedPki: Pki) => {
        updateCertificateMetrics(renewedPki)
        await writeKubeconfig(renewedPki)
      }
      await access.credentials.follow({ listener, server, onRenewed, signal: stop.signal })
      await followPkiSource({ ...options, pkiDir }, stop.signal)
      const inProcessProvisioners = volumesRoot ? [await openDirectoryProvisioner(volumesRoot, options)] : []
      await record.setReady(url)
      bootstrap.ok()
      log.info({ url, dataDir, revision: store.revision }, 'ready')
      options.onReady({ url, kubeconfig, dataDir, nodes: nodeCount })
      void followEncryption({ ...encryption, store, clock, log, signal: stop.signal })
      const connect = connectAsViewer({ pkiDir, caCert: pki.caCert, clock })
      if (isStoreShared)
        void followPeerOperations({ ...options, client, operations, endpoint, connect, signal: stop.signal })
      let onNodesReady = () => {}
      const nodesReady = new Promise<void>((resolve) => {
        onNodesReady = resolve
      })
      const { startComponents } = await import('./components.ts') // a server is ready without the modules of controllers and nodes
      components = startComponents({
        ...options,
        server,
        operationBoard: operations,
        journal,
        serverUrl: url,
        access,
        gates,
        isStoreShared,
        nodes: {
          count: nodeCount,
          nameOf,
          dir: nodesDir,
          poolBytes: options.poolBytes,
          maxVolumesPerNode: options.maxVolumesPerNode,
          podOptions: options.podOptions,
          volumesDirs: volumesRoot ? [volumesRoot.path] : [],
          idle: idleNodes,
        },
        inProcessProvisioners,
        signal: stop.signal,
        onNodes: (nodes) => {
          options.onNodes(nodes)
          onNodesReady()
        },
      })
      if (options.warmsUp) {
        const { warmUp } = await import('../warm-up/warm-up.ts')
        const started = nodeCount > 0 ? nodesReady : Promise.resolve()
        const common = { ...options, gates, pki, signal: stop.signal }
        warmUpEnd = warmUp({ ...common, started, lastRequestMs: () => lastRequestMs })
      }
      await Promise.race([waitUntilStopped(signal, store), components.firstExit])
      log.info({}, 'stopping; waiting for requests in flight')
    } finally {
      bootstrap.fail('the server is shutting down')
      stop.abort(signal.reason)
      const parts = { ...components?.stop(), requests: listener.stop(), service: service?.stop(), warmUp: warmUpEnd }
      await stopWithin(parts, { clock, log })
      await stopWithin({ audit: access.auditing.close(), operations: operations.close() }, { clock, log })
    }
  } finally {
    await stopWithin({ store: store.close(), record: record?.remove() }, { clock, log })
    log.info({}, 'stopped')
  }
}

/** Nodes run only if the controllers do. By default, servers that share a store run one node each. */
function countNodes({ nodes, runsControllers }: ServeOptions, isStoreShared: boolean): number {
  if (!runsControllers) return 0
  return nodes ?? (isStoreShared ? DEFAULT_NODES_SHARED : DEFAULT_NODES)
}

function openJournal(
  options: ServeOptions,
  { store, isStoreShared }: { store: Store; isStoreShared: boolean },
): Journal {
  const journal = createJournal({ clock: options.clock, random: options.random, isStoreShared })
  return options.wrapJournal?.(journal, store) ?? journal
}

/** Returns a host for each node of this process. Without nodes, returns one host, because drivers also run without nodes. */
function listHosts({
  dir,
  count,
  nameOf,
}: {
  readonly dir: string
  readonly count: number
  readonly nameOf: NodeNames
}) {
  const numbers = Array.from({ length: Math.max(1, count) }, (_, index) => index + 1)
  return numbers.map((number) => ({ name: nameOf(number), dir: join(dir, directoryOf(number)) }))
}

const openVolumesRoot = ({ dataDir, volumesDir, random }: ServeOptions): Promise<Root> =>
  openRoot(volumesDir ?? join(dataDir, 'volumes'), { file: join(dataDir, 'volumes.id'), random })

const openDirectoryProvisioner = async (root: Root, { clock, log }: ServeOptions): Promise<Provisioner> =>
  provisionerOf(await openDirectoryPlugin({ root, log }), { clock })

/** Returns the additional host names for the serving certificate. */
const listCertificateHosts = ({ host }: ListenAddress): string[] => (host === '0.0.0.0' || host === '::' ? [] : [host])

/** Resolves when the process is stopped; rejects when the store fails. */
const waitUntilStopped = (signal: AbortSignal, store: Store) =>
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

/** A prefix that matches no key. */
const NO_KEY = '\u0000'
