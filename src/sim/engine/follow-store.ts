// Every change of the store, commit by commit, over every incarnation of the server: what the views of the checkers stand on.
// A server that comes back shows what it kept: to those who look that is one commit.
import type { Store } from '../../store/index.ts'
import type { Cluster } from '../world/cluster.ts'

/** What one key holds from this revision on. */
export interface Stored {
  readonly key: string
  /** Undefined: it is gone. */
  readonly value: Uint8Array | undefined
  readonly revision: number
}

/** `take` gets what became visible at once: whole transactions, though each write has its own revision. */
export function followStore(
  cluster: Pick<Cluster, 'follow' | 'store'>,
  prefix: string,
  take: (states: readonly Stored[]) => void,
): void {
  const known = new Set<string>()
  const tell = (states: readonly Stored[]) => {
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
      // Its history was cut before it had caught up.
      onEnd: () => void (cluster.store() === store && attach(store)),
    })
  }
  cluster.follow((store) => void attach(store))
}
