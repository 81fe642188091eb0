// Limits the number of values in an update. A stored object that exceeds the limit for new objects can still be
// updated, as long as it does not grow.
import { countValues, VALUES_MAX } from '../../api/decode.ts'
import { objectKey } from '../keys.ts'
import type { Resource } from '../resources.ts'
import { type AnyObject, type ObjectDeps, viewOf } from './object-deps.ts'

/** A smaller body or stored object does not have more than VALUES_MAX values, which take at least two bytes each. */
const LARGE_BYTES_MIN = 2 * VALUES_MAX

export interface UpdatedObject {
  readonly resource: Resource
  readonly namespace: string
  readonly name: string
}

export interface UpdateLimits {
  /** Maximum number of values, without managedFields. */
  readonly valuesMax: number
  /** Maximum number of fields in the text of the body, which may have the managedFields of the stored object. */
  readonly keysMax: number
}

/** Returns the limits of an update whose body has `bodyBytes`. */
export async function updateLimits(
  { store, objects }: Pick<ObjectDeps, 'store' | 'objects'>,
  { resource, namespace, name }: UpdatedObject,
  bodyBytes: number,
): Promise<UpdateLimits> {
  if (bodyBytes < LARGE_BYTES_MIN) return NEW_OBJECT_LIMITS
  const entry = await store.get(objectKey(resource.storedKind, resource.kind.namespaced ? namespace : '', name))
  if (!entry || entry.value.length < LARGE_BYTES_MIN) return NEW_OBJECT_LIMITS
  const storedObject = viewOf(resource, objects.decode(entry))
  return {
    valuesMax: Math.max(VALUES_MAX, countObjectValues(storedObject) + BODY_ONLY_VALUES),
    keysMax: Math.max(VALUES_MAX, countValues(storedObject) + BODY_ONLY_VALUES),
  }
}

const NEW_OBJECT_LIMITS: UpdateLimits = { valuesMax: VALUES_MAX, keysMax: VALUES_MAX }

/** The fields that a body can have but the stored object lacks: kind, apiVersion, and managedFields if it has no managers. */
const BODY_ONLY_VALUES = 3

/** Returns the number of fields and list items of an object, without those of managedFields, which the server adds. */
export const countObjectValues = (object: AnyObject): number =>
  countValues({ ...object, metadata: { ...object.metadata, managedFields: undefined } })
