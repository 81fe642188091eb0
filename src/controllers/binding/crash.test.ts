// Deaths and races: whatever a binder leaves half done or loses to another, the next pass ends where all end.
import { afterEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { ApiError } from '../../api/status-error.ts'
import { commitOneByOne } from '../../client/commit-one-by-one.ts'
import type { Client } from '../../client/index.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import { type BindingTrial, hiding, startBindingTrial, summary } from './binding.fixture.ts'

const AVAILABLE = { status: { phase: 'Available' } }
const WRITES = ['volume', 'volume status', 'claim', 'claim status']

let world: BindingTrial
afterEach(() => world.stop())

const bound = async () => {
  const [claim, volume] = [await world.getClaim('c'), await world.getVolume('pv')]
  expect(summary(claim, volume)).toEqual({
    claim: { phase: 'Bound', volumeName: 'pv', capacity: '1Gi', annotations: [BIND_COMPLETED, BOUND_BY_CONTROLLER] },
    volume: { phase: 'Bound', owner: 'default/c', isOwned: true, annotations: [BOUND_BY_CONTROLLER] },
  })
}

/** A client that is cut off once this many writes of a binding are done. */
function cutOffAfter(writesDone: number) {
  const line = { isCut: false, isRepaired: false }
  const through = (client: Client): Client => ({
    ...client,
    commit: async (writes, options) => {
      if (line.isRepaired) return client.commit(writes, options)
      if (line.isCut) throw new ApiError(503, 'ServiceUnavailable', 'cut off')
      if (!writes.some((write) => write.kind === persistentVolumeClaimKind)) return client.commit(writes, options)
      line.isCut = true
      await commitOneByOne(client, writes.slice(0, writesDone), options)
      throw new ApiError(503, 'ServiceUnavailable', 'cut off')
    },
  })
  return { line, through }
}

describe('a binder that dies', () => {
  for (const [done, written] of ['nothing', ...WRITES].entries()) {
    it(`PROV-5 binding completes after a death past ${written}`, async () => {
      const { line, through } = cutOffAfter(done)
      world = await startBindingTrial({ oneByOne: true, through })
      await world.volume('pv', AVAILABLE)
      await world.claim('c')
      world.start()
      while (!line.isCut) await new Promise((resolve) => setImmediate(resolve))
      await world.halt()
      const before = summary(await world.getClaim('c'), await world.getVolume('pv'))
      expect([before.volume.isOwned, before.volume.phase === 'Bound', Boolean(before.claim.volumeName)]).toEqual([
        done > 0,
        done > 1,
        done > 2,
      ])
      line.isRepaired = true
      await world.settle()
      await bound()
    })
  }
})

describe('a binder that is not alone', () => {
  it('PROV-5 a volume that was taken a moment ago is not taken again: the claim finds another', async () => {
    let isTaken = false
    world = await startBindingTrial({
      through: (client) => ({
        ...client,
        commit: async (writes, options) => {
          if (!isTaken && writes.length > 1) {
            isTaken = true
            const claimRef = { namespace: 'default', name: 'rival' }
            await client.patch(persistentVolumeKind, { name: 'pv' }, { type: 'merge', body: { spec: { claimRef } } })
          }
          return client.commit(writes, options)
        },
      }),
    })
    await world.volume('pv', AVAILABLE)
    await world.volume('spare', { size: '2Gi', ...AVAILABLE })
    await world.claim('c')
    await world.settle()
    expect((await world.getClaim('c')).spec?.volumeName).toBe('spare')
    expect((await world.getVolume('pv')).spec?.claimRef).toEqual({ namespace: 'default', name: 'rival' })
  })

  it('PROV-5 a conflict is looked into at once, however late the watch is', async () => {
    const hidden = { volume: '' }
    let tries = 0
    world = await startBindingTrial({
      through: (client) => ({
        ...hiding(client, hidden),
        commit: async (writes, options) => {
          if (writes.length > 1 && ++tries === 1) {
            hidden.volume = 'pv'
            const claimRef = { namespace: 'default', name: 'rival' }
            await client.patch(persistentVolumeKind, { name: 'pv' }, { type: 'merge', body: { spec: { claimRef } } })
          }
          return client.commit(writes, options)
        },
      }),
    })
    await world.volume('pv', AVAILABLE)
    await world.volume('spare', { size: '2Gi', ...AVAILABLE })
    await world.claim('c')
    await world.settle()
    expect((await world.getClaim('c')).spec?.volumeName).toBe('spare')
    expect(tries).toBe(2)
  })

  it('PROV-5 what it has bound itself it does not try to bind again, however late the watch is', async () => {
    const hidden = { volume: '' }
    let tries = 0
    world = await startBindingTrial({
      through: (client) => ({
        ...hiding(client, hidden),
        commit: (writes, options) => {
          if (writes.length > 1) tries++
          return client.commit(writes, options)
        },
      }),
    })
    await world.volume('pv', AVAILABLE)
    await world.settle()
    hidden.volume = 'pv'
    await world.claim('first')
    await world.settle()
    await world.claim('second')
    await world.settle()
    expect((await world.getClaim('first')).status?.phase).toBe('Bound')
    expect((await world.getClaim('second')).status?.phase).toBe('Pending')
    expect(tries).toBe(1)
  })

  it('PROV-5 a claim that changes all the time is bound in the end', async () => {
    let changes = 0
    world = await startBindingTrial({
      through: (client) => ({
        ...client,
        commit: async (writes, options) => {
          if (writes.length > 1 && changes < 5) {
            const body = { metadata: { labels: { change: String(++changes) } } }
            await client.patch(persistentVolumeClaimKind, { namespace: 'default', name: 'c' }, { type: 'merge', body })
          }
          return client.commit(writes, options)
        },
      }),
    })
    await world.volume('pv', AVAILABLE)
    await world.claim('c')
    await world.settle()
    await bound()
    expect(changes).toBe(5)
  })

  it('PROV-5 a volume that is deleted under the binder’s hands leaves the claim waiting', async () => {
    let isDeleted = false
    world = await startBindingTrial({
      through: (client) => ({
        ...client,
        commit: async (writes, options) => {
          if (writes.length > 1 && !isDeleted) {
            isDeleted = true
            const body = { metadata: { finalizers: null } }
            await client.patch(persistentVolumeKind, { name: 'pv' }, { type: 'merge', body })
            await client.delete(persistentVolumeKind, { name: 'pv' })
          }
          return client.commit(writes, options)
        },
      }),
    })
    await world.volume('pv', AVAILABLE)
    await world.claim('c')
    await world.settle()
    expect((await world.getClaim('c')).status).toEqual({ phase: 'Pending' })
  })

  it('PROV-5 a server that fails for a while is asked again', async () => {
    let failures = 3
    world = await startBindingTrial({
      through: (client) => ({
        ...client,
        commit: async (writes, options) => {
          if (writes.length > 1 && failures-- > 0) throw new ApiError(500, 'InternalError', 'the disk is full')
          return client.commit(writes, options)
        },
      }),
    })
    await world.volume('pv', AVAILABLE)
    await world.claim('c')
    await world.settle()
    await bound()
  })
})
