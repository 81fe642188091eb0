// Sends small commits together: while GROUPS_IN_FLIGHT_MAX commits are in flight, further ones wait and are then sent as one.
// In a burst, most of the cost of a write over HTTP is its request; a single commit is sent at once. The commits of a group must be
// independent of each other. If the server rejects a group, nothing of it was written, and each of its commits is sent alone, so that
// each caller receives the result of its own commit.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { ApiError } from '../api/status-error.ts'
import type { Client, CommitWrite, ObjectRef, Patch, WriteOptions } from './client.ts'

const GROUPS_IN_FLIGHT_MAX = 2
/** Larger groups would delay other writes of the server. */
const GROUP_WRITES_MAX = 64

type Result = Awaited<ReturnType<Client['commit']>>

interface WaitingCommit {
  readonly writes: readonly CommitWrite[]
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Returns the client with grouped commits and patches. Those with options, and all on a server without atomic commits, are sent
 * alone.
 */
export function groupCommits(client: Client): Client {
  const waitingCommits: WaitingCommit[] = []
  let inFlightCount = 0

  function sendWaiting(): void {
    while (inFlightCount < GROUPS_IN_FLIGHT_MAX && waitingCommits.length > 0) void sendGroup(takeGroup())
  }

  function takeGroup(): WaitingCommit[] {
    let commitCount = 0
    let writeCount = 0
    for (const { writes } of waitingCommits) {
      writeCount += writes.length
      if (commitCount > 0 && writeCount > GROUP_WRITES_MAX) break
      commitCount++
    }
    return waitingCommits.splice(0, commitCount)
  }

  /** Never rejects. */
  async function sendGroup(group: readonly WaitingCommit[]): Promise<void> {
    inFlightCount++
    try {
      const results = await client.commit(group.flatMap(({ writes }) => writes))
      let start = 0
      for (const { writes, resolve } of group) {
        resolve(results.slice(start, start + writes.length))
        start += writes.length
      }
    } catch (error) {
      if (group.length > 1 && isRejection(error)) for (const waiting of group) sendAlone(waiting)
      else for (const { reject } of group) reject(error)
    } finally {
      inFlightCount--
      sendWaiting()
    }
  }

  const sendAlone = ({ writes, resolve, reject }: WaitingCommit): void =>
    void client.commit(writes).then(resolve, reject)

  const commit = (writes: readonly CommitWrite[]) =>
    new Promise<Result>((resolve, reject) => {
      waitingCommits.push({ writes, resolve, reject })
      sendWaiting()
    })

  return {
    ...client,
    async commit(writes, options) {
      const isGrouped = options === undefined && writes.length > 0 && (await client.commitsAtomically())
      return isGrouped ? commit(writes) : client.commit(writes, options)
    },
    async patch<T extends KubeObject>(kind: Kind<T>, ref: ObjectRef, patch: Patch, options?: WriteOptions) {
      if (options !== undefined || !(await client.commitsAtomically())) return client.patch(kind, ref, patch, options)
      const [object] = await commit([{ do: 'patch', kind: kind as Kind, ref, patch }])
      return object as Readonly<Stored<T>>
    },
  }
}

/** Whether the server has certainly written nothing, and may accept a part of the commit. */
const isRejection = (error: unknown): boolean =>
  error instanceof ApiError && error.code >= 400 && error.code < 500 && ![408, 429].includes(error.code)
