import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { eventKind } from '../api/kinds/event/event.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { isLeaseLost } from '../api/status-error.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import type { Client } from '../client/client.ts'
import { fencedClient } from './fenced-client.ts'
import { NotLeaderError } from './leader-election.ts'

const REF = { namespace: 'default', name: 'm' }
const LEASE = { namespace: 'default', name: 'leader' }

/** Creates a server with a lease that the process `a` holds in term 1, and the fenced client of that process. */
async function setUp(): Promise<{
  client: Client
  leader: Client
  setLease(holder: string, term: number): Promise<unknown>
}> {
  const { server } = await createServerFixture()
  const client = inProcessClient(server.objects, SYSTEM_USER)
  await client.create(leaseKind, { metadata: LEASE, spec: { holderIdentity: 'a', leaseTransitions: 1 } })
  await client.create(configMapKind, { metadata: REF, data: { k: 'old' } })
  const leaseFences = () => [{ ...LEASE, holder: 'a', transitions: 1 }]
  const setLease = (holderIdentity: string, leaseTransitions: number) =>
    client.patch(leaseKind, LEASE, { type: 'merge', body: { spec: { holderIdentity, leaseTransitions } } })
  return { client, leader: fencedClient(client, { leaseFences }), setLease }
}

const WRITES: Record<string, (client: Client) => Promise<unknown>> = {
  create: (client) => client.create(configMapKind, { metadata: { ...REF, name: 'new' } }),
  update: (client) => client.update(configMapKind, { metadata: REF, data: { k: 'late' } }),
  patch: (client) => client.patch(configMapKind, REF, { type: 'merge', body: { data: { k: 'late' } } }),
  delete: (client) => client.delete(configMapKind, REF),
  commit: (client) => client.commit([{ do: 'delete', kind: configMapKind, ref: REF }]),
}

describe("a leader's client", () => {
  it.each(Object.entries(WRITES))(
    'SYS-8 has its %s rejected after another process has acquired the lease',
    async (_, write) => {
      const { client, leader, setLease } = await setUp()
      await setLease('b', 2)
      await expect(write(leader)).rejects.toThrow(NotLeaderError)
      await setLease('a', 3) // the process leads again, but its fence is that of an earlier term
      await expect(write(leader)).rejects.toThrow(NotLeaderError)
      expect((await client.get(configMapKind, REF)).data).toEqual({ k: 'old' })
      expect(
        (await client.list(configMapKind, { namespace: 'default' })).items.map(({ metadata }) => metadata.name),
      ).not.toContain('new')
    },
  )

  it.each(Object.entries(WRITES))('SYS-8 can %s while the process holds the lease', async (_, write) => {
    const { leader } = await setUp()
    await write(leader)
  })

  it('SYS-8 has its writes rejected after the lease was released or deleted', async () => {
    const { client, leader, setLease } = await setUp()
    await setLease('', 1)
    await expect(WRITES.patch!(leader)).rejects.toThrow(NotLeaderError)
    await client.delete(leaseKind, LEASE)
    await expect(WRITES.patch!(leader)).rejects.toThrow(NotLeaderError)
  })

  it('sends reads and events, but no other write, after the term has ended by its own clock', async () => {
    const { client } = await setUp()
    const leaseFences = () => {
      throw new NotLeaderError('a no longer leads')
    }
    const formerLeader = fencedClient(client, { leaseFences })
    for (const write of Object.values(WRITES)) await expect(write(formerLeader)).rejects.toThrow(NotLeaderError)
    expect((await formerLeader.get(configMapKind, REF)).data).toEqual({ k: 'old' })
    const event = { metadata: { namespace: 'default', name: 'e' }, involvedObject: { kind: 'ConfigMap', ...REF } }
    await formerLeader.create(eventKind, event as never)
  })
})

describe('a fence', () => {
  it('SYS-8 rejects every write of a commit, with an error that names the lease and its former holder', async () => {
    const { client, setLease } = await setUp()
    await setLease('b', 2)
    const fences = [{ ...LEASE, holder: 'a', transitions: 1 }]
    const writes = ['x', 'y'].map((name) => ({
      do: 'create' as const,
      kind: configMapKind,
      object: { metadata: { ...REF, name } },
    }))
    const error = await client.commit(writes, { fences }).catch((reason) => reason)
    expect(isLeaseLost(error)).toBe(true)
    expect(error.message).toContain('the lease default/leader is no longer held by "a" in this term')
    for (const name of ['x', 'y'])
      await expect(client.get(configMapKind, { ...REF, name })).rejects.toThrow('not found')
  })
})
