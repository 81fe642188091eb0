// Storage classes of volumes that change: what they were made with, and which secret they name. Read when needed and
// remembered for a while; a process without the right to read them goes without.

import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { Client } from '../../client/index.ts'

/** Undefined when there is none, or none that may be read. Throws ApiError where the server cannot tell now. */
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
    const found = await client.get(storageClassKind, { name }, { signal }).catch((error: unknown) => {
      if (error instanceof ApiError && (error.code === 404 || error.code === 403)) return undefined
      throw error
    })
    known.set(name, { found, atMs: clock.monotonicMs() })
    return found
  }
}
