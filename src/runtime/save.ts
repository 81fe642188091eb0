// Saves the writes of a controller: commits them, then updates the caches, so that the next reconcile does not plan from
// objects older than its own writes. Only the leader's writes are saved: on a server that commits atomically the lease
// is checked in the same transaction (LeaderElection.fence), on any other right before the commit.
import type { Kind, Stored } from '../api/kind.ts'
import { type Client, type CommitWrite, failedWrite } from '../client/client.ts'
import { type LeaderElection, NotLeaderError } from './leader-election.ts'

export interface SaverOptions {
  readonly client: Client
  /** Absent in a process that does not elect a leader. */
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  /** The caches to update. Objects of other kinds are committed and arrive by their watch. */
  readonly caches: readonly UpdatableCache[]
}

/** The part of a Cache that `save` uses. */
interface UpdatableCache {
  readonly kind: Kind
  learn(object: Readonly<Stored>): void
}

/** One per write, as it is after the whole commit; undefined for an object that no longer exists. */
export type SavedObjects = readonly (Readonly<Stored> | undefined)[]

export type SaveResult =
  | { readonly is: 'saved'; readonly objects: SavedObjects }
  /** `write`: index of the write that failed, undefined if the error concerns none in particular. */
  | { readonly is: 'failed'; readonly write: number | undefined; readonly error: unknown }

export interface Saver {
  /** Throws the error of the commit, or NotLeaderError. */
  save(writes: readonly CommitWrite[]): Promise<SavedObjects>
  /** As `save`, for callers that handle the failure of each write differently. Throws only NotLeaderError. */
  trySave(writes: readonly CommitWrite[]): Promise<SaveResult>
}

export function createSaver({ client, election, caches }: SaverOptions): Saver {
  async function commit<S, F>(
    writes: readonly CommitWrite[],
    saved: (objects: SavedObjects) => S,
    failed: (failure: Extract<SaveResult, { is: 'failed' }>) => F,
  ): Promise<S | F> {
    let fences = 0
    let objects: SavedObjects
    try {
      const fence = election && (await client.commitsAtomically()) ? [election.fence()] : []
      fences = fence.length
      election?.assertStillLeader()
      objects = (await client.commit([...fence, ...writes])).slice(fences)
    } catch (error) {
      if (error instanceof NotLeaderError) throw error
      const at = failedWrite(error)
      if (at !== undefined && at < fences) {
        throw new NotLeaderError('another process leads now: the lease changed hands before this commit')
      }
      return failed({ is: 'failed', write: at === undefined ? undefined : at - fences, error })
    }
    updateCaches(writes, objects)
    return saved(objects)
  }

  function updateCaches(writes: readonly CommitWrite[], objects: SavedObjects): void {
    for (const [index, object] of objects.entries()) {
      if (!object) continue
      const kind = writes[index]?.kind
      caches.find((cache) => cache.kind === kind)?.learn(object)
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
