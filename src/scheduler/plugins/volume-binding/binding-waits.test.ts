import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { BIND_COMPLETED, SELECTED_NODE } from '../../../volumes/names.ts'
import { HOST, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

// No other controller runs: the test binds and provisions claims itself.
let fixture: SchedulerFixture
beforeEach(async () => {
  fixture = await startSchedulerFixture({ controllers: false, bindTimeoutMs: 100_000 })
  await fixture.createNode('n1')
})
afterEach(() => fixture.stop())

const claimRef = { namespace: 'default', name: 'data' }
const patchClaim = (body: object, subresource?: string) =>
  fixture.client.patch(persistentVolumeClaimKind, claimRef, { type: 'merge', body }, subresource ? { subresource } : {})
const patchVolume = (name: string, body: object) =>
  fixture.client.patch(persistentVolumeKind, { name }, { type: 'merge', body })
const fails = (why: string) =>
  fixture.until(() => fixture.events('db').some((text) => text.endsWith(`binding volumes: ${why}`)), why)
const annotation = (value: string | null) => ({ metadata: { annotations: { [SELECTED_NODE]: value } } })

/** A claim whose volume is to be provisioned on n1. */
async function provisioning(claims = ['data']) {
  await fixture.createClass('local')
  await fixture.createClaim('data')
  await fixture.createPod('db', { claims })
  await fixture.until(
    async () => (await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE] === 'n1',
    'the node',
  )
}
/** A claim that is to be bound to the existing volume `v`. */
async function binding() {
  await fixture.createClass('local', { provisioner: 'kubernetes.io/no-provisioner' })
  await fixture.createVolume('v')
  await fixture.createClaim('data')
  await fixture.createPod('db', { claims: ['data'] })
  await fixture.until(async () => (await volume('v')).spec?.claimRef?.uid, 'the claimRef')
}
const volume = (name: string) => fixture.client.get(persistentVolumeKind, { name })
const bindTo = (volumeName: string) =>
  patchClaim({ metadata: { annotations: { [BIND_COMPLETED]: 'yes' } }, spec: { volumeName } })

describe('the wait for volumes in preBind', () => {
  it('CAP-13 ends when all claims are bound and their volumes are visible', async () => {
    await provisioning()
    await bindTo('v')
    await fixture.settle()
    expect(await fixture.nodeOf('db')).toBe(undefined)
    await fixture.createVolume('v', { spec: { claimRef }, phase: 'Bound' })
    await fixture.until(() => fixture.nodeOf('db'), 'a node')
  })

  it('CAP-13 sets claimRef on an existing volume, with the bound-by-controller annotation', async () => {
    await binding()
    const { metadata, spec } = await volume('v')
    expect(metadata.annotations).toEqual({ 'pv.kubernetes.io/bound-by-controller': 'yes' })
    expect(spec?.claimRef).toMatchObject({ kind: 'PersistentVolumeClaim', ...claimRef })
    await bindTo('v')
    await fixture.until(() => fixture.nodeOf('db'), 'a node')
  })

  it('CAP-13 fails if the selected node is removed, and the pod is retried', async () => {
    await provisioning()
    await patchClaim(annotation(null))
    await fixture.until(
      () =>
        fixture
          .events('db')
          .some((text) => /selectedNode annotation reset|provisioning failed for PVC "data"/.test(text)),
      'the failure',
    )
    // The only node is selected again.
    await fixture.until(
      async () => (await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE] === 'n1',
      'the node',
    )
  })

  it('CAP-13 fails if the selected node is changed', async () => {
    await provisioning()
    await patchClaim(annotation('n7'))
    await fails('provisioning failed for PVC "data"')
  })

  it('CAP-13 fails if the claimRef of a volume is reset', async () => {
    await binding()
    await patchVolume('v', { spec: { claimRef: { uid: null } } })
    await fails('ClaimRef got reset for pv "v"')
  })

  it('CAP-13 fails if the node cannot reach the volume', async () => {
    await provisioning()
    const nodeSelectorTerms = [{ matchExpressions: [{ key: HOST, operator: 'In', values: ['n9'] }] }]
    await fixture.createVolume('v', {
      spec: { claimRef, nodeAffinity: { required: { nodeSelectorTerms } } },
      phase: 'Bound',
    })
    await bindTo('v')
    await fails(`pv "v" node affinity doesn't match node "n1": no matching NodeSelectorTerms`)
  })

  it.each([
    ['deleted', null, 'persistentvolumeclaim "old" not found'],
    ['being deleted', ['kubernetes.io/pvc-protection'], 'persistentvolumeclaim "old" is being deleted'],
  ])('CAP-13 fails if a claim that was bound before is %s', async (_, finalizers, why) => {
    const old = { namespace: 'default', name: 'old' }
    await fixture.createVolume('o', { spec: { claimRef: old }, phase: 'Bound' })
    await fixture.createClaim('old', {
      metadata: { annotations: { [BIND_COMPLETED]: 'yes' } },
      spec: { volumeName: 'o' },
    })
    await provisioning(['data', 'old'])
    await fixture.client.patch(persistentVolumeClaimKind, old, { type: 'merge', body: { metadata: { finalizers } } })
    await fixture.client.delete(persistentVolumeClaimKind, old)
    await fails(why)
    await fixture.createVolume('v', { spec: { claimRef }, phase: 'Bound' })
    await bindTo('v')
    await fixture.settle()
    expect(await fixture.nodeOf('db')).toBe(undefined)
  })

  it.each([
    ['cordoned', { unschedulable: true }, { unschedulable: null }, 'node(s) were unschedulable'],
    [
      'tainted',
      { taints: [{ key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' }] },
      { taints: null },
      'node(s) had untolerated taint(s)',
    ],
  ])('CAP-13 does not bind the pod to a node that was %s meanwhile', async (_, change, revert, why) => {
    const patchNode = (spec: object) =>
      fixture.client.patch(nodeKind, { name: 'n1' }, { type: 'merge', body: { spec } })
    await provisioning()
    await patchNode(change)
    await fixture.settle()
    await fixture.createVolume('v', { spec: { claimRef }, phase: 'Bound' })
    await bindTo('v')
    await fixture.until(async () => (await fixture.message('db'))?.includes(`0/1 nodes are available: 1 ${why}`), why)
    expect(fixture.events('db')[0]).toContain('no longer accepts the pod now that its volumes are bound')
    expect(await fixture.nodeOf('db')).toBe(undefined)
    await patchNode(revert)
    await fixture.until(() => fixture.nodeOf('db'), 'a node')
  })

  it('CAP-13 fails after the timeout', async () => {
    await provisioning()
    await fixture.server.clock.advance(101_000)
    await fails('context deadline exceeded')
  })

  it('CAP-13 releases claim and volume when the pod is deleted', async () => {
    await binding()
    await fixture.server.delete('/api/v1/namespaces/default/pods/db')
    await fixture.until(() => fixture.scheduler.queuedPods().length === 0, 'an empty queue')
    expect(fixture.events('db').filter((text) => text.includes('binding volumes'))).toEqual([])
    await fixture.createPod('next', { claims: ['data'] })
    await bindTo('v')
    await fixture.until(() => fixture.nodeOf('next'), 'a node')
  })

  it('CAP-13 keeps the first write when the second fails, and continues from there', async () => {
    let isFailing = true
    await fixture.stop()
    fixture = await startSchedulerFixture({
      controllers: false,
      wrapClient: (client) => ({
        ...client,
        patch: async (kind, ref, ...rest) => {
          if (isFailing && kind.plural === persistentVolumeClaimKind.plural && ref.name === 'second')
            throw new Error('injected')
          return client.patch(kind, ref, ...rest)
        },
      }),
    })
    await fixture.createNode('n1')
    await fixture.createClass('local')
    for (const name of ['first', 'second']) await fixture.createClaim(name)
    await fixture.createPod('db', { claims: ['first', 'second'] })
    const selected = async (name: string) => (await fixture.claim(name)).metadata.annotations?.[SELECTED_NODE]
    await fixture.until(() => fixture.scheduler.queuedPods()[0]?.state === 'backoff', 'the failure')
    expect([await selected('first'), await selected('second')]).toEqual(['n1', undefined])
    isFailing = false
    await fixture.until(() => selected('second'), 'the second write')
  })
})
