// `stowage up` and `stowage server`: opens the store, wires the API server and its controllers, listens, and
// stays until it is told to stop. The whole system can be read off here.
import { setMaxListeners } from 'node:events'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseFeatureGates } from '../api/feature-gates.ts'
import type { ExpansionQuota } from '../api/kind.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import {
  BRIEF_PREFIXES,
  createApiServer,
  createAuthenticator,
  createBasicAuthorizer,
  createBuiltIns,
  inProcessClient,
  listenHttps,
  loadOrCreatePki,
  parseRuntimeConfig,
  versionInfo,
} from '../apiserver/index.ts'
import type { Clock, Random } from '../base/clock.ts'
import { ensureDirectory, writePrivateFile } from '../base/files.ts'
import { type ListenAddress, urlOf } from '../base/listen-address.ts'
import type { Logger } from '../base/log.ts'
import { UsageError } from '../base/usage-error.ts'
import { openDirectoryPlugin, openRoot, type Root } from '../controllers/provisioning/directory/index.ts'
import type { Provisioner } from '../controllers/provisioning/index.ts'
import { provisionerOf } from '../controllers/provisioning/plugin.ts'
import type { ThrottleOptions } from '../controllers/volume-changes/index.ts'
import { stopWithin } from '../runtime/stop-within.ts'
import type { Store } from '../store/index.ts'
import { showCertificates } from './certificate-metrics.ts'
import { type DriverEndpoint, runControllers } from './controllers.ts'
import { markIdleNodes } from './idle-nodes.ts'
import { directoryClass, introduceLocalDriver } from './initial-objects.ts'
import { buildKubeconfig } from './kubeconfig.ts'
import { type StartedNodes, startNodes } from './local-nodes.ts'
import { openStore, parseStore, type TlsFiles } from './open-store.ts'

export interface ServeOptions {
  readonly dataDir: string
  /** `--store` as given; the embedded store without it. */
  readonly store: string | undefined
  readonly etcdTls: TlsFiles
  /** Where keys and certificates are; servers that share a store need the same ones. Default: in dataDir. */
  readonly pkiDir: string | undefined
  readonly listen: ListenAddress
  readonly featureGates: string
  readonly expansionQuota: ExpansionQuota
  readonly runtimeConfig: string
  readonly historyMinutes: number
  /** Whether controllers run in this process too. */
  readonly controllers: boolean
  /** Where volumes that are directories are made. Default: in dataDir. */
  readonly volumesDir: string | undefined
  /** Sockets of CSI drivers whose volumes are to be provided. */
  readonly driverSockets: readonly string[]
  /** Nodes that are made on this machine, each with a driver of its own. Default: NODES, on an embedded store. */
  readonly nodes: number | undefined
  readonly poolBytes: number | undefined
  /** Whether commands of pods run as processes of this machine. */
  readonly runCommands: boolean
  /** Whether the scheduler holds back capacity that is promised and not yet reported. */
  readonly capacityReservation: boolean
  /** How fast volumes of each driver may be changed. */
  readonly throttle: ThrottleOptions | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  /** The API server is ready. */
  onReady(ready: Ready): void
  /** All nodes are ready. */
  onNodes(nodes: StartedNodes): void
}

export interface Ready {
  readonly url: string
  readonly kubeconfig: string
  readonly dataDir: string
  /** How many nodes are starting. */
  readonly nodes: number
}

/** Who the controllers are to the API server. */
const CONTROLLERS_USER = { name: 'system:stowage-controllers', groups: ['system:masters'] }

/** Enough for topology to mean something. */
const NODES = 3

const BRIEF_HISTORY_MS = 90_000
const BRIEF_HISTORY_ENTRIES_MAX = 20_000

export async function serve(options: ServeOptions): Promise<void> {
  const { dataDir, clock, random, log, signal } = options
  const gates = asUsage(() => parseFeatureGates(options.featureGates))
  const runtimeConfig = asUsage(() => parseRuntimeConfig(options.runtimeConfig, ALL_KINDS))
  const place = parseStore(options.store)
  const nodeCount = nodesOf(options, place.is === 'embedded')
  const unusable = (error: NodeJS.ErrnoException): never => {
    if (!error.syscall) throw error // the store's own words are better
    throw new Error(`Cannot use ${dataDir} as data directory: ${plainly(error)}. Choose another with --data-dir.`)
  }
  await ensureDirectory(dataDir).catch(unusable)

  if (place.is === 'embedded') await checkStoreIsThere(dataDir)
  const store = await openStore({
    place,
    tlsFiles: options.etcdTls,
    dataDir,
    clock,
    history: {
      keepMs: options.historyMinutes * 60_000,
      brief: { prefixes: BRIEF_PREFIXES, keepMs: BRIEF_HISTORY_MS, entriesMax: BRIEF_HISTORY_ENTRIES_MAX },
    },
  }).catch(unusable)
  try {
    // Directories are of use on one machine only. A disk that is missing is told before anything is served.
    const volumesRoot = options.controllers && place.is === 'embedded' ? await volumesRootOf(options) : undefined
    const pki = await loadOrCreatePki({
      dir: options.pkiDir ?? join(dataDir, 'pki'),
      hosts: hostsOf(options.listen),
      clock,
    })
    for (const { file, because } of pki.written) log.info({ file, because }, 'credentials written')
    const server = createApiServer({
      store,
      clock,
      random,
      log,
      kinds: ALL_KINDS,
      gates,
      expansionQuota: options.expansionQuota,
      runtimeConfig,
      authenticator: createAuthenticator({ caCert: pki.caCert, tokens: pki.tokens, clock }),
      authorizer: createBasicAuthorizer(),
      version: versionInfo(),
    })
    showCertificates(server.metrics.registry, pki)
    const bootstrap = server.health.addReadiness('bootstrap')
    if (store.problem) server.health.addCheck(place.is === 'etcd' ? 'etcd' : 'store', () => store.problem!())
    const listener = await listenHttps({ handle: server.handle, pki, ...options.listen, clock, log })
    // Whatever ends first ends the others: the process must not stay for a part of it.
    const stop = new AbortController()
    setMaxListeners(0, stop.signal) // every watch of every controller listens to it
    const parts: Record<string, Promise<unknown> | undefined> = {}
    let stopNodes = async () => {}
    try {
      const client = inProcessClient(server.objects, CONTROLLERS_USER)
      await createBuiltIns(server.objects, volumesRoot ? [directoryClass(nodeCount === 0)] : [])
      if (nodeCount > 0) await introduceLocalDriver(client)
      const nodesDir = join(dataDir, 'nodes')
      const hasNodes = options.controllers && place.is === 'embedded'
      const idle = hasNodes ? await markIdleNodes({ dir: nodesDir, count: nodeCount, client, clock }) : []
      if (idle.length > 0)
        log.warn({ nodes: idle }, 'nodes of an earlier start are not started: --nodes is too small for them')
      const url = urlOf(listener)
      const kubeconfig = join(dataDir, 'admin.kubeconfig')
      await writePrivateFile(kubeconfig, buildKubeconfig({ server: url, caCert: pki.caCert, credential: pki.admin }))
      const inProcess = volumesRoot ? [await directories(volumesRoot, options)] : []
      bootstrap.ok()
      log.info({ url, dataDir, revision: store.revision }, 'ready')
      options.onReady({ url, kubeconfig, dataDir, nodes: nodeCount })

      const ends: Promise<unknown>[] = [untilOver(signal, store)]
      const common = { client, registry: server.metrics.registry, clock, random, log, signal: stop.signal }
      const { poolBytes, runCommands, capacityReservation } = options
      const drivers: DriverEndpoint[] = [...new Set(options.driverSockets)].map((address) => ({ address }))
      if (nodeCount > 0) {
        const nodes = startNodes({ ...common, count: nodeCount, dir: nodesDir, poolBytes, runCommands })
        void nodes.ready.then((ready) => options.onNodes({ ...ready, idle }))
        stopNodes = nodes.stop
        ends.push(nodes.gaveUp)
        drivers.unshift(...nodes.drivers)
      }
      if (options.controllers) {
        const isShared = place.is === 'etcd'
        parts.controllers = runControllers({
          ...common,
          throttle: options.throttle,
          isShared,
          gates,
          capacityReservation,
          drivers,
          inProcess,
          onHealth: (health) => {
            // Not part of readiness: the API server is of use without its controllers.
            const problem = async () => health['/healthz/leader-election']?.()
            if (isShared) server.health.addCheck('leader-election', problem, { isReadiness: false })
          },
        })
        ends.push(parts.controllers)
      }
      await Promise.race(ends)
      log.info({}, 'stopping: no new requests, waiting for those in flight')
    } finally {
      bootstrap.failed('the server is shutting down')
      stop.abort(signal.reason)
      await stopWithin({ ...parts, nodes: stopNodes(), requests: listener.stop() }, { clock, log })
    }
  } finally {
    await stopWithin({ store: store.close() }, { clock, log })
    log.info({}, 'stopped')
  }
}

/** On one machine only: where servers share a store, every one of them would make the same nodes. */
function nodesOf({ nodes, controllers }: ServeOptions, isEmbedded: boolean): number {
  if (isEmbedded && controllers) return nodes ?? NODES
  if (!nodes) return 0
  throw new UsageError(
    '--nodes makes nodes on an embedded store only. With --store, start `stowage node` on each machine, or say --nodes 0.',
  )
}

const volumesRootOf = ({ dataDir, volumesDir, random }: ServeOptions): Promise<Root> =>
  openRoot(volumesDir ?? join(dataDir, 'volumes'), { file: join(dataDir, 'volumes.id'), random })

const directories = async (root: Root, { clock, log }: ServeOptions): Promise<Provisioner> =>
  provisionerOf(await openDirectoryPlugin({ root, log }), { clock })

/** Names the serving certificate must carry for clients to accept it at this address. */
const hostsOf = ({ host }: ListenAddress): string[] => (host === '0.0.0.0' || host === '::' ? [] : [host])

/**
 * A kubeconfig is written only once a server was ready, which it never is without a store. A store that is gone or
 * emptied since then was lost; starting anew on its place would hide that.
 */
async function checkStoreIsThere(dataDir: string): Promise<void> {
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

/** What the system said, in words. */
function plainly(error: NodeJS.ErrnoException): string {
  const words: Record<string, string> = {
    EACCES: 'permission denied',
    EPERM: 'not permitted',
    EROFS: 'the file system is read-only',
    EEXIST: 'it is a file',
    ENOTDIR: 'a part of the path is a file',
    ENOENT: 'no directory can be made there',
    ENOSPC: 'the disk is full',
  }
  return words[error.code ?? ''] ?? error.message
}

function asUsage<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/** Until the process is told to stop, or its store has ended on its own: then nothing is left to serve. */
const untilOver = (signal: AbortSignal, store: Store) =>
  new Promise<void>((resolve, reject) => {
    const watch = store.watch({
      prefix: NOTHING,
      afterRevision: store.revision,
      onEvents: () => {},
      onEnd: (reason) => reject(new Error(`The store has failed, so the server ends: ${reason.message}`)),
    })
    const stop = () => {
      watch.close()
      resolve()
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })

/** A prefix no key has. */
const NOTHING = '\u0000'
