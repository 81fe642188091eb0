// An in-memory cluster for one provisioner, in this process: the real API server and the real provisioning controllers around
// the plugin. Tests bind claims directly, which other controllers do in a cluster.
import { parseFeatureGates } from '../api/feature-gates.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import {
  createApiServer,
  createBasicAuthorizer,
  createBuiltIns,
  inProcessClient,
  parseRuntimeConfig,
  SYSTEM_USER,
  versionInfo,
} from '../apiserver/index.ts'
import { systemClock, systemRandom } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { find } from '../client/find.ts'
import { createProvisioningControllers } from '../controllers/provisioning/index.ts'
import { existingVolume } from '../controllers/provisioning/plugin/check-result.ts'
import type {
  AccessMode,
  AnyProvisionerPlugin,
  ExistingVolume,
  VolumeMode,
} from '../controllers/provisioning/plugin/contract.ts'
import { provisionerOf } from '../controllers/provisioning/plugin.ts'
import { createCacheSet, type EventDetails } from '../runtime/index.ts'
import { openMemoryStore } from '../store/memory.ts'
import { PROVISIONER } from '../volumes/names.ts'

export interface TestClusterOptions {
  /** How long to wait for a volume to be provisioned or deleted. Default 30 s. */
  readonly timeoutMs?: number
}

/** The claim to create; absent fields have the usual defaults. */
export interface TestClaim {
  /** Default `1Gi`. */
  readonly size?: string
  /** Of the class. */
  readonly parameters?: Readonly<Record<string, string>>
  readonly mountOptions?: readonly string[]
  /** Default ReadWriteOnce. */
  readonly accessModes?: readonly AccessMode[]
  readonly volumeMode?: VolumeMode
  readonly selector?: {
    readonly matchLabels?: Readonly<Record<string, string>>
    readonly matchExpressions?: readonly {
      readonly key: string
      readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
      readonly values?: readonly string[]
    }[]
  }
  /** For a class that waits for the first pod: where that pod is. */
  readonly selectedNode?: string
}

export interface TestVolume extends ExistingVolume {
  /** The claim it was provisioned for. */
  readonly claim: { readonly namespace: string; readonly name: string }
  readonly mountOptions: readonly string[]
}

export interface TestCluster {
  /** Creates a class and a claim, and waits for the volume. Rejects with the message of the claim's event. */
  provision(claim?: TestClaim): Promise<TestVolume>
  /** Deletes the claim, and waits until the provisioner has deleted the volume. Rejects with the message of its event. */
  release(volume: TestVolume): Promise<void>
  /** Stops the controllers and starts new ones, as after a restart of the process. */
  restart(): Promise<void>
  stop(): Promise<void>
}

const TIMEOUT_MS = 30_000
const LOOK_AGAIN_MS = 5
const RETRY_MS = 20
const NAMESPACE = 'default'

export async function startTestCluster(
  plugin: AnyProvisionerPlugin,
  { timeoutMs = TIMEOUT_MS }: TestClusterOptions = {},
): Promise<TestCluster> {
  const clock = systemClock()
  const random = systemRandom()
  const store = await openMemoryStore({ clock })
  const server = createApiServer({
    ...{ store, clock, random, log: silentLog, kinds: ALL_KINDS },
    gates: parseFeatureGates(''),
    runtimeConfig: parseRuntimeConfig('', ALL_KINDS),
    authenticator: { authenticate: () => ({ is: 'known', user: SYSTEM_USER }), authenticateToken: () => undefined },
    authorizer: createBasicAuthorizer(),
    version: versionInfo(),
  })
  await createBuiltIns(server.objects)
  const client = inProcessClient(server.objects, SYSTEM_USER)
  /** The last warning about each object, by its uid. */
  const warnings = new Map<string, string>()
  let process = startProcess()
  let count = 0

  function startProcess() {
    const stop = new AbortController()
    const caches = createCacheSet({ client, clock, random })
    const record = (_kind: unknown, { metadata }: Readonly<PersistentVolume>, { type, message }: EventDetails) => {
      if (type === 'Warning') warnings.set(metadata.uid ?? '', message)
    }
    const controllers = createProvisioningControllers({
      ...{ client, caches, clock, random, log: silentLog },
      provisioner: provisionerOf(plugin, { clock }),
      options: { retryIntervalStartMs: RETRY_MS },
      events: { record },
    })
    const running = controllers.run(stop.signal)
    return {
      async end() {
        stop.abort()
        await running
        await caches.stop()
      },
    }
  }

  async function provision(request: TestClaim = {}): Promise<TestVolume> {
    const name = `claim-${++count}`
    const { parameters, mountOptions, selectedNode } = request
    await client.create(storageClassKind, {
      metadata: { name },
      provisioner: plugin.name,
      ...(parameters ? { parameters: { ...parameters } } : {}),
      ...(mountOptions ? { mountOptions: [...mountOptions] } : {}),
      volumeBindingMode: selectedNode ? 'WaitForFirstConsumer' : 'Immediate',
    })
    const claim = await client.create(persistentVolumeClaimKind, claimOf(name, request, plugin.name))
    const uid = claim.metadata.uid!
    const volume = await until(`a volume for the claim "${name}"`, uid, () => volumeNamed(`pvc-${uid}`))
    const { mountOptions: options = [] } = volume.spec ?? {}
    return { ...existingVolume(volume), claim: { namespace: NAMESPACE, name }, mountOptions: options }
  }

  async function release({ name, claim }: TestVolume): Promise<void> {
    const bound = await volumeNamed(name)
    if (!bound) throw new Error(`There is no volume "${name}" any more.`)
    await client.delete(persistentVolumeClaimKind, claim)
    await client.patch(persistentVolumeClaimKind, claim, { type: 'merge', body: { metadata: { finalizers: null } } })
    const status = { type: 'merge', body: { status: { phase: 'Released' } } } as const
    await client.patch(persistentVolumeKind, { name }, status, { subresource: 'status' })
    await until(`the volume "${name}" to be deleted`, bound.metadata.uid!, async () => {
      const left = await volumeNamed(name)
      if (!left) return true
      const { deletionTimestamp, finalizers = [] } = left.metadata
      // The protection controller does not run here; the volume is not in use.
      if (deletionTimestamp && finalizers.join() === 'kubernetes.io/pv-protection') {
        await client.patch(persistentVolumeKind, { name }, { type: 'merge', body: { metadata: { finalizers: null } } })
      }
      return undefined
    })
  }

  const volumeNamed = (name: string): Promise<Readonly<PersistentVolume> | undefined> =>
    find(client, persistentVolumeKind, { name })

  /** The result of `look`; a Warning event on the object ends the wait. */
  async function until<T>(what: string, uid: string, look: () => Promise<T | undefined>): Promise<T> {
    for (const startMs = clock.monotonicMs(); ; await clock.sleep(LOOK_AGAIN_MS)) {
      const found = await look()
      if (found !== undefined) return found
      const warning = warnings.get(uid)
      if (warning !== undefined) throw new Error(warning)
      if (clock.monotonicMs() - startMs > timeoutMs)
        throw new Error(`Timed out after ${timeoutMs} ms waiting for ${what}.`)
    }
  }

  return {
    provision,
    release,
    async restart() {
      await process.end()
      process = startProcess()
    },
    async stop() {
      await process.end()
      await store.close()
    },
  }
}

const claimOf = (name: string, request: TestClaim, provisioner: string): PersistentVolumeClaim => ({
  metadata: {
    namespace: NAMESPACE,
    name,
    annotations: {
      [PROVISIONER]: provisioner,
      ...(request.selectedNode ? { 'volume.kubernetes.io/selected-node': request.selectedNode } : {}),
    },
  },
  spec: {
    storageClassName: name,
    accessModes: [...(request.accessModes ?? ['ReadWriteOnce' as const])],
    resources: { requests: { storage: request.size ?? '1Gi' } },
    ...(request.volumeMode ? { volumeMode: request.volumeMode } : {}),
    ...(request.selector
      ? { selector: request.selector as NonNullable<PersistentVolumeClaim['spec']>['selector'] }
      : {}),
  },
})
