// Reads storage classes for modification: the parameters of a volume at creation, and its secret. Cached for a minute;
// a process that may not read them works without.

import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { isForbidden } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import { type Client, find } from '../../client/index.ts'

/** Undefined if the class does not exist or may not be read. Throws ApiError if the server cannot answer. */
export type StorageClassReader = (name: string, signal: AbortSignal) => Promise<Readonly<StorageClass> | undefined>

const REMEMBERED_MS = 60_000
const REMEMBERED_MAX = 1_000

export function storageClassReader({ client, clock }: { client: Client; clock: Clock }): StorageClassReader {
  const known = new LruCache<string, { readonly found: Readonly<StorageClass> | undefined; readonly atMs: number }>(
    REMEMBERED_MAX,
  )
  return async (name, signal) => {
    const remembered = known.get(name)
    if (remembered && clock.monotonicMs() - remembered.atMs < REMEMBERED_MS) return remembered.found
    const found = await find(client, storageClassKind, { name }, { signal }).catch((error: unknown) => {
      if (isForbidden(error)) return undefined
      throw error
    })
    known.set(name, { found, atMs: clock.monotonicMs() })
    return found
  }
}
