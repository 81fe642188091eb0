// Reads storage classes, for the parameters that a volume was created with and the reference to its modify secret. Caches
// each class for one minute. If the process may not read storage classes, they are treated as missing.
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { isForbidden } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import { type Client, find } from '../../client/index.ts'

/** Returns undefined if the class does not exist or reading it is forbidden. Throws ApiError if the server fails. */
export type StorageClassReader = (name: string, signal: AbortSignal) => Promise<Readonly<StorageClass> | undefined>

const CACHED_MS_MAX = 60_000
const CACHED_CLASSES_MAX = 1_000
const DENIAL_MESSAGE =
  'modifications do not use the secret and the initial attributes in the parameters of storage classes'

export function createStorageClassReader({ client, clock }: { client: Client; clock: Clock }): StorageClassReader {
  const cache = new LruCache<
    string,
    { readonly storageClass: Readonly<StorageClass> | undefined; readonly readMs: number }
  >(CACHED_CLASSES_MAX)
  return async (name, signal) => {
    const cachedEntry = cache.get(name)
    if (cachedEntry && clock.monotonicMs() - cachedEntry.readMs < CACHED_MS_MAX) return cachedEntry.storageClass
    const storageClass = await find(
      client,
      storageClassKind,
      { name },
      { signal, denialMessage: DENIAL_MESSAGE },
    ).catch((error: unknown) => {
      if (isForbidden(error)) return undefined
      throw error
    })
    cache.set(name, { storageClass, readMs: clock.monotonicMs() })
    return storageClass
  }
}
