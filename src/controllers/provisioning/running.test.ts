// The controllers as a program runs them: with their own events, with metrics, and with a leader.
import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { silentLog } from '../../base/log.ts'
import { createCacheSet, NotLeaderError } from '../../runtime/index.ts'
import { createProvisioningMetrics } from './metrics.ts'
import { aWorld, DISKS, type World } from './provisioning.fixture.ts'
import { createProvisioningControllers } from './provisioning-controllers.ts'

let world: World
beforeEach(async () => {
  world = await aWorld()
})
afterEach(() => world.close())

describe('events', () => {
  it('PROV-8 are recorded without a recorder passed in', async () => {
    await world.aClass('fast')
    await world.aClaim('data')
    world.storage.script.push({ fails: 'final', because: 'full' })
    const { client, trial, storage } = world
    const caches = createCacheSet({ client, clock: trial.clock, random: () => 0.5 })
    const abort = new AbortController()
    let chance = 0
    const random = () => {
      chance = (chance + 0.137) % 1 // events are told apart by it
      return chance
    }
    const base = { client, caches, clock: trial.clock, random, log: silentLog }
    const running = createProvisioningControllers({ ...base, provisioner: storage.provisioner() }).run(abort.signal)
    const events = async () => (await client.list(eventKind, { namespace: 'default' })).items
    await world.until(
      async () => (await events()).some(({ reason }) => reason === 'ProvisioningSucceeded'),
      'the event',
    )
    expect(await events()).toContainEqual(
      expect.objectContaining({
        type: 'Warning',
        reason: 'ProvisioningFailed',
        message: 'full',
        involvedObject: expect.objectContaining({ kind: 'PersistentVolumeClaim', name: 'data' }),
        source: expect.objectContaining({ component: DISKS }),
      }),
    )
    abort.abort()
    await running
    await caches.stop()
  })
})

describe('metrics', () => {
  it('PROV-8 count successes, failures and seconds under the names of external-provisioner', async () => {
    const registry = new Registry()
    const provisioningMetrics = createProvisioningMetrics(registry)
    await world.aClass('fast')
    const claim = await world.aClaim('data')
    world.storage.script.push({ fails: 'final' }, { ignores: true })
    world.start({ provisioningMetrics })
    const text = () => registry.metrics()
    await world.until(() => world.storage.provisions.length === 2, 'both tries')
    await world.settle()
    expect(await text()).toMatch(
      /^controller_persistentvolumeclaim_provision_failed_total\{class="fast",source=""\} 1$/m,
    )
    // Ignored: only another wish brings it back.
    const body = { metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'n' } } }
    const ref = { namespace: 'default', name: 'data' }
    await world.client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body })
    await world.until(() => world.volume(`pvc-${claim.metadata.uid}`), 'the volume')
    world.storage.deleteScript.push({ is: 'failed', because: 'busy' })
    await world.client.delete(persistentVolumeClaimKind, ref)
    await world.until(async () => (await world.volumes()).length === 0, 'the volume to go', world.housekeeping)
    expect(await text()).toMatch(/^controller_persistentvolumeclaim_provision_total\{class="fast",source=""\} 1$/m)
    expect(await text()).toMatch(/^controller_persistentvolumeclaim_provision_duration_seconds_count\{.*\} 1$/m)
    expect(await text()).toMatch(/^controller_persistentvolume_delete_total\{class="fast"\} 1$/m)
    expect(await text()).toMatch(/^controller_persistentvolume_delete_failed_total\{class="fast"\} 1$/m)
    expect(await text()).toMatch(/^controller_persistentvolume_delete_duration_seconds_count\{class="fast"\} 1$/m)
  })
})

describe('a leader', () => {
  const LEASE = { namespace: 'default', name: 'provisioner' }
  /** As leader-election.ts does it: believes for as long as it is told, and is fenced by the lease itself. */
  const electionOf = (identity: string, believes: () => boolean) => ({
    assertStillLeader: () => {
      if (!believes()) throw new NotLeaderError(`${identity} no longer leads`)
    },
    fence: () =>
      ({
        do: 'patch',
        kind: leaseKind,
        ref: LEASE,
        patch: { type: 'json', body: [{ op: 'test', path: '/spec/holderIdentity', value: identity }] },
      }) as const,
  })
  const leads = (holderIdentity: string) =>
    world.client.patch(leaseKind, LEASE, { type: 'merge', body: { spec: { holderIdentity } } })

  it('PROV-12 that was replaced during a call cannot create the PV; its successor finds the volume and does', async () => {
    await world.client.create(leaseKind, { metadata: LEASE, spec: { holderIdentity: 'first' } })
    await world.aClass('fast')
    await world.aClaim('data')
    let open = () => {}
    world.storage.script.push({
      after: new Promise<void>((resolve) => {
        open = resolve
      }),
    })
    const first = world.start({ election: electionOf('first', () => true) })
    await world.until(() => world.storage.provisions.length === 1, 'the call')
    await leads('second')
    open()
    await world.until(() => first.standing('default/data')?.is === 'waiting', 'the refusal')
    expect(first.standing('default/data')?.because).toContain('another process leads now')
    expect(await world.volumes()).toEqual([])
    expect(world.storage.deletes).toEqual([])
    world.start({ election: electionOf('second', () => true) })
    await world.until(async () => (await world.volumes()).length === 1, 'the volume')
    expect(world.storage.assets.size).toBe(1)
  })

  it('PROV-12 that has lost its lease does not call the storage', async () => {
    await world.client.create(leaseKind, { metadata: LEASE, spec: { holderIdentity: 'first' } })
    await world.aClass('fast')
    await world.aClaim('early')
    let believes = true
    const first = world.start({ election: electionOf('first', () => believes) })
    await world.until(async () => (await world.volumes()).length === 1, 'the volume')
    const [volume] = await world.volumes()
    believes = false
    await world.aClaim('late')
    await world.client.delete(persistentVolumeClaimKind, {
      namespace: 'default',
      name: 'early',
    })
    const name = volume?.metadata.name ?? ''
    await world.until(() => first.standing(name)?.because, 'the volume to be held', world.housekeeping)
    await world.until(() => first.standing('default/late')?.because, 'the claim to be held')
    expect(first.standing(name)?.because).toContain('no longer leads')
    expect(first.standing('default/late')?.because).toContain('no longer leads')
    expect(world.storage.provisions).toHaveLength(1)
    expect(world.storage.deletes).toEqual([])
  })
})
