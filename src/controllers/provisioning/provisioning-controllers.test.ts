// Tests the controllers with their own event recorder, with metrics and with leader election.
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

describe('createProvisioningControllers without an event recorder', () => {
  it('PROV-8 records events with its own recorder', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'final', message: 'full' })
    const { client, apiServer, storage } = fixture
    const caches = createCacheSet({ client, clock: apiServer.clock, random: () => 0.5 })
    const abort = new AbortController()
    let lastRandom = 0
    const random = () => {
      lastRandom = (lastRandom + 0.137) % 1 // event names must be distinct
      return lastRandom
    }
    const base = { client, caches, clock: apiServer.clock, random, log: silentLog }
    const running = createProvisioningControllers({ ...base, provisioner: storage.provisioner() }).run(abort.signal)
    const events = async () => (await client.list(eventKind, { namespace: 'default' })).items
    await fixture.waitUntil(
      async () => (await events()).some(({ reason }) => reason === 'ProvisioningSucceeded'),
      'the event to be recorded',
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

describe('a claim whose node lacks topology labels', () => {
  it('is attempted with growing delays of at most five minutes, and provisioned when an attempt succeeds', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const message = 'the topology of node a cannot be determined'
    for (let count = 0; count < 1_000; count++)
      fixture.storage.script.push({ fails: 'noChange', isNotCalled: true, message })
    const process = fixture.start()
    await fixture.settle()
    for (let second = 0; second < 3_600; second += 10) {
      await fixture.apiServer.clock.advance(10_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    const { length } = fixture.storage.provisions
    expect(length).toBeGreaterThan(10)
    expect(length).toBeLessThan(30)
    expect(process.queueState('default/data')).toMatchObject({ message })
    fixture.storage.script.splice(0)
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume')
  })
})

describe('createProvisioningControllers with metrics', () => {
  it('PROV-8 counts successes, failures and seconds with the metric names of external-provisioner', async () => {
    const registry = new Registry()
    const provisioningMetrics = createProvisioningMetrics(registry)
    await fixture.createClass('fast')
    const claim = await fixture.createClaim('data')
    fixture.storage.script.push({ fails: 'final' }, { ignores: true })
    fixture.start({ provisioningMetrics })
    const metricsText = () => registry.metrics()
    await fixture.waitUntil(() => fixture.storage.provisions.length === 2, 'two attempts')
    await fixture.settle()
    expect(await metricsText()).toMatch(
      /^controller_persistentvolumeclaim_provision_failed_total\{class="fast",source=""\} 1$/m,
    )
    // A claim that was ignored is reconciled only after it changes.
    const body = { metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'n' } } }
    const ref = { namespace: 'default', name: 'data' }
    await fixture.client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body })
    await fixture.waitUntil(() => fixture.volume(`pvc-${claim.metadata.uid}`), 'the volume to be created')
    fixture.storage.deleteScript.push({ is: 'failed', message: 'busy' })
    await fixture.client.delete(persistentVolumeClaimKind, ref)
    await fixture.waitUntil(
      async () => (await fixture.volumes()).length === 0,
      'the deletion of the volume',
      fixture.runOtherControllers,
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

describe('createProvisioningControllers with leader election', () => {
  const LEASE = { namespace: 'kube-system', name: 'provisioner' }
  /** Checks leadership locally and fences writes with the lease, like leader-election.ts. */
  const createElection = (identity: string, isLeader: () => boolean) => ({
    assertStillLeader: () => {
      if (!isLeader()) throw new NotLeaderError(`${identity} no longer leads`)
    },
    fence: () => [
      {
        do: 'patch' as const,
        kind: leaseKind,
        ref: LEASE,
        patch: { type: 'json' as const, body: [{ op: 'test', path: '/spec/holderIdentity', value: identity }] },
      },
    ],
  })
  const setLeader = (holderIdentity: string) =>
    fixture.client.patch(leaseKind, LEASE, { type: 'merge', body: { spec: { holderIdentity } } })

  it('PROV-12 rejects the PV of a leader that was replaced during a call, and lets its successor create it', async () => {
    await fixture.client.create(leaseKind, { metadata: LEASE, spec: { holderIdentity: 'first' } })
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    let resume = () => {}
    fixture.storage.script.push({
      after: new Promise<void>((resolve) => {
        resume = resolve
      }),
    })
    const first = fixture.start({ election: createElection('first', () => true) })
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    await setLeader('second')
    resume()
    await fixture.waitUntil(() => first.queueState('default/data')?.is === 'waiting', 'the claim to wait')
    expect(first.queueState('default/data')?.message).toContain('this process is no longer the leader')
    expect(await fixture.volumes()).toEqual([])
    expect(fixture.storage.deletes).toEqual([])
    fixture.start({ election: createElection('second', () => true) })
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume to be created')
    expect(fixture.storage.assets.size).toBe(1)
  })

  it('PROV-12 does not call the storage after the lease is lost', async () => {
    await fixture.client.create(leaseKind, { metadata: LEASE, spec: { holderIdentity: 'first' } })
    await fixture.createClass('fast')
    await fixture.createClaim('early')
    let isLeader = true
    const first = fixture.start({ election: createElection('first', () => isLeader) })
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume to be created')
    const [volume] = await fixture.volumes()
    isLeader = false
    await fixture.createClaim('late')
    await fixture.client.delete(persistentVolumeClaimKind, {
      namespace: 'default',
      name: 'early',
    })
    const name = volume?.metadata.name ?? ''
    await fixture.waitUntil(
      () => first.queueState(name)?.message,
      'the volume to be blocked',
      fixture.runOtherControllers,
    )
    await fixture.waitUntil(() => first.queueState('default/late')?.message, 'the claim to be blocked')
    expect(first.queueState(name)?.message).toContain('no longer leads')
    expect(first.queueState('default/late')?.message).toContain('no longer leads')
    expect(fixture.storage.provisions).toHaveLength(1)
    expect(fixture.storage.deletes).toEqual([])
  })
})
