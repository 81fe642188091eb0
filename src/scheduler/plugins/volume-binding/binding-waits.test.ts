import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { BIND_COMPLETED, SELECTED_NODE } from '../../../volumes/names.ts'
import { HOST, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

// Nobody else binds or makes volumes here: the test does what it wants to see answered.
let trial: SchedulerFixture
beforeEach(async () => {
  trial = await startSchedulerFixture({ controllers: false, bindTimeoutMs: 100_000 })
  await trial.aNode('n1')
})
afterEach(() => trial.stop())

const claimRef = { namespace: 'default', name: 'data' }
const patchClaim = (body: object, subresource?: string) =>
  trial.client.patch(persistentVolumeClaimKind, claimRef, { type: 'merge', body }, subresource ? { subresource } : {})
const patchVolume = (name: string, body: object) =>
  trial.client.patch(persistentVolumeKind, { name }, { type: 'merge', body })
const fails = (why: string) =>
  trial.until(() => trial.told('db').some((text) => text.endsWith(`binding volumes: ${why}`)), why)
const annotation = (value: string | null) => ({ metadata: { annotations: { [SELECTED_NODE]: value } } })

/** A claim whose volume is to be made on n1. */
async function making(claims = ['data']) {
  await trial.aClass('local')
  await trial.aClaim('data')
  await trial.aPod('db', { claims })
  await trial.until(async () => (await trial.claim('data')).metadata.annotations?.[SELECTED_NODE] === 'n1', 'the node')
}
/** A claim that is to get the existing volume `v`. */
async function taking() {
  await trial.aClass('local', { provisioner: 'kubernetes.io/no-provisioner' })
  await trial.aVolume('v')
  await trial.aClaim('data')
  await trial.aPod('db', { claims: ['data'] })
  await trial.until(async () => (await volume('v')).spec?.claimRef?.uid, 'the volume to be given')
}
const volume = (name: string) => trial.client.get(persistentVolumeKind, { name })
const bindTo = (volumeName: string) =>
  patchClaim({ metadata: { annotations: { [BIND_COMPLETED]: 'yes' } }, spec: { volumeName } })

describe('while a pod waits for its volumes', () => {
  it('CAP-13 it goes on when all are bound, and a volume that is not seen yet is waited for', async () => {
    await making()
    await bindTo('v')
    await trial.settle()
    expect(await trial.nodeOf('db')).toBe(undefined)
    await trial.aVolume('v', { spec: { claimRef }, phase: 'Bound' })
    await trial.until(() => trial.nodeOf('db'), 'a node')
  })

  it('CAP-13 an existing volume is given to the claim, as chosen by a controller', async () => {
    await taking()
    const { metadata, spec } = await volume('v')
    expect(metadata.annotations).toEqual({ 'pv.kubernetes.io/bound-by-controller': 'yes' })
    expect(spec?.claimRef).toMatchObject({ kind: 'PersistentVolumeClaim', ...claimRef })
    await bindTo('v')
    await trial.until(() => trial.nodeOf('db'), 'a node')
  })

  it('CAP-13 a selected node that is taken away means that making failed', async () => {
    await making()
    await patchClaim(annotation(null))
    await trial.until(
      () =>
        trial.told('db').some((text) => /selectedNode annotation reset|provisioning failed for PVC "data"/.test(text)),
      'the failure',
    )
    // It is tried anew, there being no other node.
    await trial.until(
      async () => (await trial.claim('data')).metadata.annotations?.[SELECTED_NODE] === 'n1',
      'the node',
    )
  })

  it('CAP-13 a selected node that is changed means the same', async () => {
    await making()
    await patchClaim(annotation('n7'))
    await fails('provisioning failed for PVC "data"')
  })

  it('CAP-13 a volume whose claimRef is reset ends the wait', async () => {
    await taking()
    await patchVolume('v', { spec: { claimRef: { uid: null } } })
    await fails('ClaimRef got reset for pv "v"')
  })

  it('CAP-13 a volume that turns out to be elsewhere ends the wait', async () => {
    await making()
    const nodeSelectorTerms = [{ matchExpressions: [{ key: HOST, operator: 'In', values: ['n9'] }] }]
    await trial.aVolume('v', { spec: { claimRef, nodeAffinity: { required: { nodeSelectorTerms } } }, phase: 'Bound' })
    await bindTo('v')
    await fails(`pv "v" node affinity doesn't match node "n1": no matching NodeSelectorTerms`)
  })

  it.each([
    ['gone', null, 'persistentvolumeclaim "old" not found'],
    ['going', ['kubernetes.io/pvc-protection'], 'persistentvolumeclaim "old" is being deleted'],
  ])('CAP-13 a claim that had its volume before and is %s by then ends the wait', async (_, finalizers, why) => {
    const old = { namespace: 'default', name: 'old' }
    await trial.aVolume('o', { spec: { claimRef: old }, phase: 'Bound' })
    await trial.aClaim('old', {
      metadata: { annotations: { [BIND_COMPLETED]: 'yes' } },
      spec: { volumeName: 'o' },
    })
    await making(['data', 'old'])
    await trial.client.patch(persistentVolumeClaimKind, old, { type: 'merge', body: { metadata: { finalizers } } })
    await trial.client.delete(persistentVolumeClaimKind, old)
    await fails(why)
    await trial.aVolume('v', { spec: { claimRef }, phase: 'Bound' })
    await bindTo('v')
    await trial.settle()
    expect(await trial.nodeOf('db')).toBe(undefined)
  })

  it.each([
    ['cordoned', { unschedulable: true }, { unschedulable: null }, 'node(s) were unschedulable'],
    [
      'tainted',
      { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' }] },
      { taints: null },
      'node(s) had untolerated taint(s)',
    ],
  ])(
    'CAP-13 a node that is %s meanwhile is not given the pod before it is open again',
    async (_, closed, open, why) => {
      const patchNode = (spec: object) =>
        trial.client.patch(nodeKind, { name: 'n1' }, { type: 'merge', body: { spec } } as any)
      await making()
      await patchNode(closed)
      await trial.settle()
      await trial.aVolume('v', { spec: { claimRef }, phase: 'Bound' })
      await bindTo('v')
      await trial.until(async () => (await trial.message('db'))?.includes(`0/1 nodes are available: 1 ${why}`), why)
      expect(trial.told('db')[0]).toContain('takes the pod no more now that its volumes are there')
      expect(await trial.nodeOf('db')).toBe(undefined)
      await patchNode(open)
      await trial.until(() => trial.nodeOf('db'), 'a node')
    },
  )

  it('CAP-13 time runs out', async () => {
    await making()
    await trial.trial.clock.advance(101_000)
    await fails('context deadline exceeded')
  })

  it('CAP-13 a pod that goes leaves its claim and volume to others', async () => {
    await taking()
    await trial.trial.delete('/api/v1/namespaces/default/pods/db')
    await trial.until(() => trial.scheduler.queuedPods().length === 0, 'the pod to be forgotten')
    expect(trial.told('db').filter((text) => text.includes('binding volumes'))).toEqual([])
    await trial.aPod('next', { claims: ['data'] })
    await bindTo('v')
    await trial.until(() => trial.nodeOf('next'), 'a node')
  })

  it('CAP-13 a write that fails leaves the one before it standing, and the next try goes on from there', async () => {
    let refuse = true
    await trial.stop()
    trial = await startSchedulerFixture({
      controllers: false,
      through: (client) => ({
        ...client,
        patch: async (kind: any, ref: any, ...rest: any[]) => {
          if (refuse && kind === persistentVolumeClaimKind && ref.name === 'zwei') throw new Error('no')
          return (client.patch as any)(kind, ref, ...rest)
        },
      }),
    })
    await trial.aNode('n1')
    await trial.aClass('local')
    for (const name of ['eins', 'zwei']) await trial.aClaim(name)
    await trial.aPod('db', { claims: ['eins', 'zwei'] })
    const selected = async (name: string) => (await trial.claim(name)).metadata.annotations?.[SELECTED_NODE]
    await trial.until(() => trial.scheduler.queuedPods()[0]?.state === 'backoff', 'the failure')
    expect([await selected('eins'), await selected('zwei')]).toEqual(['n1', undefined])
    refuse = false
    await trial.until(() => selected('zwei'), 'the second write')
  })
})
