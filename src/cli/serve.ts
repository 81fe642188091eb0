// `stowage up` and `stowage server`: opens the store, wires the API server and its controllers, listens, and
// stays until it is told to stop. The whole system can be read off here.
import { setMaxListeners } from 'node:events'
import { stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { parseFeatureGates } from '../api/feature-gates.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import {
  type ApiServer,
  BRIEF_PREFIXES,
  createApiServer,
  createAuthenticator,
  createBasicAuthorizer,
  createBuiltIns,
  listenHttps,
  loadOrCreatePki,
  parseRuntimeConfig,
  versionInfo,
} from '../apiserver/index.ts'
import type { Clock, Random } from '../base/clock.ts'
import { ensureDirectory, writePrivateFile } from '../base/files.ts'
import { randomUuid } from '../base/identifiers.ts'
import type { Logger } from '../base/log.ts'
import { createClientMetrics, createLeaderElection, inProcessClient } from '../client/index.ts'
import { createGarbageController } from '../controllers/garbage/index.ts'
import { createNamespaceController } from '../controllers/namespaces/index.ts'
import { createProtectionControllers } from '../controllers/protection/index.ts'
import type { Store } from '../store/index.ts'
import { type ListenAddress, UsageError, urlOf } from './flags.ts'
import { buildKubeconfig } from './kubeconfig.ts'
import { openStore, parseStore, type TlsFiles } from './store-flag.ts'

export interface ServeOptions {
  readonly dataDir: string
  /** `--store` as given; the embedded store without it. */
  readonly store: string | undefined
  readonly etcdTls: TlsFiles
  /** Where keys and certificates are; servers that share a store need the same ones. Default: in dataDir. */
  readonly pkiDir: string | undefined
  readonly listen: ListenAddress
  readonly featureGates: string
  readonly runtimeConfig: string
  readonly historyMinutes: number
  /** Whether controllers run in this process too. */
  readonly controllers: boolean
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  onReady(ready: Ready): void
}

export interface Ready {
  readonly url: string
  readonly kubeconfig: string
  readonly dataDir: string
}

/** Held by the process whose controllers work, where several share a store. */
const CONTROLLERS_LEASE = 'stowage-controllers'
/** Who the controllers are to the API server. */
const CONTROLLERS_USER = { name: 'system:stowage-controllers', groups: ['system:masters'] }

const BRIEF_HISTORY_MS = 90_000
const BRIEF_HISTORY_ENTRIES_MAX = 20_000

export async function serve(options: ServeOptions): Promise<void> {
  const { dataDir, clock, random, log, signal } = options
  const gates = asUsage(() => parseFeatureGates(options.featureGates))
  const runtimeConfig = asUsage(() => parseRuntimeConfig(options.runtimeConfig, ALL_KINDS))
  const place = parseStore(options.store)
  await ensureDirectory(dataDir).catch((error) => {
    throw new Error(`Cannot use ${dataDir} as data directory: ${plainly(error)}. Choose another with --data-dir.`)
  })

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
  })
  try {
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
      runtimeConfig,
      authenticator: createAuthenticator({ caCert: pki.caCert, tokens: pki.tokens, clock }),
      authorizer: createBasicAuthorizer(),
      version: versionInfo(),
    })
    const bootstrap = server.health.addReadiness('bootstrap')
    const listener = await listenHttps({ handle: server.handle, pki, ...options.listen, clock, log })
    try {
      await createBuiltIns(server.objects)
      const url = urlOf(listener)
      const kubeconfig = join(dataDir, 'admin.kubeconfig')
      await writePrivateFile(kubeconfig, buildKubeconfig({ server: url, caCert: pki.caCert, credential: pki.admin }))
      bootstrap.ok()
      log.info({ url, dataDir, revision: store.revision }, 'ready')
      options.onReady({ url, kubeconfig, dataDir })

      const controllers = options.controllers
        ? [runControllers({ server, clock, random, log, signal, isShared: place.is === 'etcd' })]
        : []
      await untilOver(signal, store)
      log.info({}, 'stopping: no new requests, waiting for those in flight')
      bootstrap.failed('the server is shutting down')
      await Promise.all(controllers)
    } finally {
      await listener.stop()
    }
  } finally {
    await store.close()
    log.info({}, 'stopped')
  }
}

interface ControllerDeps extends Pick<ServeOptions, 'clock' | 'random' | 'log' | 'signal'> {
  readonly server: ApiServer
  /** Other processes may run controllers on the same store: only the leader's work. */
  readonly isShared: boolean
}

async function runControllers({ server, clock, random, log, signal, isShared }: ControllerDeps): Promise<void> {
  const client = inProcessClient(server.objects, CONTROLLERS_USER)
  const metrics = createClientMetrics(server.metrics.registry)
  const run = async (until: AbortSignal) => {
    setMaxListeners(0, until) // every watch of every controller listens to it
    const deps = { client, kinds: ALL_KINDS, clock, random, log, metrics }
    const controllers = [
      createNamespaceController(deps),
      createGarbageController(deps),
      createProtectionControllers(deps),
    ]
    await Promise.all(controllers.map((controller) => controller.run(until)))
  }
  if (!isShared) return run(signal)
  const election = createLeaderElection({
    client,
    clock,
    random,
    log,
    namespace: 'kube-system',
    name: CONTROLLERS_LEASE,
    identity: `${hostname()}_${randomUuid(random)}`,
    onChange: (isLeader) => metrics.leadership(CONTROLLERS_LEASE, isLeader),
  })
  await election.run(run, signal)
}

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
