// Finds the operation of a key of a controller: the object in a cache, and what the controller does with it.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { type ObjectKey, refOfKey } from '../../client/object-key.ts'
import type { OperationSubject } from './operation-of.ts'

/** How the operations of a controller are listed. */
export interface ControllerOperation {
  /** The component, as in the roles of `stowage rbac print`. */
  readonly component: string
  /** What the controller does with an object, such as `Provision`. The object is undefined if it no longer exists. */
  readonly name: string | ((object: Readonly<Stored> | undefined, key: ObjectKey) => string)
  /** The cache of the objects that the keys name. Default: that of the first source. */
  readonly cache?: ObjectCache
  /** Returns the object of a key. Default: the object in the cache. */
  objectOf?(key: ObjectKey): Readonly<Stored> | undefined
}

export interface ObjectCache {
  readonly kind: Kind
  get(key: ObjectKey): Readonly<Stored> | undefined
}

/** The key of an object may have a suffix after `#`, which the controller interprets. */
export function subjectOfKey(
  key: ObjectKey,
  { name, objectOf }: ControllerOperation,
  cache: ObjectCache,
): OperationSubject {
  const [objectKey = ''] = key.split('#')
  const object = objectOf ? objectOf(key) : cache.get(objectKey)
  return {
    operation: typeof name === 'string' ? name : name(object, key),
    object: {
      apiVersion: apiVersionOf(cache.kind),
      kind: cache.kind.kind,
      ...(object ? refOf(object) : refOfKey(objectKey)),
      ...(object ? { uid: object.metadata.uid } : {}),
    },
  }
}

const refOf = ({ metadata: { namespace, name } }: Readonly<Stored>) => ({ ...(namespace ? { namespace } : {}), name })

const apiVersionOf = ({ group, versions }: Pick<Kind, 'group' | 'versions'>): string =>
  group ? `${group}/${versions[0]}` : (versions[0] ?? '')

/** Returns a function that names the operation of an object: one name while it exists, another while it is deleted. */
export const whileDeleted =
  (deleting: string, otherwise: string) =>
  (object: Readonly<KubeObject> | undefined): string =>
    !object || object.metadata.deletionTimestamp ? deleting : otherwise
