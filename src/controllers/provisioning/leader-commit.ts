// A commit that only the leader gets through: where the server commits atomically, the lease is checked in the same
// transaction; elsewhere, right before. How it failed is data, and counts the caller's own writes.
import type { Stored } from '../../api/kind.ts'
import { type Client, type CommitWrite, failedWrite } from '../../client/index.ts'
import { type LeaderElection, NotLeaderError } from '../../runtime/index.ts'

export interface LeaderCommitDeps {
  readonly client: Client
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
}

export type Committed =
  | { readonly is: 'committed'; readonly left: readonly (Readonly<Stored> | undefined)[] }
  /** `write`: which one, from 0; nothing when it is about none in particular. */
  | { readonly is: 'failed'; readonly write: number | undefined; readonly error: unknown }

export async function commitAsLeader(
  { client, election }: LeaderCommitDeps,
  writes: readonly CommitWrite[],
): Promise<Committed> {
  let fences = 0
  try {
    const fence = election && (await client.commitsAtomically()) ? [election.fence()] : []
    fences = fence.length
    election?.assertStillLeader()
    const left = await client.commit([...fence, ...writes])
    return { is: 'committed', left: left.slice(fences) }
  } catch (error) {
    const at = failedWrite(error)
    if (at !== undefined && at < fences) {
      throw new NotLeaderError('someone else leads now: the lease changed hands before this commit')
    }
    return { is: 'failed', write: at === undefined ? undefined : at - fences, error }
  }
}
