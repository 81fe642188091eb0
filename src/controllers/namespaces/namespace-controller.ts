// Deletes the contents of namespaces that are being deleted, pods first, then removes the finalizer of the namespace. Reports
// the remaining objects in the namespace's conditions. Changes to the namespace and to objects in it trigger a reconcile.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import type { Namespace } from '../../api/kinds/namespace/namespace-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { isNotFound, isNotServed } from '../../api/status-error.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import {
  type Cache,
  type CacheSet,
  type ClientMetrics,
  createCacheSet,
  createController,
  done,
  type Outcome,
  source,
  stuck,
} from '../../runtime/index.ts'
import { type ConditionChange, conditionChanges, type DeletionResult, type RemainingObject } from './conditions.ts'

export interface NamespaceControllerOptions {
  readonly client: Client
  readonly kinds: readonly Kind[]
  /** Shared with other controllers and stopped by its creator. Default: the controller creates and stops its own. */
  readonly caches?: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: ClientMetrics
}

const NAME = 'namespaces'
const CONTENT_FINALIZER = 'kubernetes'

export function createNamespaceController(options: NamespaceControllerOptions) {
  const { client, kinds, clock, random, log, metrics } = options
  const caches = options.caches ?? createCacheSet(options)
  const namespaces = caches.of(namespaceKind)
  const contentKinds = kinds.filter((kind) => kind.namespaced && !kind.viewOf && !kind.isReview && !kind.isForeign)
  const contentCaches = contentKinds.map((kind) => caches.metadataOf(kind))
  const controller = createController({
    name: NAME,
    clock,
    random,
    log,
    metrics,
    operation: { component: 'namespaces', name: 'Delete' },
    sources: [
      source({ cache: namespaces, keysOf: (namespace) => [namespace.metadata.name] }),
      ...contentCaches.map((cache) =>
        source({
          cache,
          keysOf: ({ metadata }) => (isBeingDeleted(namespaces, metadata.namespace) ? [metadata.namespace ?? ''] : []),
          mayBeDisabled: true,
        }),
      ),
    ],
    reconcile: (name) => reconcileNamespace(name, { client, namespaces, contentKinds, clock }),
  })
  metrics?.queues.add(controller.queue)
  return {
    queue: controller.queue,
    async run(signal: AbortSignal): Promise<void> {
      try {
        await controller.run(signal)
      } finally {
        if (!options.caches) await caches.stop()
      }
    },
  }
}

const isBeingDeleted = (namespaces: Cache<Namespace>, name = ''): boolean =>
  namespaces.get({ name })?.metadata.deletionTimestamp !== undefined

interface NamespaceDeps {
  readonly client: Client
  readonly namespaces: Cache<Namespace>
  readonly contentKinds: readonly Kind[]
  readonly clock: Clock
}

async function reconcileNamespace(name: string, deps: NamespaceDeps): Promise<Outcome> {
  const namespace = deps.namespaces.get({ name })
  if (!namespace?.metadata.deletionTimestamp) return done // active, or already removed
  const result = await deleteContents(name, deps)
  const { remainingObjects, errors } = result
  const specFinalizers = namespace.spec?.finalizers ?? []
  const finalizers = specFinalizers.filter((finalizer) => finalizer !== CONTENT_FINALIZER)
  const hasOtherFinalizers = finalizers.length > 0 || (namespace.metadata.finalizers?.length ?? 0) > 0
  const changes = conditionChanges(namespace.status?.conditions ?? [], result, deps.clock.nowMs())
  if (remainingObjects.length > 0 || errors.length > 0 || hasOtherFinalizers) await writeConditions(name, changes, deps)
  if (errors[0]) throw errors[0]
  if (remainingObjects.length > 0) return stuck(`${remainingObjects.length} object(s) remain`)
  if (!specFinalizers.includes(CONTENT_FINALIZER)) return done // another controller's finalizer remains
  const { resourceVersion: _, ...metadata } = namespace.metadata
  await undefinedIfNotFound(
    deps.client.update(namespaceKind, { ...namespace, metadata, spec: { finalizers } }, { subresource: 'finalize' }),
  )
  return done
}

/**
 * Deletes the pods in the namespace, and when all have ended, every other object: a pod that is still running needs its
 * claims, secrets and config maps. Returns the objects that a finalizer or grace period retains, and the errors.
 */
async function deleteContents(namespace: string, deps: NamespaceDeps): Promise<DeletionResult> {
  const { contentKinds } = deps
  const isPod = (kind: Kind) => kind.group === podKind.group && kind.plural === podKind.plural
  const pods = await deleteKinds(namespace, contentKinds.filter(isPod), deps)
  if (pods.remainingObjects.length > 0 || pods.errors.length > 0) return pods
  return deleteKinds(
    namespace,
    contentKinds.filter((kind) => !isPod(kind)),
    deps,
  )
}

/** Deletes the objects of these kinds. An error for one kind or object does not stop the deletion of the others. */
async function deleteKinds(
  namespace: string,
  kinds: readonly Kind[],
  { client }: NamespaceDeps,
): Promise<DeletionResult> {
  const remainingObjects: RemainingObject[] = []
  const errors: Error[] = []
  for (const kind of kinds) {
    try {
      const items = await listIfServed(client, kind, namespace)
      const outcomes = await Promise.allSettled(items.map((item) => deleteObject(client, kind, namespace, item)))
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') errors.push(outcome.reason as Error)
        else if (outcome.value) remainingObjects.push(outcome.value)
      }
    } catch (error) {
      errors.push(error as Error)
    }
  }
  return { remainingObjects, errors }
}

/** Deletes the object. Returns it if it remains in the store. */
async function deleteObject(
  client: Client,
  kind: Kind,
  namespace: string,
  { metadata: { name, uid, deletionTimestamp, finalizers = [] } }: Readonly<Stored>,
): Promise<RemainingObject | undefined> {
  if (deletionTimestamp) return { kind, name, finalizers }
  const deletedObject = await undefinedIfNotFound(
    client.delete(kind, { namespace, name }, { propagation: 'Background', uid }),
  )
  if (!deletedObject?.metadata.deletionTimestamp || !isStillStored(deletedObject)) return undefined
  return { kind, name, finalizers: deletedObject.metadata.finalizers ?? [] }
}

/** Returns no objects of a kind that is no longer served, so that it does not block the namespace's deletion. */
async function listIfServed(client: Client, kind: Kind, namespace: string): Promise<readonly Readonly<Stored>[]> {
  try {
    return (await client.list<KubeObject>(kind, { namespace })).items
  } catch (error) {
    if (isNotServed(error)) return []
    throw error
  }
}

/** Whether finalizers or a grace period keep the deleted object in the store. */
const isStillStored = ({ metadata }: Readonly<KubeObject>): boolean =>
  (metadata.finalizers?.length ?? 0) > 0 || (metadata.deletionGracePeriodSeconds ?? 0) > 0

async function writeConditions(
  name: string,
  conditions: readonly ConditionChange[],
  { client }: NamespaceDeps,
): Promise<void> {
  if (conditions.length === 0) return
  const patch = { type: 'strategic', body: { status: { conditions } } } as const
  await undefinedIfNotFound(client.patch(namespaceKind, { name }, patch, { subresource: 'status' }))
}

async function undefinedIfNotFound<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request
  } catch (error) {
    if (isNotFound(error) || isNotServed(error)) return undefined
    throw error
  }
}
