// Follows every change to the store, commit by commit, over every incarnation of the server. After a restart of the server, and
// after a compaction of history that was not read yet, the stored state arrives as one commit.
import type { Store } from '../../store/index.ts'
import type { Cluster } from '../environment/cluster.ts'

/** The value of one key from this revision on. */
export interface StoreWrite {
  readonly key: string
  /** Undefined if the key was deleted. */
  readonly value: Uint8Array | undefined
  readonly revision: number
}

/** Calls `onWrites` with all writes of a transaction together, although each write has its own revision. */
export function followStore(
  cluster: Pick<Cluster, 'follow' | 'store'>,
  prefix: string,
  onWrites: (writes: readonly StoreWrite[]) => void,
): void {
  const presentKeys = new Set<string>()
  const deliver = (writes: readonly StoreWrite[]) => {
    for (const { key, value } of writes) {
      if (value === undefined) presentKeys.delete(key)
      else presentKeys.add(key)
    }
    onWrites(writes)
  }

  async function attach(store: Store): Promise<void> {
    const { entries, revision } = await store.list({ prefix })
    const listedKeys = new Set(entries.map(({ key }) => key))
    const deletedKeys = [...presentKeys].filter((key) => !listedKeys.has(key))
    deliver([
      ...deletedKeys.map((key) => ({ key, value: undefined, revision })),
      ...entries.map(({ key, value, modRevision }) => ({ key, value, revision: modRevision })),
    ])
    store.watch({
      prefix,
      afterRevision: revision,
      onEvents: (events) =>
        deliver(
          events.map(({ key, revision: eventRevision, entry }) => ({
            key,
            value: entry?.value,
            revision: eventRevision,
          })),
        ),
      // The history was compacted before this watch had caught up.
      onEnd: () => void (cluster.store() === store && attach(store)),
    })
  }
  cluster.follow((store) => void attach(store))
}
