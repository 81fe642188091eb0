// The controllers as a program runs them: with their own events, with metrics, and with a leader.
import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { silentLog } from '../../base/log.ts'
import { createCacheSet, NotLeaderError } from '../../runtime/index.ts'
import { createProvisioningMetrics } from './metrics.ts'
import { createProvisioningFixture, DISKS, type ProvisioningFixture } from './provisioning.fixture.ts'
import { createProvisioningControllers } from './provisioning-controllers.ts'

let fixture: ProvisioningFixture
beforeEach(async () => {
  fixture = await createProvisioningFixture()
})
afterEach(() => fixture.close())

describe('events', () => {
  it('PROV-8 are recorded without a recorder passed in', async () => {
    await fixture.aClass('fast')
    await fixture.aClaim('data')
    fixture.storage.script.push({ fails: 'final', because: 'full' })
    const { client, apiServer, storage } = fixture
    const caches = createCacheSet({ client, clock: apiServer.clock, random: () => 0.5 })
    const abort = new AbortController()
    let lastRandom = 0
    const random = () => {
      lastRandom = (lastRandom + 0.137) % 1 // event names are derived from it
      return lastRandom
    }
    const base = { client, caches, clock: apiServer.clock, random, log: silentLog }
    const running = createProvisioningControllers({ ...base, provisioner: storage.provisioner() }).run(abort.signal)
    const events = async () => (await client.list(eventKind, { namespace: 'default' })).items
    await fixture.until(
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
    await fixture.aClass('fast')
    const claim = await fixture.aClaim('data')
    fixture.storage.script.push({ fails: 'final' }, { ignores: true })
    fixture.start({ provisioningMetrics })
    const metricsText = () => registry.metrics()
    await fixture.until(() => fixture.storage.provisions.length === 2, 'both tries')
    await fixture.settle()
    expect(await metricsText()).toMatch(
      /^controller_persistentvolumeclaim_provision_failed_total\{class="fast",source=""\} 1$/m,
    )
    // An ignored claim is reconciled again only after it changes.
    const body = { metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'n' } } }
    const ref = { namespace: 'default', name: 'data' }
    await fixture.client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body })
    await fixture.until(() => fixture.volume(`pvc-${claim.metadata.uid}`), 'the volume')
    fixture.storage.deleteScript.push({ is: 'failed', because: 'busy' })
    await fixture.client.delete(persistentVolumeClaimKind, ref)
    await fixture.until(
      async () => (await fixture.volumes()).length === 0,
      'the deletion of the volume',
      fixture.housekeeping,
    )
    expect(await metricsText()).toMatch(
      /^controller_persistentvolumeclaim_provision_total\{class="fast",source=""\} 1$/m,
    )
    expect(await metricsText()).toMatch(/^controller_persistentvolumeclaim_provision_duration_seconds_count\{.*\} 1$/m)
    expect(await metricsText()).toMatch(/^controller_persistentvolume_delete_total\{class="fast"\} 1$/m)
    expect(await metricsText()).toMatch(/^controller_persistentvolume_delete_failed_total\{class="fast"\} 1$/m)
    expect(await metricsText()).toMatch(
      /^controller_persistentvolume_delete_duration_seconds_count\{class="fast"\} 1$/m,
    )
  })
})

describe('a leader', () => {
  const LEASE = { namespace: 'default', name: 'provisioner' }
  /** Like leader-election.ts: checks leadership locally, and fences writes by the lease. */
  const createElection = (identity: string, leads: () => boolean) => ({
    assertStillLeader: () => {
      if (!leads()) throw new NotLeaderError(`${identity} no longer leads`)
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
    fixture.client.patch(leaseKind, LEASE, { type: 'merge', body: { spec: { holderIdentity } } })

  it('PROV-12 that was replaced during a call cannot create the PV; its successor finds the volume and does', async () => {
    await fixture.client.create(leaseKind, { metadata: LEASE, spec: { holderIdentity: 'first' } })
    await fixture.aClass('fast')
    await fixture.aClaim('data')
    let resume = () => {}
    fixture.storage.script.push({
      after: new Promise<void>((resolve) => {
        resume = resolve
      }),
    })
    const first = fixture.start({ election: createElection('first', () => true) })
    await fixture.until(() => fixture.storage.provisions.length === 1, 'the call')
    await leads('second')
    resume()
    await fixture.until(() => first.standing('default/data')?.is === 'waiting', 'the refusal')
    expect(first.standing('default/data')?.because).toContain('another process is the leader now')
    expect(await fixture.volumes()).toEqual([])
    expect(fixture.storage.deletes).toEqual([])
    fixture.start({ election: createElection('second', () => true) })
    await fixture.until(async () => (await fixture.volumes()).length === 1, 'the volume')
    expect(fixture.storage.assets.size).toBe(1)
  })

  it('PROV-12 that has lost its lease does not call the storage', async () => {
    await fixture.client.create(leaseKind, { metadata: LEASE, spec: { holderIdentity: 'first' } })
    await fixture.aClass('fast')
    await fixture.aClaim('early')
    let leads = true
    const first = fixture.start({ election: createElection('first', () => leads) })
    await fixture.until(async () => (await fixture.volumes()).length === 1, 'the volume')
    const [volume] = await fixture.volumes()
    leads = false
    await fixture.aClaim('late')
    await fixture.client.delete(persistentVolumeClaimKind, {
      namespace: 'default',
      name: 'early',
    })
    const name = volume?.metadata.name ?? ''
    await fixture.until(() => first.standing(name)?.because, 'the volume to be held', fixture.housekeeping)
    await fixture.until(() => first.standing('default/late')?.because, 'the claim to be held')
    expect(first.standing(name)?.because).toContain('no longer leads')
    expect(first.standing('default/late')?.because).toContain('no longer leads')
    expect(fixture.storage.provisions).toHaveLength(1)
    expect(fixture.storage.deletes).toEqual([])
  })
})
