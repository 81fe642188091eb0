// Tests crashes between the writes of a binding and races with other writers.
import { afterEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { ApiError } from '../../api/status-error.ts'
import { commitOneByOne } from '../../client/commit-one-by-one.ts'
import type { Client } from '../../client/index.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import { type BindingFixture, createBindingFixture, hideFromWatches, summarizeBinding } from './binding.fixture.ts'

const AVAILABLE_STATUS = { status: { phase: 'Available' } }
const WRITES = ['the volume', "the volume's status", 'the claim', "the claim's status"].map(
  (target) => `the write of ${target}`,
)

let fixture: BindingFixture
afterEach(() => fixture.stop())

const expectBound = async () => {
  const [claim, volume] = [await fixture.getClaim('c'), await fixture.getVolume('pv')]
  expect(summarizeBinding(claim, volume)).toEqual({
    claim: { phase: 'Bound', volumeName: 'pv', capacity: '1Gi', annotations: [BIND_COMPLETED, BOUND_BY_CONTROLLER] },
    volume: { phase: 'Bound', owner: 'default/c', isOwned: true, annotations: [BOUND_BY_CONTROLLER] },
  })
}

/** Returns a client wrapper that loses the connection after this many writes of a binding. */
function loseConnectionAfter(writeCount: number) {
  const connection = { isLost: false, isRestored: false }
  const wrapClient = (client: Client): Client => ({
    ...client,
    commit: async (writes, options) => {
      if (connection.isRestored) return client.commit(writes, options)
      if (connection.isLost) throw new ApiError(503, 'ServiceUnavailable', 'connection lost')
      if (!writes.some((write) => write.kind === persistentVolumeClaimKind)) return client.commit(writes, options)
      connection.isLost = true
      await commitOneByOne(client, writes.slice(0, writeCount), options)
      throw new ApiError(503, 'ServiceUnavailable', 'connection lost')
    },
  })
  return { connection, wrapClient }
}

describe('a binder that crashes', () => {
  for (const [writeCount, lastStep] of ['its start', ...WRITES].entries()) {
    it(`PROV-5 completes the binding after a crash immediately after ${lastStep}`, async () => {
      const { connection, wrapClient } = loseConnectionAfter(writeCount)
      fixture = await createBindingFixture({ isAtomic: false, wrapClient })
      await fixture.createVolume('pv', AVAILABLE_STATUS)
      await fixture.createClaim('c')
      fixture.start()
      while (!connection.isLost) await new Promise((resolve) => setImmediate(resolve))
      await fixture.stopControllers()
      const previousBinding = summarizeBinding(await fixture.getClaim('c'), await fixture.getVolume('pv'))
      expect([
        previousBinding.volume.isOwned,
        previousBinding.volume.phase === 'Bound',
        Boolean(previousBinding.claim.volumeName),
      ]).toEqual([writeCount > 0, writeCount > 1, writeCount > 2])
      connection.isRestored = true
      await fixture.settle()
      await expectBound()
    })
  }
})

describe('a binder among other writers', () => {
  it('PROV-5 chooses another volume if the chosen one was bound to another claim', async () => {
    let isBoundByRival = false
    fixture = await createBindingFixture({
      wrapClient: (client) => ({
        ...client,
        commit: async (writes, options) => {
          if (!isBoundByRival && writes.length > 1) {
            isBoundByRival = true
            const claimRef = { namespace: 'default', name: 'rival' }
            await client.patch(persistentVolumeKind, { name: 'pv' }, { type: 'merge', body: { spec: { claimRef } } })
          }
          return client.commit(writes, options)
        },
      }),
    })
    await fixture.createVolume('pv', AVAILABLE_STATUS)
    await fixture.createVolume('spare', { size: '2Gi', ...AVAILABLE_STATUS })
    await fixture.createClaim('c')
    await fixture.settle()
    expect((await fixture.getClaim('c')).spec?.volumeName).toBe('spare')
    expect((await fixture.getVolume('pv')).spec?.claimRef).toEqual({ namespace: 'default', name: 'rival' })
  })

  it('PROV-5 reads a volume from the server after a conflict instead of waiting for its watch event', async () => {
    const hiddenNames = { volume: '' }
    let bindingCommits = 0
    fixture = await createBindingFixture({
      wrapClient: (client) => ({
        ...hideFromWatches(client, hiddenNames),
        commit: async (writes, options) => {
          if (writes.length > 1 && ++bindingCommits === 1) {
            hiddenNames.volume = 'pv'
            const claimRef = { namespace: 'default', name: 'rival' }
            await client.patch(persistentVolumeKind, { name: 'pv' }, { type: 'merge', body: { spec: { claimRef } } })
          }
          return client.commit(writes, options)
        },
      }),
    })
    await fixture.createVolume('pv', AVAILABLE_STATUS)
    await fixture.createVolume('spare', { size: '2Gi', ...AVAILABLE_STATUS })
    await fixture.createClaim('c')
    await fixture.settle()
    expect((await fixture.getClaim('c')).spec?.volumeName).toBe('spare')
    expect(bindingCommits).toBe(2)
  })

  it('PROV-5 does not bind a volume twice if its watch is behind', async () => {
    const hiddenNames = { volume: '' }
    let bindingCommits = 0
    fixture = await createBindingFixture({
      wrapClient: (client) => ({
        ...hideFromWatches(client, hiddenNames),
        commit: (writes, options) => {
          if (writes.length > 1) bindingCommits++
          return client.commit(writes, options)
        },
      }),
    })
    await fixture.createVolume('pv', AVAILABLE_STATUS)
    await fixture.settle()
    hiddenNames.volume = 'pv'
    await fixture.createClaim('first')
    await fixture.settle()
    await fixture.createClaim('second')
    await fixture.settle()
    expect((await fixture.getClaim('first')).status?.phase).toBe('Bound')
    expect((await fixture.getClaim('second')).status?.phase).toBe('Pending')
    expect(bindingCommits).toBe(1)
  })

  it('PROV-5 binds a claim that changes during several reconciles', async () => {
    let changes = 0
    fixture = await createBindingFixture({
      wrapClient: (client) => ({
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
    await fixture.createVolume('pv', AVAILABLE_STATUS)
    await fixture.createClaim('c')
    await fixture.settle()
    await expectBound()
    expect(changes).toBe(5)
  })

  it('PROV-5 leaves the claim pending when its volume is deleted during the reconcile', async () => {
    let isDeleted = false
    fixture = await createBindingFixture({
      wrapClient: (client) => ({
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
    await fixture.createVolume('pv', AVAILABLE_STATUS)
    await fixture.createClaim('c')
    await fixture.settle()
    expect((await fixture.getClaim('c')).status).toEqual({ phase: 'Pending' })
  })

  it('PROV-5 retries while the server fails', async () => {
    let failures = 3
    fixture = await createBindingFixture({
      wrapClient: (client) => ({
        ...client,
        commit: async (writes, options) => {
          if (writes.length > 1 && failures-- > 0) throw new ApiError(500, 'InternalError', 'the disk is full')
          return client.commit(writes, options)
        },
      }),
    })
    await fixture.createVolume('pv', AVAILABLE_STATUS)
    await fixture.createClaim('c')
    await fixture.settle()
    await expectBound()
  })
})
