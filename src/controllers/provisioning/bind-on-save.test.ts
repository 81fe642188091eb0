// Tests the option bindsOnSave: the provisioner binds a new volume in the commit that creates it.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../api/feature-gates.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { ApiError, conflict, forbidden } from '../../api/status-error.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import type { Provisioner } from './provisioner.ts'
import { createProvisioningFixture, type ProcessOptions, type ProvisioningFixture } from './provisioning.fixture.ts'

let fixture: ProvisioningFixture
beforeEach(async () => {
  fixture = await createProvisioningFixture()
  await fixture.createClass('fast')
})
afterEach(() => fixture.close())

const start = (options: ProcessOptions = {}) => fixture.start({ options: { bindsOnSave: true }, ...options })
const volumeNameOf = ({ metadata }: { metadata: { uid?: string } }) => `pvc-${metadata.uid}`
const countCommits = ({ calls }: { calls: readonly string[] }) => calls.filter((call) => call.includes('commit')).length
const findVolumeOf = (claim: { metadata: { uid?: string } }) => () => fixture.volume(volumeNameOf(claim))
const isIntentRemoved = async () =>
  (await fixture.claim('data'))?.metadata.finalizers?.join() === 'kubernetes.io/pvc-protection'

/** Intercepts commits that bind a claim and fails them with this error. */
const failBindingCommits =
  (error: () => Error): ProcessOptions['intercept'] =>
  (verb, args) => {
    if (verb !== 'commit') return
    if (args[0].some((write: any) => write.kind === persistentVolumeClaimKind && write.subresource === 'status')) {
      throw error()
    }
  }

/** Returns a provisioner that creates volumes without the requested attributes class. */
const withoutAttributes = (provisioner: Provisioner): Provisioner => ({
  ...provisioner,
  async provision(...args) {
    const result = await provisioner.provision(...args)
    if (result.is !== 'provisioned') return result
    const { volumeAttributesClassName: _, ...spec } = result.volume.spec
    return { ...result, volume: { ...result.volume, spec } }
  },
})

/** Returns the error with the index of the failed write, as the API server reports it. */
const withFailedWrite = ({ code, reason, message, details }: ApiError, index: number): Error =>
  new ApiError(code, reason, message, {
    ...details,
    causes: [{ reason: 'CommitWriteFailed', message: '', field: `writes[${index}]` }],
  })

describe('bindsOnSave', () => {
  it('PROV-5 creates and binds the volume and removes the intent in one commit', async () => {
    const claim = await fixture.createClaim('data', { size: '1Gi' })
    const instance = start()
    await fixture.waitUntil(findVolumeOf(claim), 'the volume to be created')
    expect(await fixture.claim('data')).toMatchObject({
      metadata: {
        annotations: { [BIND_COMPLETED]: 'yes', [BOUND_BY_CONTROLLER]: 'yes' },
        finalizers: ['kubernetes.io/pvc-protection'],
      },
      spec: { volumeName: volumeNameOf(claim) },
      status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' } },
    })
    expect((await fixture.volume(volumeNameOf(claim)))?.status?.phase).toBe('Bound')
    await fixture.settle()
    expect(countCommits(instance)).toBe(1)
    expect(fixture.eventReasons().at(-1)).toBe('ProvisioningSucceeded')
  })

  it('PROV-5 leaves binding to the binder on a server without atomic commits', async () => {
    const claim = await fixture.createClaim('data')
    start({ isAtomic: false })
    await fixture.waitUntil(findVolumeOf(claim), 'the volume to be created')
    await fixture.waitUntil(isIntentRemoved, 'the intent to be removed')
    expect((await fixture.claim('data'))?.spec?.volumeName).toBeUndefined()
  })

  it.each([
    ['the claim changed', () => withFailedWrite(conflict(persistentVolumeClaimKind, 'data', 'changed'), 2)],
    [
      'the provisioner may not bind claims',
      () => withFailedWrite(forbidden(persistentVolumeClaimKind, 'data', 'not allowed'), 3),
    ],
  ])('PROV-5 creates the volume without binding it if %s', async (_, error) => {
    const claim = await fixture.createClaim('data')
    start({ intercept: failBindingCommits(error) })
    await fixture.waitUntil(findVolumeOf(claim), 'the volume to be created')
    await fixture.waitUntil(isIntentRemoved, 'the intent to be removed')
    expect((await fixture.claim('data'))?.spec?.volumeName).toBeUndefined()
    expect(fixture.storage.assets.size).toBe(1)
  })

  it('PROV-12 does not bind the volume to a claim that is being deleted', async () => {
    const claim = await fixture.createClaim('data')
    let isFirstCommit = true
    start({
      async intercept(verb) {
        if (verb !== 'commit' || !isFirstCommit) return
        isFirstCommit = false
        await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'data' })
      },
    })
    await fixture.waitUntil(findVolumeOf(claim), 'the volume to be created')
    expect((await fixture.claim('data'))?.spec?.volumeName).toBeUndefined()
    expect((await fixture.client.get(persistentVolumeKind, { name: volumeNameOf(claim) })).status?.phase).not.toBe(
      'Bound',
    )
  })

  it('VAC-4 binds a claim with an attributes class in one commit', async () => {
    const claim = await fixture.createClaim('data', { spec: { volumeAttributesClassName: 'silver' } })
    const instance = start()
    await fixture.waitUntil(findVolumeOf(claim), 'the volume to be created')
    expect(await fixture.claim('data')).toMatchObject({
      spec: { volumeName: volumeNameOf(claim) },
      status: { phase: 'Bound', currentVolumeAttributesClassName: 'silver' },
    })
    await fixture.settle()
    expect(countCommits(instance)).toBe(1)
  })

  it('VAC-12 leaves a claim with an attributes class to the binder if the feature gate is disabled', async () => {
    const claim = await fixture.createClaim('data', { spec: { volumeAttributesClassName: 'silver' } })
    start({ options: { bindsOnSave: true, gates: parseFeatureGates('VolumeAttributesClass=false') } })
    await fixture.waitUntil(findVolumeOf(claim), 'the volume to be created')
    expect((await fixture.claim('data'))?.spec?.volumeName).toBeUndefined()
  })

  it("VAC-12 records no current class if the volume was created without the claim's class", async () => {
    const claim = await fixture.createClaim('data', { spec: { volumeAttributesClassName: 'silver' } })
    start({ provisioner: withoutAttributes(fixture.storage.provisioner()) })
    await fixture.waitUntil(findVolumeOf(claim), 'the volume to be created')
    const { spec, status } = (await fixture.claim('data')) ?? {}
    expect(spec).toMatchObject({ volumeName: volumeNameOf(claim), volumeAttributesClassName: 'silver' })
    expect(status).toMatchObject({ phase: 'Bound' })
    expect(status?.currentVolumeAttributesClassName).toBeUndefined()
  })
})
