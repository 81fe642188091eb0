// Tests claims whose intents are in a journal instead of finalizers (intent-journal.ts). crashes.test.ts crashes such a
// process.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { createProvisioningFixture, DISKS, INTENT_LEASE, type ProvisioningFixture } from './provisioning.fixture.ts'

const JOURNALED = { isAtomic: false, options: { bindsOnSave: true, intentLease: INTENT_LEASE } } as const
const INTENT = `provisioning.stowage.dev/${DISKS}`

let fixture: ProvisioningFixture
beforeEach(async () => {
  fixture = await createProvisioningFixture()
})
afterEach(() => fixture.close())

const deleteClaim = (name: string) => fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name })

/** Returns a promise and a function that resolves it. */
function createGate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

describe('a provisioner with a journal of intents', () => {
  it('PROV-12 writes one object per claim, and the journal for many claims at a time', async () => {
    await fixture.createClass('fast')
    for (let i = 0; i < 20; i++) await fixture.createClaim(`data-${i}`)
    const { calls } = fixture.start(JOURNALED)
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 20, 'all volumes to be created')
    await fixture.waitUntil(async () => (await fixture.journaledClaims()).length === 0, 'the journal to be empty')
    const count = (verb: string) => calls.filter((call) => call === verb).length
    expect(count('patch')).toBe(0)
    expect(count('create')).toBe(21) // the volumes and the Lease
    expect(count('update')).toBeLessThan(10)
    expect((await fixture.claim('data-0'))?.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
  })

  it('PROV-12 records the intent before the storage is called', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened })
    fixture.start(JOURNALED)
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    expect(await fixture.journaledClaims()).toEqual(['data'])
    open()
    await fixture.waitUntil(async () => (await fixture.journaledClaims()).length === 0, 'the journal to be empty')
    expect(await fixture.volumes()).toHaveLength(1)
  })

  it('PROV-12 completes the intent that an earlier version has recorded as a finalizer', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('data')
    const body = { metadata: { finalizers: [INTENT] } }
    await fixture.client.patch(
      persistentVolumeClaimKind,
      { namespace: 'default', name: 'data' },
      { type: 'strategic', body },
    )
    fixture.start(JOURNALED)
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume to be created')
    await fixture.waitUntil(
      async () => !(await fixture.claim('data'))?.metadata.finalizers?.includes(INTENT),
      'the finalizer to be removed',
    )
    expect(await fixture.journaledClaims()).toEqual([])
  })

  it('PROV-13 waits for the class of a deleted claim whose volume may exist, and then deletes the volume', async () => {
    await fixture.createClass('fast', { reclaimPolicy: 'Delete' })
    await fixture.createClaim('data')
    for (let i = 0; i < 20; i++) fixture.storage.script.push({ fails: 'unfinished', creates: true })
    const first = fixture.start(JOURNALED)
    await fixture.waitUntil(() => fixture.storage.assets.size === 1, 'the storage to create the volume')
    await first.stop()
    fixture.storage.script.length = 0
    await deleteClaim('data')
    await fixture.runOtherControllers()
    expect(await fixture.claim('data')).toBeUndefined()
    await fixture.client.delete(storageClassKind, { name: 'fast' })
    fixture.start(JOURNALED)
    const failure = () => fixture.events.find(({ message }) => message.startsWith('It is unknown whether volume'))
    await fixture.waitUntil(failure, 'the event')
    expect(failure()?.message).toMatch(
      /class "fast" does not exist\. .* and remove the entry "\S+" from the annotation "provisioning\.stowage\.dev\/intents" of the lease "kube-system\/stowage-intents-disks"\.$/,
    )
    expect(await fixture.journaledClaims()).toEqual(['data'])
    await fixture.createClass('fast', { reclaimPolicy: 'Delete' })
    await fixture.waitUntil(
      async () => fixture.storage.assets.size === 0 && (await fixture.volumes()).length === 0,
      'the volume to be deleted',
      fixture.runOtherControllers,
    )
    await fixture.waitUntil(async () => (await fixture.journaledClaims()).length === 0, 'the journal to be empty')
  })

  it('PROV-12 does not call the storage for a new claim after another process has opened the journal', async () => {
    await fixture.createClass('fast')
    await fixture.createClaim('early')
    const { opened, open } = createGate()
    fixture.storage.script.push({ after: opened })
    const first = fixture.start(JOURNALED)
    await fixture.waitUntil(() => fixture.storage.provisions.length === 1, 'the provision call')
    const second = fixture.start(JOURNALED)
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the second process to repeat the call')
    await second.stop()
    await fixture.createClaim('late')
    await fixture.waitUntil(() => first.queueState('default/late')?.message, 'the claim to be blocked')
    expect(first.queueState('default/late')?.message).toContain('another process has opened the journal')
    const namesOfCalls = fixture.storage.provisions.map(({ claim }) => claim.metadata.name)
    expect(namesOfCalls).toEqual(['early', 'early'])
    open()
    await fixture.waitUntil(() => first.queueState('default/early') === undefined, 'the first process to finish')
    expect(await fixture.volumes()).toHaveLength(1)
    expect(fixture.storage.assets.size).toBe(1)
  })
})
