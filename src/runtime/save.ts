// Saves a controller's writes: commits them, then updates the caches, so that the next reconcile reads its own updates.
// With leader election only the leader may save: leadership is checked right before the commit, and a server that commits
// atomically also checks the lease in the same transaction (LeaderElection.fence).
import type { Kind, Stored } from '../api/kind.ts'
import { type Client, type CommitWrite, failedWriteIndex } from '../client/client.ts'
import { type LeaderElection, NotLeaderError } from './leader-election.ts'

export interface SaverOptions {
  readonly client: Client
  /** Undefined in a process without leader election. */
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  /** The caches to update. Caches of other kinds are updated by their watch. */
  readonly caches: readonly UpdatableCache[]
}

/** The members of Cache that `save` uses. */
interface UpdatableCache {
  readonly kind: Kind
  applyWriteResult(object: Readonly<Stored>): void
}

/** One object per write, in its state after the whole commit, or undefined if the object no longer exists. */
export type SavedObjects = readonly (Readonly<Stored> | undefined)[]

type SaveResult =
  | { readonly is: 'saved'; readonly objects: SavedObjects }
  /** `writeIndex` is the index of the write that failed, or undefined if the error concerns the whole commit. */
  | { readonly is: 'failed'; readonly writeIndex: number | undefined; readonly error: unknown }

export interface Saver {
  /** Throws the error of the commit, or NotLeaderError. */
  save(writes: readonly CommitWrite[]): Promise<SavedObjects>
  /** Like `save`, but returns a failure instead of throwing it. Throws only NotLeaderError. */
  trySave(writes: readonly CommitWrite[]): Promise<SaveResult>
}

export function createSaver({ client, election, caches }: SaverOptions): Saver {
  async function commit<S, F>(
    writes: readonly CommitWrite[],
    onSaved: (objects: SavedObjects) => S,
    onFailed: (failure: Extract<SaveResult, { is: 'failed' }>) => F,
  ): Promise<S | F> {
    let fenceCount = 0
    let objects: SavedObjects
    try {
      const fence = election && (await client.commitsAtomically()) ? election.fence() : []
      fenceCount = fence.length
      election?.assertStillLeader()
      objects = (await client.commit([...fence, ...writes])).slice(fenceCount)
    } catch (error) {
      if (error instanceof NotLeaderError) throw error
      const index = failedWriteIndex(error)
      if (index !== undefined && index < fenceCount) {
        throw new NotLeaderError('this process is no longer the leader: it lost the lease before this commit')
      }
      return onFailed({ is: 'failed', writeIndex: index === undefined ? undefined : index - fenceCount, error })
    }
    updateCaches(writes, objects)
    return onSaved(objects)
  }

  function updateCaches(writes: readonly CommitWrite[], objects: SavedObjects): void {
    for (const [position, object] of objects.entries()) {
      if (!object) continue
      const kind = writes[position]?.kind
      caches.find((cache) => cache.kind === kind)?.applyWriteResult(object)
    }
  }

  return {
    save: (writes) =>
      commit(
        writes,
        (objects) => objects,
        ({ error }) => {
          throw error
        },
      ),
    trySave: (writes) =>
      commit(
        writes,
        (objects) => ({ is: 'saved', objects }) as const,
        (failure) => failure,
      ),
  }
}
