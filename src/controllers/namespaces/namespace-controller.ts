// Deletes the contents of namespaces that are being deleted, then removes their finalizer, and reports the remaining
// objects in the namespace's status. Changes of the namespace and of objects in it trigger a reconcile.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import type { Namespace } from '../../api/kinds/namespace/namespace-schema.ts'
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
const CONTENT_REMAINS = 'NamespaceContentRemaining'

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
    ...(metrics ? { observer: metrics.queueObserver(NAME) } : {}),
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
  const remaining = await deleteContents(name, deps)
  if (remaining.length > 0) return reportRemaining(namespace, remaining, deps)
  if (!namespace.spec?.finalizers?.includes(CONTENT_FINALIZER)) return done // another controller's finalizer remains
  const finalizers = namespace.spec.finalizers.filter((finalizer) => finalizer !== CONTENT_FINALIZER)
  const { resourceVersion: _, ...metadata } = namespace.metadata
  await undefinedIfNotFound(
    deps.client.update(namespaceKind, { ...namespace, metadata, spec: { finalizers } }, { subresource: 'finalize' }),
  )
  return done
}

/** Deletes all objects in the namespace. Returns a description of each one that a finalizer or grace period retains. */
async function deleteContents(namespace: string, { client, contentKinds }: NamespaceDeps): Promise<string[]> {
  const remaining: string[] = []
  for (const kind of contentKinds) {
    const items = await listIfServed(client, kind, namespace)
    const outcomes = await Promise.all(
      items.map(async ({ metadata: { name, uid, deletionTimestamp, finalizers = [] } }) => {
        const description = `${kind.plural}/${name}${finalizers.length > 0 ? ` (waits for ${finalizers.join(', ')})` : ''}`
        if (deletionTimestamp) return description
        const deleted = await undefinedIfNotFound(
          client.delete(kind, { namespace, name }, { propagation: 'Background', uid }),
        )
        return deleted?.metadata.deletionTimestamp && isStillStored(deleted) ? description : undefined
      }),
    )
    remaining.push(...outcomes.filter((outcome) => outcome !== undefined))
  }
  return remaining
}

/** Returns no objects of a kind that is no longer served, so that it does not block the deletion of the namespace. */
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

const REPORTED_OBJECTS_MAX = 5

async function reportRemaining(
  namespace: Readonly<Stored<Namespace>>,
  remaining: readonly string[],
  { client, clock }: NamespaceDeps,
): Promise<Outcome> {
  const listed = remaining.slice(0, REPORTED_OBJECTS_MAX).join(', ')
  const message = `${remaining.length} object(s) left: ${listed}${remaining.length > REPORTED_OBJECTS_MAX ? ', …' : ''}`
  const existing = namespace.status?.conditions?.find(({ type }) => type === CONTENT_REMAINS)
  if (existing?.message !== message) {
    const now = `${new Date(clock.nowMs()).toISOString().slice(0, 19)}Z`
    const condition = {
      type: CONTENT_REMAINS,
      status: 'True',
      lastTransitionTime: existing?.lastTransitionTime ?? now,
      reason: 'SomeResourcesRemain',
      message,
    }
    const body = { status: { conditions: [condition] } }
    await undefinedIfNotFound(
      client.patch(
        namespaceKind,
        { name: namespace.metadata.name },
        { type: 'strategic', body },
        { subresource: 'status' },
      ),
    )
  }
  return stuck(message)
}

async function undefinedIfNotFound<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request
  } catch (error) {
    if (isNotFound(error) || isNotServed(error)) return undefined
    throw error
  }
}
