// Reads an object that may not exist. This is a function rather than a method of the client, so that wrappers need to
// intercept `get` only.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { isNotFound } from '../api/status-error.ts'
import type { Client, GetOptions, ObjectRef } from './client.ts'

/** Returns the object, or undefined if it does not exist. Throws if the server does not serve the kind. */
export async function find<T extends KubeObject>(
  client: Pick<Client, 'get'>,
  kind: Kind<T>,
  ref: ObjectRef,
  options?: GetOptions,
): Promise<Readonly<Stored<T>> | undefined> {
  try {
    return await client.get(kind, ref, options)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
