import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../api/kind.ts'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { secretKind } from '../api/kinds/secret/secret.ts'
import { ApiError } from '../api/status-error.ts'
import { type Client, type CommitWrite, commitWriteFailed } from '../client/client.ts'
import { NotLeaderError } from './leader-election.ts'
import { createSaver } from './save.ts'

const aDelete = (name: string): CommitWrite => ({ do: 'delete', kind: configMapKind, ref: { namespace: 'a', name } })
const aCreate = (name: string): CommitWrite => ({
  do: 'create',
  kind: secretKind,
  object: { metadata: { namespace: 'a', name } },
})
const FENCE: CommitWrite = {
  do: 'patch',
  kind: leaseKind,
  ref: { namespace: 'a', name: 'lease' },
  patch: { type: 'json', body: [] },
}
const aStoredObject = (name: string): KubeObject => ({
  metadata: { namespace: 'a', name, uid: name, resourceVersion: '7' },
})

interface SaverFixtureOptions {
  readonly isAtomic?: boolean
  readonly isLeader?: boolean
  readonly hasElection?: boolean
  readonly commit?: (writes: readonly CommitWrite[]) => readonly (KubeObject | undefined)[]
}

function createFixture({
  isAtomic = true,
  isLeader = true,
  hasElection = true,
  commit = () => [],
}: SaverFixtureOptions) {
  const commits: (readonly CommitWrite[])[] = []
  const cachedNames: string[] = []
  const client = {
    commitsAtomically: async () => isAtomic,
    commit: async (writes: readonly CommitWrite[]) => {
      commits.push(writes)
      return commit(writes)
    },
  } as unknown as Client
  const assertStillLeader = () => {
    if (!isLeader) throw new NotLeaderError('a no longer leads')
  }
  const election = hasElection ? { assertStillLeader, fence: () => [FENCE] } : undefined
  const caches = [
    { kind: configMapKind, applyWriteResult: ({ metadata }: KubeObject) => void cachedNames.push(metadata.name!) },
  ]
  return { ...createSaver({ client, election, caches }), commits, cachedNames }
}

describe('a saver', () => {
  it('commits with the fence on a server with atomic commits, and returns the written objects', async () => {
    const objects = [aStoredObject('x'), undefined]
    const { save, commits } = createFixture({ commit: () => [undefined, ...objects] })
    expect(await save([aDelete('x'), aCreate('y')])).toEqual(objects)
    expect(commits).toEqual([[FENCE, aDelete('x'), aCreate('y')]])
  })

  it('commits without a fence if the server has no atomic commits or there is no leader election', async () => {
    for (const options of [{ isAtomic: false }, { hasElection: false }]) {
      const { save, commits } = createFixture(options)
      await save([aDelete('x')])
      expect(commits).toEqual([[aDelete('x')]])
    }
  })

  it('applies written objects to the caches of their kinds, and skips deleted objects', async () => {
    const { save, cachedNames } = createFixture({
      hasElection: false,
      commit: () => [aStoredObject('x'), aStoredObject('y'), undefined],
    })
    await save([aDelete('x'), aCreate('y'), aDelete('z')])
    expect(cachedNames).toEqual(['x'])
  })

  it.each([true, false])(
    'throws NotLeaderError before the commit if this process no longer leads (atomic: %s)',
    async (isAtomic) => {
      const { save, trySave, commits } = createFixture({ isLeader: false, isAtomic })
      await expect(save([aDelete('x')])).rejects.toThrow(NotLeaderError)
      await expect(trySave([aDelete('x')])).rejects.toThrow(NotLeaderError)
      expect(commits).toEqual([])
    },
  )

  it('throws NotLeaderError if the server rejects the fence of the commit', async () => {
    const { trySave, cachedNames } = createFixture({
      commit() {
        throw commitWriteFailed(new ApiError(422, 'Invalid', 'test failed'), 0)
      },
    })
    await expect(trySave([aDelete('x')])).rejects.toThrow('this process is no longer the leader')
    expect(cachedNames).toEqual([])
  })

  it.each([true, false])('omits the fence from the index of the failed write (atomic: %s)', async (isAtomic) => {
    const fenceCount = isAtomic ? 1 : 0
    const error = commitWriteFailed(new ApiError(409, 'Conflict', 'changed'), 1 + fenceCount)
    const fixture = createFixture({
      isAtomic,
      commit() {
        throw error
      },
    })
    expect(await fixture.trySave([aDelete('x'), aDelete('y')])).toEqual({ is: 'failed', writeIndex: 1, error })
    await expect(fixture.save([aDelete('x'), aDelete('y')])).rejects.toBe(error)
  })

  it('returns no index if the error concerns the whole commit', async () => {
    const error = new ApiError(503, 'ServiceUnavailable', 'unreachable')
    const { trySave } = createFixture({
      commit() {
        throw error
      },
    })
    expect(await trySave([aDelete('x')])).toEqual({ is: 'failed', writeIndex: undefined, error })
  })
})
