// Tests of the binder with a provisioner that runs in its process.
import { afterEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { conflict } from '../../api/status-error.ts'
import { PROVISIONER, PROVISIONER_BETA, SELECTED_NODE } from '../../volumes/names.ts'
import { type BindingFixture, type BindingFixtureOptions, createBindingFixture } from './binding.fixture.ts'
import { RunningProvisioners } from './running-provisioners.ts'

const DISK = 'disk.example.com'
const INTENT = `provisioning.stowage.dev/${DISK}`
const FAST = { spec: { storageClassName: 'fast' } }

let fixture: BindingFixture
afterEach(() => fixture.stop())

describe('a provisioner that runs in the process of the binder', () => {
  it('PROV-12 is named in a claim, with its intent, by one write and without an event', async () => {
    let commits = 0
    const { calls } = await start({
      wrapClient: (client) => ({
        ...client,
        commit(...args) {
          commits++
          return client.commit(...args)
        },
      }),
    })
    const { metadata } = await fixture.createClaim('claim', FAST)
    await fixture.settle()
    const claim = await fixture.getClaim('claim')
    expect(claim.metadata.annotations).toMatchObject({ [PROVISIONER]: DISK, [PROVISIONER_BETA]: DISK })
    expect(claim.metadata.finalizers).toContain(INTENT)
    expect(commits).toBe(1)
    expect(calls).toEqual([`expect ${metadata.uid}`])
    expect(fixture.eventsOf('claim')).toEqual([])
  })

  it('PROV-12 does not expect an intent that an earlier process has recorded', async () => {
    const { calls } = await start({})
    await fixture.createClaim('claim', { ...FAST, metadata: { finalizers: [INTENT] } })
    await fixture.settle()
    expect((await fixture.getClaim('claim')).metadata.annotations).toMatchObject({ [PROVISIONER]: DISK })
    expect(calls).toEqual([])
  })

  it('PROV-12 forgets the intent if the write fails, also if the server has applied it', async () => {
    let hasFailed = false
    const { calls } = await start({
      wrapClient: (client) => ({
        ...client,
        async commit(...args) {
          const result = await client.commit(...args)
          if (hasFailed) return result
          hasFailed = true
          throw conflict(persistentVolumeClaimKind, 'claim', 'the reply was lost')
        },
      }),
    })
    const { metadata } = await fixture.createClaim('claim', FAST)
    await fixture.settle()
    expect((await fixture.getClaim('claim')).metadata.finalizers).toContain(INTENT)
    expect(calls).toEqual([`expect ${metadata.uid}`, `forget ${metadata.uid}`])
  })

  it('PROV-12 expects an intent only for the node of its instance', async () => {
    const { calls } = await start({ instance: 'node-1' })
    const annotations = { [SELECTED_NODE]: 'node-2' }
    await fixture.createClaim('elsewhere', { ...FAST, annotations })
    const { metadata } = await fixture.createClaim('here', { ...FAST, annotations: { [SELECTED_NODE]: 'node-1' } })
    await fixture.settle()
    expect((await fixture.getClaim('elsewhere')).metadata.finalizers ?? []).not.toContain(INTENT)
    expect(calls).toEqual([`expect ${metadata.uid}`])
  })

  it('PROV-12 gets no intent from the binder for a claim whose volume is created from another one', async () => {
    const { calls } = await start({})
    const dataSource = { kind: 'PersistentVolumeClaim', name: 'source' }
    await fixture.createClaim('claim', { spec: { ...FAST.spec, dataSource } })
    await fixture.settle()
    const { finalizers = [], annotations } = (await fixture.getClaim('claim')).metadata
    expect(annotations).toMatchObject({ [PROVISIONER]: DISK })
    expect(finalizers).not.toContain(INTENT)
    expect(calls).toEqual([])
  })

  it('PROV-12 gets no intent from the binder after it has stopped', async () => {
    const { calls, remove } = await start({})
    remove()
    await fixture.createClaim('claim', FAST)
    await fixture.settle()
    const { finalizers = [], annotations } = (await fixture.getClaim('claim')).metadata
    expect(annotations).toMatchObject({ [PROVISIONER]: DISK })
    expect(finalizers).not.toContain(INTENT)
    expect(calls).toEqual([])
    expect(fixture.eventsOf('claim')).toEqual([expect.stringContaining('ExternalProvisioning')])
  })
})

async function start({ instance, ...options }: BindingFixtureOptions & { readonly instance?: string }) {
  const calls: string[] = []
  const runningProvisioners = new RunningProvisioners()
  const remove = runningProvisioners.add({
    name: DISK,
    instance,
    intentFinalizer: INTENT,
    expectIntent: ({ metadata }) => void calls.push(`expect ${metadata.uid}`),
    forgetIntent: ({ metadata }) => void calls.push(`forget ${metadata.uid}`),
  })
  fixture = await createBindingFixture({ runningProvisioners, ...options })
  await fixture.createClass('fast')
  return { calls, remove }
}
