// Tests of a provisioner whose intents are recorded by a binder in the same process.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { Claim } from '../../volumes/matching.ts'
import { PROVISIONER } from '../../volumes/names.ts'
import { RunningProvisioners } from '../binding/index.ts'
import type { Provisioner } from './provisioner.ts'
import {
  createProvisioningFixture,
  DISKS,
  type ProcessOptions,
  type ProvisioningFixture,
} from './provisioning.fixture.ts'

const INTENT = `provisioning.stowage.dev/${DISKS}`
const DATA = { namespace: 'default', name: 'data' }

let fixture: ProvisioningFixture
beforeEach(async () => {
  fixture = await createProvisioningFixture()
  await fixture.createClass('fast')
})
afterEach(() => fixture.close())

describe('a provisioner with an intent of the binder in its process', () => {
  it('PROV-12 calls the storage once, and does not write the intent again', async () => {
    const { process, requestVolume } = start()
    await requestVolume()
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume')
    await fixture.waitUntil(async () => !(await hasIntent()), 'the intent to be removed')
    expect(fixture.storage.provisions).toHaveLength(1)
    const save = fixture.apiServer.isStock ? 'create' : 'commit'
    expect(process.calls.slice(0, 3)).toEqual(['provision', 'get', save])
  })

  it('PROV-12 does not call the storage for the earlier state of a claim that changes', async () => {
    let hasChanged = false
    const { requestVolume } = start({
      async intercept(verb) {
        if (verb !== 'get' || hasChanged) return
        hasChanged = true
        await patchClaim({ annotations: { changed: 'yes' } })
      },
    })
    await requestVolume()
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume')
    expect(hasChanged).toBe(true)
    expect([...fixture.storage.assets]).toHaveLength(1)
    const created = fixture.storage.provisions.map(({ claim }) => claim.metadata.annotations?.changed)
    expect(created).toEqual(['yes'])
  })

  it('PROV-12 releases a deleted claim without a call to the storage', async () => {
    const { requestVolume } = start()
    await requestVolume({ provisioner: 'other.example.com' })
    await fixture.client.delete(persistentVolumeClaimKind, DATA)
    await fixture.waitUntil(async () => !(await hasIntent()), 'the intent to be removed')
    expect(fixture.storage.provisions).toEqual([])
    expect(fixture.storage.deletes).toEqual([])
  })

  it('PROV-12 removes the intent of a claim that the provisioner does not accept', async () => {
    const { requestVolume } = start({}, { accepts: async () => false })
    await requestVolume()
    await fixture.waitUntil(async () => !(await hasIntent()), 'the intent to be removed')
    expect(fixture.storage.provisions).toEqual([])
  })

  it('PROV-12 removes the intent if the request fails before a call to the storage', async () => {
    const message = 'Secret "shop/credentials" does not exist'
    const provision: Provisioner['provision'] = async () => ({
      is: 'failed',
      failure: 'final',
      message,
      isNotCalled: true,
    })
    const { requestVolume } = start({}, { provision })
    await requestVolume()
    await fixture.waitUntil(async () => !(await hasIntent()), 'the intent to be removed')
    expect(fixture.storage.provisions).toEqual([])
  })

  it('PROV-12 repeats the call after a crash between the creation of the volume and the result', async () => {
    const first = start({ killAt: { call: 0, when: 'after' } })
    await first.requestVolume()
    await fixture.waitUntil(() => first.process.hasCrashed, 'the crash')
    expect([...fixture.storage.assets]).toHaveLength(1)
    start()
    await fixture.waitUntil(async () => (await fixture.volumes()).length === 1, 'the volume')
    expect([...fixture.storage.assets]).toHaveLength(1)
  })

  it('is in the list of the binder only while its controllers run', async () => {
    const { process, running } = start()
    expect(running.find(DISKS, undefined)).toMatchObject({ name: DISKS, intentFinalizer: INTENT })
    await process.stop()
    expect(running.find(DISKS, undefined)).toBeUndefined()
  })
})

function start(options: ProcessOptions = {}, overrides: Partial<Provisioner> = {}) {
  const running = new RunningProvisioners()
  const provisioner = fixture.storage.provisioner(DISKS, overrides)
  const process = fixture.start({ ...options, provisioner, runningProvisioners: running })
  return {
    process,
    running,
    /** Creates a claim, and does what the binder does for it. */
    async requestVolume({ provisioner: name = DISKS } = {}) {
      await fixture.waitUntil(() => running.find(DISKS, undefined), 'the provisioner to run')
      const claim = await fixture.createClaim(DATA.name, { provisioner: '' })
      running.find(DISKS, undefined)!.expectIntent(claim as Claim)
      const { finalizers = [] } = claim.metadata
      await patchClaim({ annotations: { [PROVISIONER]: name }, finalizers: [...finalizers, INTENT] })
    },
  }
}

const patchClaim = (metadata: object) =>
  fixture.client.patch(persistentVolumeClaimKind, DATA, { type: 'merge', body: { metadata } })

const hasIntent = async () => (await fixture.claim(DATA.name))?.metadata.finalizers?.includes(INTENT) ?? false
