// A cluster that exists only in memory, for the warm-up: an API server, the controllers and a CSI driver, composed as `stowage up` composes
// them, with their own store, metrics, journal and audit events.
import { Registry } from 'prom-client'
import type { FeatureGates } from '../../api/feature-gates.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import {
  createApiServer,
  createAudit,
  createBootstrapRoles,
  createBuiltIns,
  createJournal,
  createRbac,
  defaultAuditPolicy,
  inProcessClient,
  openOperationBoard,
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
import { connectSyntheticDriver, SYNTHETIC_DRIVER } from './synthetic-driver.ts'

export interface SyntheticClusterOptions {
  readonly clock: Clock
  readonly random: Random
  readonly gates: FeatureGates
  readonly signal: AbortSignal
}

export interface SyntheticCluster {
  /** Creates claims at once. Resolves when all are bound. */
  createClaims(count: number): Promise<void>
  stop(): Promise<void>
}

const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const CLASS = 'synthetic'

export async function openSyntheticCluster(options: SyntheticClusterOptions): Promise<SyntheticCluster> {
  const { random, gates } = options
  const clock = options.clock
  const log = silentLog
  const stop = new AbortController()
  const signal = AbortSignal.any([options.signal, stop.signal])
  const store = await openMemoryStore({ clock })
  const rbac = createRbac({ store, clock, log })
  const journal = createJournal({ clock, random, isStoreShared: false })
  const operations = await openOperationBoard({ clock, onActivities: journal.addActivities })
  const server = createApiServer({
    store,
    operations,
    journal,
    clock,
    random,
    log,
    kinds: ALL_KINDS,
    gates,
    runtimeConfig: parseRuntimeConfig('', ALL_KINDS),
    version: versionInfo(),
    authenticator: {
      authenticate: () => ({ is: 'authenticated', user: SYSTEM_USER }),
      authenticateToken: () => undefined,
    },
    authorizer: rbac.authorizer,
    admission: standardAdmission([rbac.escalationCheck]),
    audit: createAudit({ policy: await defaultAuditPolicy(), write: () => {}, clock }),
  })
  await createBuiltIns(server.objects)
  const client = inProcessClient(server.objects, SYSTEM_USER)
  await createBootstrapRoles(client, server.resources)
  await rbac.start({ client, signal })

  const registry = new Registry()
  const operationRegistry = createOperationRegistry({ process: 'warm-up', clock })
  operationRegistry.subscribe(operations.applyLocal)
  journal.recordActivitiesOf(operationRegistry)
  const metrics = createClientMetrics(registry, operationRegistry)
  const common = { clock, random, log, signal }
  const clientOf = createComponentClients({ ...common, server, authorizer: rbac.authorizer, metrics })
  const running = runControllers({
    ...common,
    registry,
    metrics,
    client: clientOf('manager'),
    clientOf,
    gates,
    isStoreShared: false,
    inProcessProvisioners: [],
    drivers: [{ address: '/warm-up.sock' }],
    connect: connectSyntheticDriver,
  })

  async function send(method: string, path: string, query: string, body?: object) {
    const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json' }
    const response = await server.handle({
      method,
      path,
      query: new URLSearchParams(query),
      headers,
      headerNames: () => Object.keys(headers),
      headerValues: (name) => (headers[name] === undefined ? [] : [headers[name]]),
      readBody: async () => Buffer.from(body ? JSON.stringify(body) : ''),
    })
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.body}`)
    return response
  }
  await send('POST', CLASSES, '', { metadata: { name: CLASS }, provisioner: SYNTHETIC_DRIVER })

  let bound = 0
  let onBound = () => {}
  const watch = await send('GET', CLAIMS, 'watch=1')
  let closeWatch = () => {}
  watch.stream?.({
    write(chunk) {
      for (const line of Buffer.from(chunk).toString().split('\n'))
        if (line.includes('"phase":"Bound"') && line.startsWith('{"type":"MODIFIED"')) bound++
      onBound()
    },
    pendingBytes: 0,
    onDrain: (run) => run(),
    end() {},
    cut() {},
    onClose: (run) => {
      closeWatch = run
    },
  })
  let created = 0
  return {
    async createClaims(count) {
      const target = bound + count
      const isBound = new Promise<void>((resolve) => {
        onBound = () => bound >= target && resolve()
      })
      await Promise.all(
        Array.from({ length: count }, () => send('POST', CLAIMS, '', claimOf(`claim-${++created}`))),
      )
      await isBound
    },
    async stop() {
      closeWatch()
      stop.abort()
      await running
      await operations.close()
      await store.close()
    },
  }
}

const claimOf = (name: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: CLASS,
    resources: { requests: { storage: '1Gi' } },
  },
})
