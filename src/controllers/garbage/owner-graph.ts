// Who belongs to whom, as far as it matters for deletion: a thin copy of every object (identity, owners, finalizers),
// indexed by owner. The decisions are plan-garbage.ts, the writes garbage-controller.ts.
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { OwnerReference } from '../../api/types/meta.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Cache, type Client, createCache } from '../../client/index.ts'

/** An object in the graph, whatever its kind. */
export interface Node {
  readonly kind: Kind
  readonly object: Readonly<KubeObject>
}

export interface OwnerGraph {
  readonly caches: readonly Cache<KubeObject>[]
  find(key: string): Node | undefined
  /** Objects that name this uid among their owners. */
  dependentsOf(uid: string): Node[]
  /** The kind an owner reference means; undefined when it is not served. */
  kindOf(owner: OwnerReference): Kind | undefined
  run(signal: AbortSignal): Promise<void>
}

const BY_OWNER = 'owner'

/** `GROUP/PLURAL NAMESPACE/NAME`: one work queue serves all kinds. */
export const nodeKey = (
  { group, plural }: Kind,
  { metadata: { namespace = '', name = '' } }: Readonly<KubeObject>,
): string => `${group}/${plural} ${namespace}/${name}`

export interface OwnerGraphOptions {
  readonly client: Client
  readonly kinds: readonly Kind[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export function createOwnerGraph({ client, kinds, clock, random, log }: OwnerGraphOptions): OwnerGraph {
  const stored = kinds.filter((kind) => !kind.faceOf && !kind.isQuestion && !kind.isForeign)
  const caches = new Map(
    stored.map((kind) => {
      const cache = createCache<KubeObject>({ client, kind, clock, random, log, reduce: thin })
      cache.addIndex(BY_OWNER, ({ metadata }) => metadata.ownerReferences?.map(({ uid }) => uid) ?? [])
      return [`${kind.group}/${kind.plural}`, { kind, cache }]
    }),
  )
  const byKind = new Map(
    stored.flatMap((kind) =>
      kind.versions.map((version) => [`${kind.group ? `${kind.group}/` : ''}${version} ${kind.kind}`, kind]),
    ),
  )
  // Events are the same objects under two groups.
  for (const kind of kinds)
    if (kind.faceOf)
      for (const version of kind.versions) byKind.set(`${kind.group}/${version} ${kind.kind}`, kind.faceOf.kind)

  return {
    caches: [...caches.values()].map(({ cache }) => cache),
    find(key) {
      const at = key.indexOf(' ')
      const found = caches.get(key.slice(0, at))
      const [namespace = '', name = ''] = key.slice(at + 1).split('/')
      const object = found?.cache.get({ namespace, name })
      return found && object && { kind: found.kind, object }
    },
    dependentsOf: (uid) =>
      [...caches.values()].flatMap(({ kind, cache }) =>
        cache.byIndex(BY_OWNER, uid).map((object) => ({ kind, object })),
      ),
    kindOf: ({ apiVersion, kind }) => byKind.get(`${apiVersion} ${kind}`),
    run: async (signal) => void (await Promise.all([...caches.values()].map(({ cache }) => cache.run(signal)))),
  }
}

function thin({ metadata }: Readonly<KubeObject>): Readonly<KubeObject> {
  const { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } = metadata
  return Object.freeze({
    metadata: Object.freeze({ name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp }),
  })
}
