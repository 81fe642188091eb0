// Reads an object that may not exist. A function over `get` rather than a method, so that a wrapper that intercepts `get`
// intercepts this too.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { isNotFound } from '../api/status-error.ts'
import type { Client, ObjectRef } from './client.ts'

/** The object, or undefined if it does not exist. A kind that the server does not serve is an error, not a missing object. */
export async function find<T extends KubeObject>(
  client: Pick<Client, 'get'>,
  kind: Kind<T>,
  ref: ObjectRef,
  options?: { resourceVersion?: string; signal?: AbortSignal },
): Promise<Readonly<Stored<T>> | undefined> {
  try {
    return await client.get(kind, ref, options)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
