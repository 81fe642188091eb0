// An in-memory cluster for the tests of a provisioner: the API server and the controllers of the provisioner run in this
// process. The binder and the protection controllers do not run; the test cluster binds claims before a change, releases
// volumes, and removes finalizers.
import { setMaxListeners } from 'node:events'
import { parseFeatureGates } from '../api/feature-gates.ts'
import { volumeAttributesClassKind } from '../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../api/quantity.ts'
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
import { createPluginChanges } from '../controllers/plugin-changes/index.ts'
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
import { PROVISIONER, SELECTED_NODE } from '../volumes/names.ts'

export interface TestClusterOptions {
  /** Maximum time to wait until a volume is provisioned, changed or deleted. Default: 30 s. */
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
  /** Requests more storage, and waits for the larger volume. Rejects with the message of a warning about the claim. */
  expand(volume: TestVolume, size: string): Promise<TestVolume>
  /**
   * Creates a VolumeAttributesClass with these parameters, sets it in the claim, and waits until the volume has it. Rejects
   * with the message of a warning about the claim.
   */
  modify(volume: TestVolume, attributes: Readonly<Record<string, string>>): Promise<TestVolume>
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
  let runningControllers = startControllers()
  let claimCount = 0
  let attributesClassCount = 0

  function startControllers() {
    const abort = new AbortController()
    setMaxListeners(0, abort.signal) // one listener per worker
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
    const changes = createPluginChanges({
      ...{ client, caches, clock, random, log: silentLog },
      plugin,
      options: { retryIntervalStartMs: RETRY_MS },
      events: { record },
    })
    const controllersRun = Promise.all([controllers.run(abort.signal), changes.run(abort.signal)])
    return {
      async stop() {
        abort.abort()
        await controllersRun
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
      allowVolumeExpansion: true,
    })
    const claim = await client.create(persistentVolumeClaimKind, buildClaim(name, request, plugin.name))
    const uid = claim.metadata.uid!
    const volume = await pollUntil(`a volume for the claim "${name}"`, uid, () => findVolume(`pvc-${uid}`))
    return toTestVolume(volume, { namespace: NAMESPACE, name })
  }

  async function expand({ name, claim }: TestVolume, size: string): Promise<TestVolume> {
    const sizeBytes = quantityToBytes(size)
    return changeVolume(name, claim, {
      spec: { resources: { requests: { storage: size } } },
      goal: `the volume "${name}" to be expanded`,
      isChanged: ({ spec }) => quantityToBytes(spec?.capacity?.storage ?? '0') >= sizeBytes,
    })
  }

  async function modify(
    { name, claim }: TestVolume,
    attributes: Readonly<Record<string, string>>,
  ): Promise<TestVolume> {
    const className = `attributes-${++attributesClassCount}`
    await client.create(volumeAttributesClassKind, {
      metadata: { name: className },
      driverName: plugin.csiDriver ?? plugin.name,
      parameters: { ...attributes },
    })
    return changeVolume(name, claim, {
      spec: { volumeAttributesClassName: className },
      goal: `the volume "${name}" to be modified`,
      isChanged: ({ spec }) => spec?.volumeAttributesClassName === className,
    })
  }

  interface RequestedChange {
    /** The changed fields of the claim. */
    readonly spec: object
    readonly goal: string
    isChanged(volume: Readonly<PersistentVolume>): boolean
  }

  async function changeVolume(
    name: string,
    claimRef: TestVolume['claim'],
    { spec, goal, isChanged }: RequestedChange,
  ): Promise<TestVolume> {
    const claim = await client.get(persistentVolumeClaimKind, claimRef)
    const uid = claim.metadata.uid!
    if (claim.status?.phase !== 'Bound') await bindClaim(name, claimRef)
    warnings.delete(uid)
    await client.patch(persistentVolumeClaimKind, claimRef, { type: 'merge', body: { spec } })
    const volume = await pollUntil(goal, uid, async () => {
      const currentVolume = await findVolume(name)
      return currentVolume && isChanged(currentVolume) ? currentVolume : undefined
    })
    return toTestVolume(volume, claimRef)
  }

  async function release({ name, claim }: TestVolume): Promise<void> {
    const volume = await findVolume(name)
    if (!volume) throw new Error(`The volume "${name}" does not exist.`)
    await client.delete(persistentVolumeClaimKind, claim)
    await client.patch(persistentVolumeClaimKind, claim, { type: 'merge', body: { metadata: { finalizers: null } } })
    const status = { type: 'merge', body: { status: { phase: 'Released' } } } as const
    await client.patch(persistentVolumeKind, { name }, status, { subresource: 'status' })
    await pollUntil(`the volume "${name}" to be deleted`, volume.metadata.uid!, async () => {
      const currentVolume = await findVolume(name)
      if (!currentVolume) return true
      const { deletionTimestamp, finalizers = [] } = currentVolume.metadata
      // The protection controller, which would remove this finalizer, does not run.
      if (deletionTimestamp && finalizers.join() === 'kubernetes.io/pv-protection') {
        await client.patch(persistentVolumeKind, { name }, { type: 'merge', body: { metadata: { finalizers: null } } })
      }
      return undefined
    })
  }

  /** Binds the claim to its volume, as the binder does. */
  async function bindClaim(name: string, claimRef: TestVolume['claim']): Promise<void> {
    const spec = { volumeName: name }
    await client.patch(persistentVolumeClaimKind, claimRef, { type: 'merge', body: { spec } })
    const { accessModes, capacity } = (await client.get(persistentVolumeKind, { name })).spec ?? {}
    const status = { phase: 'Bound', accessModes, capacity }
    const subresource = { subresource: 'status' } as const
    await client.patch(persistentVolumeClaimKind, claimRef, { type: 'merge', body: { status } }, subresource)
  }

  const findVolume = (name: string): Promise<Readonly<PersistentVolume> | undefined> =>
    find(client, persistentVolumeKind, { name })

  /** Calls `readResult` until it returns a result. Throws if a Warning event about the object is recorded, or at the timeout. */
  async function pollUntil<T>(goal: string, uid: string, readResult: () => Promise<T | undefined>): Promise<T> {
    for (const startMs = clock.monotonicMs(); ; await clock.sleep(POLL_INTERVAL_MS)) {
      const result = await readResult()
      if (result !== undefined) return result
      const warning = warnings.get(uid)
      if (warning !== undefined) throw new Error(warning)
      if (clock.monotonicMs() - startMs > timeoutMs)
        throw new Error(`Timed out after ${timeoutMs} ms waiting for ${goal}.`)
    }
  }

  return {
    provision,
    expand,
    modify,
    release,
    async restart() {
      await runningControllers.stop()
      runningControllers = startControllers()
    },
    async stop() {
      await runningControllers.stop()
      await store.close()
    },
  }
}

function toTestVolume(volume: Readonly<PersistentVolume>, claim: TestVolume['claim']): TestVolume {
  return { ...toExistingVolume(volume), claim, mountOptions: volume.spec?.mountOptions ?? [] }
}

const buildClaim = (name: string, request: TestClaim, provisioner: string): PersistentVolumeClaim => ({
  metadata: {
    namespace: NAMESPACE,
    name,
    annotations: {
      [PROVISIONER]: provisioner,
      ...(request.selectedNode ? { [SELECTED_NODE]: request.selectedNode } : {}),
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
