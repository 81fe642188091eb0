// Empties namespaces that are being deleted, then lets them go. Woken by the namespace itself and by the end of any
// object in one; what still stands in the way is written into the namespace's status.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import type { Namespace } from '../../api/kinds/namespace/namespace-schema.ts'
import { ApiError, isNotServed } from '../../api/status-error.ts'
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
  /** Shared with other controllers, and stopped by whoever made it. Absent: it has one of its own. */
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
  const residents = contents.map((kind) => caches.outlinesOf(kind))
  const controller = createController({
    name: NAME,
    clock,
    random,
    log,
    ...(metrics ? { observer: metrics.queueObserver(NAME) } : {}),
    sources: [
      source({ cache: namespaces, keysOf: (namespace) => [namespace.metadata.name ?? ''] }),
      ...residents.map((cache) =>
        source({
          cache,
          keysOf: ({ metadata }) => (isGoing(namespaces, metadata.namespace) ? [metadata.namespace ?? ''] : []),
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

const isGoing = (namespaces: Cache<Namespace>, name = ''): boolean =>
  namespaces.get({ name })?.metadata.deletionTimestamp !== undefined

interface Deps {
  readonly client: Client
  readonly namespaces: Cache<Namespace>
  readonly contents: readonly Kind[]
  readonly clock: Clock
}

async function reconcileNamespace(name: string, deps: Deps): Promise<Outcome> {
  const namespace = deps.namespaces.get({ name })
  if (!namespace?.metadata.deletionTimestamp) return done // stays, or is gone
  const left = await deleteContents(name, deps)
  if (left.length > 0) return explainLeft(namespace, left, deps)
  if (!namespace.spec?.finalizers?.includes(CONTENT_FINALIZER)) return done // someone else's to finish
  const finalizers = namespace.spec.finalizers.filter((finalizer) => finalizer !== CONTENT_FINALIZER)
  const { resourceVersion: _, ...metadata } = namespace.metadata
  await orGone(
    deps.client.update(namespaceKind, { ...namespace, metadata, spec: { finalizers } }, { subresource: 'finalize' }),
  )
  return done
}

/** Deletes everything in the namespace and says what stays behind, waiting for finalizers or a grace period. */
async function deleteContents(namespace: string, { client, contents }: Deps): Promise<string[]> {
  const left: string[] = []
  for (const kind of contents) {
    const items = await listOrNone(client, kind, namespace)
    const outcomes = await Promise.all(
      items.map(async ({ metadata: { name = '', uid, deletionTimestamp, finalizers = [] } }) => {
        const waits = `${kind.plural}/${name}${finalizers.length > 0 ? ` (waits for ${finalizers.join(', ')})` : ''}`
        if (deletionTimestamp) return waits
        const remains = await orGone(
          client.delete(kind, { namespace, name }, { propagation: 'Background', ...(uid ? { uid } : {}) }),
        )
        return remains?.metadata.deletionTimestamp && isHeld(remains) ? waits : undefined
      }),
    )
    left.push(...outcomes.filter((outcome) => outcome !== undefined))
  }
  return left
}

/** A kind that is switched off holds up no namespace. */
async function listOrNone(client: Client, kind: Kind, namespace: string): Promise<readonly Readonly<KubeObject>[]> {
  try {
    return (await client.list<KubeObject>(kind, { namespace })).items
  } catch (error) {
    if (isNotServed(error)) return []
    throw error
  }
}

/** Marked as going, but not gone. */
const isHeld = ({ metadata }: Readonly<KubeObject>): boolean =>
  (metadata.finalizers?.length ?? 0) > 0 || (metadata.deletionGracePeriodSeconds ?? 0) > 0

const SHOWN_MAX = 5

async function explainLeft(
  namespace: Readonly<Namespace>,
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
    await orGone(
      client.patch(
        namespaceKind,
        { name: namespace.metadata.name ?? '' },
        { type: 'strategic', body },
        { subresource: 'status' },
      ),
    )
  }
  return stuck(message)
}

async function orGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined
    throw error
  }
}
