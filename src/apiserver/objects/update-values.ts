// The number of values that an update may have. An object that was stored with more values than new objects may have can still
// be updated, as long as it does not grow.
import { countValues, VALUES_MAX } from '../../api/decode.ts'
import { objectKey } from '../keys.ts'
import type { Resource } from '../resources.ts'
import { type ObjectDeps, viewOf } from './object-deps.ts'

/** A smaller body or stored object does not have more than VALUES_MAX values, which take at least two bytes each. */
const LARGE_BYTES_MIN = 2 * VALUES_MAX

export interface UpdatedObject {
  readonly resource: Resource
  readonly namespace: string
  readonly name: string
}

/** Returns the maximum number of values in an update whose body has `bodyBytes`. */
export async function updateValuesMax(
  { store, objects }: Pick<ObjectDeps, 'store' | 'objects'>,
  { resource, namespace, name }: UpdatedObject,
  bodyBytes: number,
): Promise<number> {
  if (bodyBytes < LARGE_BYTES_MIN) return VALUES_MAX
  const entry = await store.get(objectKey(resource.stored, resource.kind.namespaced ? namespace : '', name))
  if (!entry || entry.value.length < LARGE_BYTES_MIN) return VALUES_MAX
  const values = countValues(viewOf(resource, objects.decode(entry)))
  return Math.max(VALUES_MAX, values + TYPE_META_VALUES)
}

/** Objects are stored without kind and apiVersion. */
const TYPE_META_VALUES = 2
