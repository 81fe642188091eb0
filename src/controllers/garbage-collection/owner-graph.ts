// The owner graph: the metadata of the stored objects, indexed by owner. plan-garbage.ts plans from it;
// garbage-controller.ts writes.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import type { Cache, CacheSet } from '../../runtime/index.ts'

/** An object of any kind in the graph. */
export interface GraphNode {
  readonly kind: Kind
  readonly object: Readonly<Stored>
}

export interface OwnerGraph {
  readonly caches: readonly Cache<KubeObject>[]
  find(key: string): GraphNode | undefined
  /** Returns the objects with an owner reference to this uid. */
  dependentsOf(uid: string): readonly GraphNode[]
  /** Returns the kind of the owner, or undefined if it is unknown. */
  kindOf(owner: OwnerReference): Kind | undefined
}

const BY_OWNER = 'garbage owner'

/** Returns `GROUP/PLURAL NAMESPACE/NAME`, a key that is unique among the objects of all kinds. */
export const nodeKey = (
  { group, plural }: Kind,
  { metadata: { namespace = '', name = '' } }: Readonly<KubeObject>,
): string => `${group}/${plural} ${namespace}/${name}`

export function createOwnerGraph(kinds: readonly Kind[], cacheSet: Pick<CacheSet, 'metadataOf'>): OwnerGraph {
  const storedKinds = kinds.filter((kind) => !kind.viewOf && !kind.isReview && !kind.isForeign)
  const caches = new Map(
    storedKinds.map((kind) => {
      const cache = cacheSet.metadataOf(kind)
      cache.addIndex(BY_OWNER, ownersOf)
      return [`${kind.group}/${kind.plural}`, { kind, cache }]
    }),
  )
  const kindsByName = new Map(
    storedKinds.flatMap((kind) =>
      kind.versions.map((version) => [`${kind.group ? `${kind.group}/` : ''}${version} ${kind.kind}`, kind]),
    ),
  )
  // Some kinds, such as Event, are served in a second API group.
  for (const kind of kinds)
    if (kind.viewOf)
      for (const version of kind.versions) kindsByName.set(`${kind.group}/${version} ${kind.kind}`, kind.viewOf.kind)

  const cacheList = [...caches.values()]

  return {
    caches: cacheList.map(({ cache }) => cache),
    find(key) {
      const [kindKey = '', objectKey = ''] = key.split(' ')
      const kindCache = caches.get(kindKey)
      const [namespace = '', name = ''] = objectKey.split('/')
      const object = kindCache?.cache.get({ namespace, name })
      return kindCache && object && { kind: kindCache.kind, object }
    },
    dependentsOf(uid) {
      const dependents: GraphNode[] = []
      for (const { kind, cache } of cacheList) {
        for (const object of cache.byIndex(BY_OWNER, uid)) dependents.push({ kind, object })
      }
      return dependents
    },
    kindOf: ({ apiVersion, kind }) => kindsByName.get(`${apiVersion} ${kind}`),
  }
}

const ownersOf = ({ metadata }: Readonly<KubeObject>): string[] => metadata.ownerReferences?.map(({ uid }) => uid) ?? []
