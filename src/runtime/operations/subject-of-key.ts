// Finds the subject of an operation by a controller's key: the object in a cache, and the name of the operation.
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { type ObjectKey, refOfKey } from '../../client/object-key.ts'
import type { OperationSubject } from './operation-of.ts'

/** Describes the operations of a controller for the list of operations. */
export interface ControllerOperation {
  /** The component, as in the roles of `stowage rbac print`. */
  readonly component: string
  /** The operation's name, such as `Provision`. The object is undefined if it no longer exists. */
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

/** An object's key may have a suffix after `#`, which the controller interprets. */
export function subjectOfKey(
  key: ObjectKey,
  { name, objectOf }: ControllerOperation,
  cache: ObjectCache,
): OperationSubject {
  const suffixStart = key.indexOf('#')
  const objectKey = suffixStart < 0 ? key : key.slice(0, suffixStart)
  const object = objectOf ? objectOf(key) : cache.get(objectKey)
  return {
    operation: typeof name === 'string' ? name : name(object, key),
    object: object ? referenceTo(object, cache.kind) : { ...typeOf(cache.kind), ...refOfKey(objectKey) },
  }
}

/** Runs for every attempt, so it copies no objects. */
function referenceTo({ metadata: { namespace, name, uid } }: Readonly<Stored>, kind: Kind): OperationSubject['object'] {
  const apiVersion = apiVersionOf(kind)
  return namespace ? { apiVersion, kind: kind.kind, namespace, name, uid } : { apiVersion, kind: kind.kind, name, uid }
}

const typeOf = (kind: Kind) => ({ apiVersion: apiVersionOf(kind), kind: kind.kind })

const apiVersionOf = ({ group, versions }: Pick<Kind, 'group' | 'versions'>): string =>
  group ? `${group}/${versions[0]}` : (versions[0] ?? '')

/** Returns a function that names the operation of an object by whether it exists and is not being deleted. */
export const nameByDeletion =
  (deletionName: string, defaultName: string) =>
  (object: Readonly<KubeObject> | undefined): string =>
    !object || object.metadata.deletionTimestamp ? deletionName : defaultName
