import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../api/kind.ts'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { secretKind } from '../api/kinds/secret/secret.ts'
import { ApiError } from '../api/status-error.ts'
import { type Client, type CommitWrite, commitWriteFailed } from '../client/client.ts'
import { NotLeaderError } from './leader-election.ts'
import { createSaver } from './save.ts'

const removal = (name: string): CommitWrite => ({ do: 'delete', kind: configMapKind, ref: { namespace: 'a', name } })
const creation = (name: string): CommitWrite => ({
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
const stored = (name: string): KubeObject => ({ metadata: { namespace: 'a', name, uid: name, resourceVersion: '7' } })

interface Setup {
  readonly isAtomic?: boolean
  readonly isLeader?: boolean
  readonly elects?: boolean
  readonly commit?: (writes: readonly CommitWrite[]) => readonly (KubeObject | undefined)[]
}

function setup({ isAtomic = true, isLeader = true, elects = true, commit = () => [] }: Setup) {
  const committed: (readonly CommitWrite[])[] = []
  const cached: string[] = []
  const client = {
    commitsAtomically: async () => isAtomic,
    commit: async (writes: readonly CommitWrite[]) => {
      committed.push(writes)
      return commit(writes)
    },
  } as unknown as Client
  const assertStillLeader = () => {
    if (!isLeader) throw new NotLeaderError('a no longer leads')
  }
  const election = elects ? { assertStillLeader, fence: () => FENCE } : undefined
  const caches = [{ kind: configMapKind, learn: ({ metadata }: KubeObject) => void cached.push(metadata.name!) }]
  return { ...createSaver({ client, election, caches }), committed, cached }
}

describe('save', () => {
  it('commits behind the fence on a server with atomic commits, and returns the objects it wrote', async () => {
    const objects = [stored('x'), undefined]
    const { save, committed } = setup({ commit: () => [undefined, ...objects] })
    expect(await save([removal('x'), creation('y')])).toEqual(objects)
    expect(committed).toEqual([[FENCE, removal('x'), creation('y')]])
  })

  it('commits without a fence on any other server and without leader election', async () => {
    for (const options of [{ isAtomic: false }, { elects: false }]) {
      const { save, committed } = setup(options)
      await save([removal('x')])
      expect(committed).toEqual([[removal('x')]])
    }
  })

  it('updates the cache of each kind it was given, and skips deleted objects', async () => {
    const { save, cached } = setup({ elects: false, commit: () => [stored('x'), stored('y'), undefined] })
    await save([removal('x'), creation('y'), removal('z')])
    expect(cached).toEqual(['x'])
  })

  it.each([true, false])(
    'refuses before the commit when this process no longer leads (atomic: %s)',
    async (isAtomic) => {
      const { save, trySave, committed } = setup({ isLeader: false, isAtomic })
      await expect(save([removal('x')])).rejects.toThrow(NotLeaderError)
      await expect(trySave([removal('x')])).rejects.toThrow(NotLeaderError)
      expect(committed).toEqual([])
    },
  )

  it('throws NotLeaderError when the fence fails the commit', async () => {
    const { trySave, cached } = setup({
      commit() {
        throw commitWriteFailed(new ApiError(422, 'Invalid', 'test failed'), 0)
      },
    })
    await expect(trySave([removal('x')])).rejects.toThrow('another process leads now')
    expect(cached).toEqual([])
  })

  it.each([true, false])('names the failed write by its index without the fence (atomic: %s)', async (isAtomic) => {
    const fences = isAtomic ? 1 : 0
    const error = commitWriteFailed(new ApiError(409, 'Conflict', 'changed'), 1 + fences)
    const failing = setup({
      isAtomic,
      commit() {
        throw error
      },
    })
    expect(await failing.trySave([removal('x'), removal('y')])).toEqual({ is: 'failed', write: 1, error })
    await expect(failing.save([removal('x'), removal('y')])).rejects.toBe(error)
  })

  it('names no write when the error concerns the whole commit', async () => {
    const error = new ApiError(503, 'ServiceUnavailable', 'unreachable')
    const { trySave } = setup({
      commit() {
        throw error
      },
    })
    expect(await trySave([removal('x')])).toEqual({ is: 'failed', write: undefined, error })
  })
})
