// Follows every change of the store, commit by commit, over every incarnation of the server. After a restart, the stored
// state arrives as one commit.
import type { Store } from '../../store/index.ts'
import type { Cluster } from '../environment/cluster.ts'

/** The value of one key from this revision on. */
export interface StoreWrite {
  readonly key: string
  /** Undefined: deleted. */
  readonly value: Uint8Array | undefined
  readonly revision: number
}

/** `take` gets what became visible together: whole transactions, although each write has its own revision. */
export function followStore(
  cluster: Pick<Cluster, 'follow' | 'store'>,
  prefix: string,
  take: (states: readonly StoreWrite[]) => void,
): void {
  const known = new Set<string>()
  const tell = (states: readonly StoreWrite[]) => {
    for (const { key, value } of states) {
      if (value === undefined) known.delete(key)
      else known.add(key)
    }
    take(states)
  }

  async function attach(store: Store): Promise<void> {
    const { entries, revision } = await store.list({ prefix })
    const present = new Set(entries.map(({ key }) => key))
    const gone = [...known].filter((key) => !present.has(key))
    tell([
      ...gone.map((key) => ({ key, value: undefined, revision })),
      ...entries.map(({ key, value, modRevision }) => ({ key, value, revision: modRevision })),
    ])
    store.watch({
      prefix,
      afterRevision: revision,
      onEvents: (events) =>
        tell(events.map(({ key, revision: at, entry }) => ({ key, value: entry?.value, revision: at }))),
      // The history was compacted before this watch had caught up.
      onEnd: () => void (cluster.store() === store && attach(store)),
    })
  }
  cluster.follow((store) => void attach(store))
}
