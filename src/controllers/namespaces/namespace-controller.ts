// Deletes the contents of namespaces that are being deleted, then removes their finalizer. Woken by the namespace and by
// the deletion of any object in it; remaining objects are reported in the namespace's status.
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
  /** Shared with other controllers and stopped by its creator. Absent: the controller creates its own. */
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
  const contents = kinds.filter((kind) => kind.namespaced && !kind.viewOf && !kind.isReview && !kind.isForeign)
  const contentCaches = contents.map((kind) => caches.metadataOf(kind))
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
          mayBeOff: true,
        }),
      ),
    ],
    reconcile: (name) => reconcileNamespace(name, { client, namespaces, contents, clock }),
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

interface Deps {
  readonly client: Client
  readonly namespaces: Cache<Namespace>
  readonly contents: readonly Kind[]
  readonly clock: Clock
}

async function reconcileNamespace(name: string, deps: Deps): Promise<Outcome> {
  const namespace = deps.namespaces.get({ name })
  if (!namespace?.metadata.deletionTimestamp) return done // not being deleted, or deleted already
  const left = await deleteContents(name, deps)
  if (left.length > 0) return reportRemaining(namespace, left, deps)
  if (!namespace.spec?.finalizers?.includes(CONTENT_FINALIZER)) return done // another controller's finalizer remains
  const finalizers = namespace.spec.finalizers.filter((finalizer) => finalizer !== CONTENT_FINALIZER)
  const { resourceVersion: _, ...metadata } = namespace.metadata
  await unlessNotFound(
    deps.client.update(namespaceKind, { ...namespace, metadata, spec: { finalizers } }, { subresource: 'finalize' }),
  )
  return done
}

/** Deletes everything in the namespace; returns the objects that remain until finalizers or a grace period end. */
async function deleteContents(namespace: string, { client, contents }: Deps): Promise<string[]> {
  const left: string[] = []
  for (const kind of contents) {
    const items = await listIfServed(client, kind, namespace)
    const outcomes = await Promise.all(
      items.map(async ({ metadata: { name, uid, deletionTimestamp, finalizers = [] } }) => {
        const waits = `${kind.plural}/${name}${finalizers.length > 0 ? ` (waits for ${finalizers.join(', ')})` : ''}`
        if (deletionTimestamp) return waits
        const remains = await unlessNotFound(
          client.delete(kind, { namespace, name }, { propagation: 'Background', uid }),
        )
        return remains?.metadata.deletionTimestamp && isHeld(remains) ? waits : undefined
      }),
    )
    left.push(...outcomes.filter((outcome) => outcome !== undefined))
  }
  return left
}

/** A kind that is no longer served must not block the namespace. */
async function listIfServed(client: Client, kind: Kind, namespace: string): Promise<readonly Readonly<Stored>[]> {
  try {
    return (await client.list<KubeObject>(kind, { namespace })).items
  } catch (error) {
    if (isNotServed(error)) return []
    throw error
  }
}

/** Being deleted, but not removed yet. */
const isHeld = ({ metadata }: Readonly<KubeObject>): boolean =>
  (metadata.finalizers?.length ?? 0) > 0 || (metadata.deletionGracePeriodSeconds ?? 0) > 0

const SHOWN_MAX = 5

async function reportRemaining(
  namespace: Readonly<Stored<Namespace>>,
  left: readonly string[],
  { client, clock }: Deps,
): Promise<Outcome> {
  const shown = left.slice(0, SHOWN_MAX).join(', ')
  const message = `${left.length} object(s) left: ${shown}${left.length > SHOWN_MAX ? ', …' : ''}`
  const before = namespace.status?.conditions?.find(({ type }) => type === CONTENT_REMAINS)
  if (before?.message !== message) {
    const now = `${new Date(clock.nowMs()).toISOString().slice(0, 19)}Z`
    const condition = {
      type: CONTENT_REMAINS,
      status: 'True',
      lastTransitionTime: before?.lastTransitionTime ?? now,
      reason: 'SomeResourcesRemain',
      message,
    }
    const body = { status: { conditions: [condition] } }
    await unlessNotFound(
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

async function unlessNotFound<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isNotFound(error) || isNotServed(error)) return undefined
    throw error
  }
}
