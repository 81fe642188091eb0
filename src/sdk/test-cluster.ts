// An in-memory cluster for the tests of a provisioner: the API server and the provisioning controllers run in this
// process. The binder and the protection controllers do not run; the test cluster releases volumes and removes finalizers.
import { parseFeatureGates } from '../api/feature-gates.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import {
  createApiServer,
  createBuiltIns,
  createRbac,
  inProcessClient,
  parseRuntimeConfig,
  SYSTEM_USER,
  versionInfo,
} from '../apiserver/index.ts'
import { systemClock, systemRandom } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { find } from '../client/find.ts'
import { createProvisioningControllers } from '../controllers/provisioning/index.ts'
import { toExistingVolume } from '../controllers/provisioning/plugin/check-result.ts'
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
  /** Maximum time to wait until a volume is provisioned or deleted. Default: 30 s. */
  readonly timeoutMs?: number
}

/** A claim to create, together with its class. */
export interface TestClaim {
  /** Default: `1Gi`. */
  readonly size?: string
  /** Parameters of the class. */
  readonly parameters?: Readonly<Record<string, string>>
  /** Mount options of the class. */
  readonly mountOptions?: readonly string[]
  /** Default: ReadWriteOnce. */
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
  /** The node of the first consumer. If set, the class has volumeBindingMode WaitForFirstConsumer. */
  readonly selectedNode?: string
}

export interface TestVolume extends ExistingVolume {
  /** The claim for which the volume was provisioned. */
  readonly claim: { readonly namespace: string; readonly name: string }
  readonly mountOptions: readonly string[]
}

export interface TestCluster {
  /** Creates a class and a claim, and waits for the volume. Rejects with the message of a warning about the claim. */
  provision(claim?: TestClaim): Promise<TestVolume>
  /** Deletes the claim, and waits until the volume is deleted. Rejects with the message of a warning about the volume. */
  release(volume: TestVolume): Promise<void>
  /** Stops the controllers and starts new ones to simulate a restart of the process. */
  restart(): Promise<void>
  stop(): Promise<void>
}

const TIMEOUT_MS = 30_000
const POLL_INTERVAL_MS = 5
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
    authenticator: {
      authenticate: () => ({ is: 'authenticated', user: SYSTEM_USER }),
      authenticateToken: () => undefined,
    },
    authorizer: createRbac({ store, clock, log: silentLog }).authorizer,
    version: versionInfo(),
  })
  await createBuiltIns(server.objects)
  const client = inProcessClient(server.objects, SYSTEM_USER)
  /** The message of the last Warning event about each object, by uid. */
  const warnings = new Map<string, string>()
  let controllerProcess = startProcess()
  let claimCount = 0

  function startProcess() {
    const abort = new AbortController()
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
    const stopped = controllers.run(abort.signal)
    return {
      async stop() {
        abort.abort()
        await stopped
        await caches.stop()
      },
    }
  }

  async function provision(request: TestClaim = {}): Promise<TestVolume> {
    const name = `claim-${++claimCount}`
    const { parameters, mountOptions, selectedNode } = request
    await client.create(storageClassKind, {
      metadata: { name },
      provisioner: plugin.name,
      ...(parameters ? { parameters: { ...parameters } } : {}),
      ...(mountOptions ? { mountOptions: [...mountOptions] } : {}),
      volumeBindingMode: selectedNode ? 'WaitForFirstConsumer' : 'Immediate',
    })
    const claim = await client.create(persistentVolumeClaimKind, buildClaim(name, request, plugin.name))
    const uid = claim.metadata.uid!
    const volume = await pollUntil(`a volume for the claim "${name}"`, uid, () => findVolume(`pvc-${uid}`))
    const { mountOptions: volumeMountOptions = [] } = volume.spec ?? {}
    return { ...toExistingVolume(volume), claim: { namespace: NAMESPACE, name }, mountOptions: volumeMountOptions }
  }

  async function release({ name, claim }: TestVolume): Promise<void> {
    const volume = await findVolume(name)
    if (!volume) throw new Error(`The volume "${name}" does not exist.`)
    await client.delete(persistentVolumeClaimKind, claim)
    await client.patch(persistentVolumeClaimKind, claim, { type: 'merge', body: { metadata: { finalizers: null } } })
    const status = { type: 'merge', body: { status: { phase: 'Released' } } } as const
    await client.patch(persistentVolumeKind, { name }, status, { subresource: 'status' })
    await pollUntil(`the volume "${name}" to be deleted`, volume.metadata.uid!, async () => {
      const current = await findVolume(name)
      if (!current) return true
      const { deletionTimestamp, finalizers = [] } = current.metadata
      // No protection controller runs that would remove its finalizer.
      if (deletionTimestamp && finalizers.join() === 'kubernetes.io/pv-protection') {
        await client.patch(persistentVolumeKind, { name }, { type: 'merge', body: { metadata: { finalizers: null } } })
      }
      return undefined
    })
  }

  const findVolume = (name: string): Promise<Readonly<PersistentVolume> | undefined> =>
    find(client, persistentVolumeKind, { name })

  /** Polls `read` until it returns a result. Throws if a Warning event about the object is recorded. */
  async function pollUntil<T>(goal: string, uid: string, read: () => Promise<T | undefined>): Promise<T> {
    for (const startMs = clock.monotonicMs(); ; await clock.sleep(POLL_INTERVAL_MS)) {
      const result = await read()
      if (result !== undefined) return result
      const warning = warnings.get(uid)
      if (warning !== undefined) throw new Error(warning)
      if (clock.monotonicMs() - startMs > timeoutMs)
        throw new Error(`Timed out after ${timeoutMs} ms waiting for ${goal}.`)
    }
  }

  return {
    provision,
    release,
    async restart() {
      await controllerProcess.stop()
      controllerProcess = startProcess()
    },
    async stop() {
      await controllerProcess.stop()
      await store.close()
    },
  }
}

const buildClaim = (name: string, request: TestClaim, provisioner: string): PersistentVolumeClaim => ({
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
