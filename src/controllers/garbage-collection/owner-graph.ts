// The owner graph: metadata of every object (identity, owners, finalizers), indexed by owner.
// Plans are plan-garbage.ts, writes garbage-controller.ts.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import type { Cache, CacheSet } from '../../runtime/index.ts'

/** An object of any kind in the graph. */
export interface Node {
  readonly kind: Kind
  readonly object: Readonly<Stored>
}

export interface OwnerGraph {
  readonly caches: readonly Cache<KubeObject>[]
  find(key: string): Node | undefined
  /** Objects that name this uid among their owners. */
  dependentsOf(uid: string): Node[]
  /** The kind of an owner reference; undefined if it is not served. */
  kindOf(owner: OwnerReference): Kind | undefined
}

const BY_OWNER = 'garbage owner'

/** `GROUP/PLURAL NAMESPACE/NAME`: one work queue serves all kinds. */
export const nodeKey = (
  { group, plural }: Kind,
  { metadata: { namespace = '', name = '' } }: Readonly<KubeObject>,
): string => `${group}/${plural} ${namespace}/${name}`

export function createOwnerGraph(kinds: readonly Kind[], shared: Pick<CacheSet, 'metadataOf'>): OwnerGraph {
  const stored = kinds.filter((kind) => !kind.viewOf && !kind.isReview && !kind.isForeign)
  const caches = new Map(
    stored.map((kind) => {
      const cache = shared.metadataOf(kind)
      cache.addIndex(BY_OWNER, ownersOf)
      return [`${kind.group}/${kind.plural}`, { kind, cache }]
    }),
  )
  const byKind = new Map(
    stored.flatMap((kind) =>
      kind.versions.map((version) => [`${kind.group ? `${kind.group}/` : ''}${version} ${kind.kind}`, kind]),
    ),
  )
  // Events are served in two groups.
  for (const kind of kinds)
    if (kind.viewOf)
      for (const version of kind.versions) byKind.set(`${kind.group}/${version} ${kind.kind}`, kind.viewOf.kind)

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
  }
}

const ownersOf = ({ metadata }: Readonly<KubeObject>): string[] => metadata.ownerReferences?.map(({ uid }) => uid) ?? []
