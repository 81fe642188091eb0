// Iterates over the stored values that encryption applies to, to rewrite stale ones or to find those that a configuration
// cannot decrypt.
import { type Entry, type Store, UndecryptableError } from '../../store/index.ts'
import { BRIEF_HISTORY_PREFIXES } from '../keys.ts'
import type { Encryption } from './encryption.ts'

const PAGE_ENTRIES = 500
const SECRETS_PREFIX = 'core/secrets/'

/**
 * Writes stale values again and returns their number. Skips events and the journal, which expire, and leases, which are renewed.
 * Values that cannot be decrypted are left unchanged and passed to `onError`.
 */
export async function rewriteStaleValues(
  store: Store,
  encryption: Encryption,
  onError: (error: UndecryptableError) => void,
): Promise<number> {
  let rewriteCount = 0
  for await (const { key, isStale } of entriesBelow(store, encryption.prefixes())) {
    if (!isStale || BRIEF_HISTORY_PREFIXES.some((prefix) => key.startsWith(prefix))) continue
    try {
      const { revisions } = await store.transact((view) => {
        const entry = view.get(key)
        return entry?.isStale ? [{ put: key, value: entry.value }] : []
      })
      rewriteCount += revisions.length
    } catch (error) {
      if (!(error instanceof UndecryptableError)) throw error
      onError(error)
    }
  }
  return rewriteCount
}

/**
 * Returns the error of the first stored value that `candidate` cannot decrypt. Checks the resources of both configurations, and
 * Secrets even if neither configuration names them.
 */
export async function findUndecryptable(
  store: Store,
  { current, candidate = current }: { readonly current: Encryption; readonly candidate?: Encryption },
): Promise<UndecryptableError | undefined> {
  const prefixes = [SECRETS_PREFIX, ...current.prefixes(), ...candidate.prefixes()]
  for await (const { key, storedBytes } of entriesBelow(store, prefixes)) {
    try {
      if (storedBytes && candidate.isTransformed(key, storedBytes)) candidate.decode(key, storedBytes)
    } catch (error) {
      if (error instanceof UndecryptableError) return error
      throw error
    }
  }
  return undefined
}

async function* entriesBelow(store: Store, prefixes: readonly string[]): AsyncGenerator<Entry> {
  for (const prefix of new Set(prefixes)) {
    let lastKey: string | undefined
    for (;;) {
      const { entries, hasMore } = await store.list({ prefix, afterKey: lastKey, limit: PAGE_ENTRIES })
      yield* entries
      lastKey = entries.at(-1)?.key
      if (!hasMore) break
    }
  }
}
