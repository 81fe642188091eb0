// Rule `cache`: a watched cache behind the faulty network notifies its subscribers of each object once, then of its changes
// in order, then of its deletion; and at rest it holds exactly the objects of the store. Runs the production cache in a
// separate process if the setup includes one.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { collectionPrefix } from '../../apiserver/index.ts'
import { keyOfObject } from '../../client/index.ts'
import { type Cache, createCache } from '../../runtime/index.ts'
import type { CheckContext, Problem } from './context.ts'

const FOLLOWED_KINDS = [configMapKind, persistentVolumeClaimKind] as unknown as readonly Kind[]

/** Adds the process. Returns a function that returns the violations in its caches at rest. */
export function addCacheFollower({ system, view, report }: CheckContext): () => Problem[] {
  if (!system.setup.cacheFollower) return () => []
  const caches = new Map<Kind, Cache<KubeObject>>()
  const instance = system.cluster.add('cache-follower', ({ clock, random, signal }, client) => {
    for (const kind of FOLLOWED_KINDS) {
      const cache: Cache<KubeObject> = createCache({ client, kind: kind as never, clock, random })
      cache.subscribe(createOrderCheck(kind.plural, (text) => report('cache', text)))
      caches.set(kind, cache)
      void cache.run(signal)
    }
  })
  system.cluster.simulation.note(`${instance.name} follows ${FOLLOWED_KINDS.map(({ plural }) => plural).join(' and ')}`)
  return () =>
    [...caches].flatMap(([kind, cache]) =>
      findCacheProblems(kind, cache.list(), view.revisionsUnder(collectionPrefix(kind))),
    )
}

function findCacheProblems(
  { plural }: Kind,
  cachedObjects: readonly Readonly<KubeObject>[],
  storedRevisions: ReadonlyMap<string, number>,
): Problem[] {
  const problem = (text: string): Problem => ({ rule: 'cache', text: `the cache of ${plural} ${text}` })
  const missingRevisions = new Map(storedRevisions)
  const outdatedProblems = cachedObjects.flatMap((object) => {
    const key = keyOfObject(object)
    const revision = missingRevisions.get(key)
    missingRevisions.delete(key)
    const { resourceVersion } = object.metadata
    return String(revision) === resourceVersion
      ? []
      : [problem(`holds ${key} at ${resourceVersion}, but the store has ${revision ?? 'nothing'}`)]
  })
  return [
    ...outdatedProblems,
    ...[...missingRevisions].map(([key, revision]) => problem(`lacks ${key}, which the store has at ${revision}`)),
  ]
}

/** Creates a subscriber that reports notifications which no cache may make. */
export function createOrderCheck(plural: string, report: (text: string) => void) {
  const cachedObjects = new Map<string, { readonly uid: string | undefined; readonly version: number }>()
  const identityOf = (object: Readonly<KubeObject>) => ({
    key: keyOfObject(object),
    uid: object.metadata.uid,
    version: Number(object.metadata.resourceVersion),
  })
  return {
    added(object: Readonly<KubeObject>): void {
      const { key, uid, version } = identityOf(object)
      if (cachedObjects.has(key)) report(`the cache of ${plural} added ${key}, which it held already`)
      cachedObjects.set(key, { uid, version })
    },
    updated(next: Readonly<KubeObject>): void {
      const { key, uid, version } = identityOf(next)
      const cachedObject = cachedObjects.get(key)
      if (!cachedObject || cachedObject.uid !== uid)
        report(`the cache of ${plural} updated ${key}, which it did not hold`)
      else if (version <= cachedObject.version)
        report(`the cache of ${plural} updated ${key} to ${version} after ${cachedObject.version}`)
      cachedObjects.set(key, { uid, version })
    },
    deleted(object: Readonly<KubeObject>): void {
      const { key } = identityOf(object)
      if (!cachedObjects.delete(key)) report(`the cache of ${plural} deleted ${key}, which it did not hold`)
    },
  }
}
