// A controller that keeps one object with a fixed name in every active namespace. It recreates a deleted object and repairs a
// changed one.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { isAlreadyExists, isConflict, isNamespaceTerminating, isNotFound } from '../../api/status-error.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { type Controller, createController, done, type Outcome, retryAfter, source } from '../../runtime/index.ts'

export interface ObjectPerNamespace<T extends KubeObject> {
  /** Name of the controller in logs and metrics. */
  readonly name: string
  readonly kind: Kind<T>
  readonly objectName: string
  /** The fields of a new object other than metadata.name and metadata.namespace. */
  readonly content: Omit<T, 'metadata'> & { readonly metadata?: object }
  /** Returns the repaired object, or undefined if the object needs no repair. */
  repair?(object: Readonly<Stored<T>>): T | undefined
}

/** Delay after a write that failed because the caches are behind the server. */
const RETRY_DELAY_MS = 1_000

export function createObjectPerNamespaceController<T extends KubeObject>(
  { name, kind, objectName, content, repair }: ObjectPerNamespace<T>,
  deps: ControllerDeps,
): Controller {
  const { client, caches, clock, random, log, metrics } = deps
  const namespaces = caches.of(namespaceKind)
  const objects = caches.of(kind, { fieldSelector: `metadata.name=${objectName}` })

  async function reconcile(namespaceName: string): Promise<Outcome> {
    const namespace = namespaces.get({ name: namespaceName })
    if (!namespace || namespace.metadata.deletionTimestamp) return done
    const ref = { namespace: namespaceName, name: objectName }
    const existingObject = objects.get(ref)
    const repairedObject = existingObject && repair?.(existingObject)
    if (existingObject && !repairedObject) return done
    try {
      if (repairedObject) await client.update(kind, repairedObject)
      else await client.create(kind, { ...content, metadata: { ...content.metadata, ...ref } } as unknown as T)
      return done
    } catch (error) {
      if (isNotFound(error) || isNamespaceTerminating(error)) return done
      if (isAlreadyExists(error)) return retryAfter(RETRY_DELAY_MS, 'the cache does not have the object yet')
      if (isConflict(error)) return retryAfter(RETRY_DELAY_MS, 'the object has changed since it was read')
      throw error
    }
  }

  const controller = createController({
    name,
    clock,
    random,
    log,
    metrics,
    operation: { component: name, name: 'EnsureObject' },
    sources: [
      source({ cache: namespaces, keysOf: ({ metadata }) => [metadata.name] }),
      source({ cache: objects, keysOf: ({ metadata }) => [metadata.namespace ?? ''] }),
    ],
    reconcile,
  })
  metrics?.queues.add(controller.queue)
  return controller
}
