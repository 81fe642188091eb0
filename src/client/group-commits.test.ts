import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { ApiError } from '../api/status-error.ts'
import type { Client, CommitWrite } from './client.ts'
import { groupCommits } from './group-commits.ts'

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
const write = (name: string): CommitWrite => ({
  do: 'delete',
  kind: configMapKind,
  ref: { namespace: 'default', name },
})

/** Creates a client whose commits stay in flight until the test ends them. */
function setUp({ isAtomic = true } = {}) {
  const inFlight: { readonly names: string[]; succeed(): void; fail(error: Error): void }[] = []
  const commit = (writes: readonly CommitWrite[]) =>
    new Promise((resolve, reject) => {
      const names = writes.map((each) => ('ref' in each ? each.ref.name : ''))
      inFlight.push({ names, succeed: () => resolve(names.map((name) => ({ metadata: { name } }))), fail: reject })
    })
  const client = groupCommits({ commit, commitsAtomically: async () => isAtomic } as unknown as Client)
  const outcomes: Record<string, unknown> = {}
  return {
    outcomes,
    sent: () => inFlight.map(({ names }) => names.join()),
    /** Ends the commits in flight with an error for those that contain the name. */
    async endAll(failingName?: string, code = 409) {
      for (const { names, succeed, fail } of inFlight.splice(0)) {
        if (failingName !== undefined && names.includes(failingName)) fail(new ApiError(code, 'Reason', failingName))
        else succeed()
      }
      await settle()
    },
    async send(...names: string[]) {
      client.commit(names.map(write)).then(
        (objects) => (outcomes[names.join()] = objects.map((object) => object?.metadata.name)),
        (error) => (outcomes[names.join()] = `failed: ${error.message}`),
      )
      await settle()
    },
  }
}

describe('groupCommits', () => {
  it('sends two commits at once and those that arrive meanwhile as one, and returns to each caller its objects', async () => {
    const { send, sent, endAll, outcomes } = setUp()
    await send('a')
    await send('b', 'c')
    await send('d')
    await send('e', 'f')
    expect(sent()).toEqual(['a', 'b,c'])
    await endAll()
    expect(sent()).toEqual(['d,e,f'])
    await endAll()
    expect(outcomes).toEqual({ a: ['a'], 'b,c': ['b', 'c'], d: ['d'], 'e,f': ['e', 'f'] })
  })

  it('sends each commit of a rejected group alone, so that only the one that causes the rejection fails', async () => {
    const { send, sent, endAll, outcomes } = setUp()
    for (const name of ['a', 'b', 'c', 'd', 'e']) await send(name)
    await endAll()
    expect(sent()).toEqual(['c,d,e'])
    await endAll('d')
    expect(sent()).toEqual(['c', 'd', 'e'])
    await endAll('d')
    expect(outcomes).toEqual({ a: ['a'], b: ['b'], c: ['c'], d: 'failed: d', e: ['e'] })
  })

  it.each([503, 429, 408])(
    'fails all commits of a group that may have been written or must not be repeated: %d',
    async (code) => {
      const { send, sent, endAll, outcomes } = setUp()
      for (const name of ['a', 'b', 'c', 'd']) await send(name)
      await endAll()
      await endAll('d', code)
      expect(sent()).toEqual([])
      expect(outcomes).toEqual({ a: ['a'], b: ['b'], c: 'failed: d', d: 'failed: d' })
    },
  )

  it('limits the writes of a group, but sends a larger commit as a whole', async () => {
    const { send, sent, endAll } = setUp()
    const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`)
    for (const name of ['a', 'b']) await send(name)
    await send(...names('c', 60))
    await send(...names('d', 5))
    await send(...names('e', 65))
    await endAll()
    expect(sent().map((text) => text.split(',').length)).toEqual([60, 5])
    await endAll()
    expect(sent().map((text) => text.split(',').length)).toEqual([65])
  })

  it('sends every commit alone on a server without atomic commits', async () => {
    const { send, sent } = setUp({ isAtomic: false })
    for (const name of ['a', 'b', 'c']) await send(name)
    expect(sent()).toEqual(['a', 'b', 'c'])
  })
})
