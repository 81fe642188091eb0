import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { BIND_COMPLETED, SELECTED_NODE } from '../../../volumes/names.ts'
import { HOST, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

// No other controllers run: the tests bind and provision claims themselves.
let fixture: SchedulerFixture
beforeEach(async () => {
  fixture = await startSchedulerFixture({ runsControllers: false, bindTimeoutMs: 100_000 })
  await fixture.createNode('n1')
})
afterEach(() => fixture.stop())

const claimRef = { namespace: 'default', name: 'data' }
const patchClaim = (body: object, subresource?: string) =>
  fixture.client.patch(persistentVolumeClaimKind, claimRef, { type: 'merge', body }, subresource ? { subresource } : {})
const patchVolume = (name: string, body: object) =>
  fixture.client.patch(persistentVolumeKind, { name }, { type: 'merge', body })
const waitForBindingFailure = (reason: string) =>
  fixture.waitUntil(() => fixture.events('db').some((event) => event.endsWith(`binding volumes: ${reason}`)), reason)
const selectedNodePatch = (value: string | null) => ({ metadata: { annotations: { [SELECTED_NODE]: value } } })

/** Creates a pod whose claim is to be provisioned on n1, and waits until n1 is selected. */
async function startProvisioning(claims = ['data']) {
  await fixture.createClass('local')
  await fixture.createClaim('data')
  await fixture.createPod('db', { claims })
  await fixture.waitUntil(
    async () => (await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE] === 'n1',
    'the node to be selected',
  )
}
/** Creates a pod whose claim is to be bound to the existing volume `v`, and waits for the claimRef. */
async function startBinding() {
  await fixture.createClass('local', { provisioner: 'kubernetes.io/no-provisioner' })
  await fixture.createVolume('v')
  await fixture.createClaim('data')
  await fixture.createPod('db', { claims: ['data'] })
  await fixture.waitUntil(async () => (await getVolume('v')).spec?.claimRef?.uid, 'the claimRef')
}
const getVolume = (name: string) => fixture.client.get(persistentVolumeKind, { name })
const bindClaimTo = (volumeName: string) =>
  patchClaim({ metadata: { annotations: { [BIND_COMPLETED]: 'yes' } }, spec: { volumeName } })

describe('preBind of VolumeBinding', () => {
  it('CAP-13 ends when all claims are bound and their volumes are in the cache', async () => {
    await startProvisioning()
    await bindClaimTo('v')
    await fixture.settle()
    expect(await fixture.nodeOf('db')).toBe(undefined)
    await fixture.createVolume('v', { spec: { claimRef }, phase: 'Bound' })
    await fixture.waitUntil(() => fixture.nodeOf('db'), 'the pod to be bound')
  })

  it('CAP-13 sets claimRef on an existing volume, with the bound-by-controller annotation', async () => {
    await startBinding()
    const { metadata, spec } = await getVolume('v')
    expect(metadata.annotations).toEqual({ 'pv.kubernetes.io/bound-by-controller': 'yes' })
    expect(spec?.claimRef).toMatchObject({ kind: 'PersistentVolumeClaim', ...claimRef })
    await bindClaimTo('v')
    await fixture.waitUntil(() => fixture.nodeOf('db'), 'the pod to be bound')
  })

  it('CAP-13 fails and retries the pod if the selected-node annotation is removed', async () => {
    await startProvisioning()
    await patchClaim(selectedNodePatch(null))
    await fixture.waitUntil(
      () =>
        fixture
          .events('db')
          .some((event) => /selectedNode annotation reset|provisioning failed for PVC "data"/.test(event)),
      'the binding to fail',
    )
    // The only node is selected again.
    await fixture.waitUntil(
      async () => (await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE] === 'n1',
      'the node to be selected',
    )
  })

  it('CAP-13 fails if the selected-node annotation is changed', async () => {
    await startProvisioning()
    await patchClaim(selectedNodePatch('n7'))
    await waitForBindingFailure('provisioning failed for PVC "data"')
  })

  it('CAP-13 fails if the claimRef of a volume is reset', async () => {
    await startBinding()
    await patchVolume('v', { spec: { claimRef: { uid: null } } })
    await waitForBindingFailure('ClaimRef got reset for pv "v"')
  })

  it('CAP-13 fails if the node cannot reach the volume', async () => {
    await startProvisioning()
    const nodeSelectorTerms = [{ matchExpressions: [{ key: HOST, operator: 'In', values: ['n9'] }] }]
    await fixture.createVolume('v', {
      spec: { claimRef, nodeAffinity: { required: { nodeSelectorTerms } } },
      phase: 'Bound',
    })
    await bindClaimTo('v')
    await waitForBindingFailure(`pv "v" node affinity doesn't match node "n1": no matching NodeSelectorTerms`)
  })

  it.each([
    ['deleted', null, 'persistentvolumeclaim "old" not found'],
    ['being deleted', ['kubernetes.io/pvc-protection'], 'persistentvolumeclaim "old" is being deleted'],
  ])('CAP-13 fails if a claim that was already bound is %s', async (_, finalizers, reason) => {
    const oldClaimRef = { namespace: 'default', name: 'old' }
    await fixture.createVolume('o', { spec: { claimRef: oldClaimRef }, phase: 'Bound' })
    await fixture.createClaim('old', {
      metadata: { annotations: { [BIND_COMPLETED]: 'yes' } },
      spec: { volumeName: 'o' },
    })
    await startProvisioning(['data', 'old'])
    await fixture.client.patch(persistentVolumeClaimKind, oldClaimRef, {
      type: 'merge',
      body: { metadata: { finalizers } },
    })
    await fixture.client.delete(persistentVolumeClaimKind, oldClaimRef)
    await waitForBindingFailure(reason)
    await fixture.createVolume('v', { spec: { claimRef }, phase: 'Bound' })
    await bindClaimTo('v')
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
  ])('CAP-13 does not bind the pod to a node that was %s during the wait', async (_, change, revert, reason) => {
    const patchNode = (spec: object) =>
      fixture.client.patch(nodeKind, { name: 'n1' }, { type: 'merge', body: { spec } })
    await startProvisioning()
    await patchNode(change)
    await fixture.settle()
    await fixture.createVolume('v', { spec: { claimRef }, phase: 'Bound' })
    await bindClaimTo('v')
    await fixture.waitUntil(
      async () => (await fixture.message('db'))?.includes(`0/1 nodes are available: 1 ${reason}`),
      reason,
    )
    expect(fixture.events('db')[0]).toContain('no longer accepts the pod now that its volumes are bound')
    expect(await fixture.nodeOf('db')).toBe(undefined)
    await patchNode(revert)
    await fixture.waitUntil(() => fixture.nodeOf('db'), 'the pod to be bound')
  })

  it('PLUS-11 ends immediately if the node is lost, and selects another node once the claim is released', async () => {
    await startProvisioning()
    await fixture.createNode('n2')
    const patchNode = (body: object, subresource?: string) =>
      fixture.client.patch(nodeKind, { name: 'n1' }, { type: 'merge', body }, subresource ? { subresource } : {})
    await patchNode({ spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] } })
    await fixture.settle()
    expect(fixture.events('db')).toEqual([])
    await patchNode({ status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }, 'status')
    await waitForBindingFailure('node "n1" is lost')
    await patchClaim(selectedNodePatch(null))
    await fixture.waitUntil(
      async () => (await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE] === 'n2',
      'the other node to be selected',
    )
  })

  it('PLUS-11 selects no lost node for a new volume, even if the pod tolerates its taints', async () => {
    const patchNode = (body: object, subresource?: string) =>
      fixture.client.patch(nodeKind, { name: 'n1' }, { type: 'merge', body }, subresource ? { subresource } : {})
    await patchNode({ spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] } })
    await patchNode({ status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }, 'status')
    await fixture.createClass('local')
    await fixture.createClaim('data')
    await fixture.createPod('db', { claims: ['data'], spec: { tolerations: [{ operator: 'Exists' }] } })
    await fixture.waitUntil(
      async () => (await fixture.message('db'))?.includes('1 node(s) are lost, and no volume can be provisioned there'),
      'the reason',
    )
    await patchNode({ spec: { taints: null } })
    await fixture.waitUntil(
      async () => (await fixture.claim('data')).metadata.annotations?.[SELECTED_NODE] === 'n1',
      'the node to be selected',
    )
  })

  it('CAP-13 fails after the timeout', async () => {
    await startProvisioning()
    await fixture.server.clock.advance(101_000)
    await waitForBindingFailure('context deadline exceeded')
  })

  it('CAP-13 releases the claim and the volume when the pod is deleted', async () => {
    await startBinding()
    await fixture.server.delete('/api/v1/namespaces/default/pods/db')
    await fixture.waitUntil(() => fixture.scheduler.queuedPods().length === 0, 'the queue to be empty')
    expect(fixture.events('db').filter((event) => event.includes('binding volumes'))).toEqual([])
    await fixture.createPod('next', { claims: ['data'] })
    await bindClaimTo('v')
    await fixture.waitUntil(() => fixture.nodeOf('next'), 'the pod to be bound')
  })

  it('CAP-13 keeps the first write if the second fails, and retries the second', async () => {
    let isFailing = true
    await fixture.stop()
    fixture = await startSchedulerFixture({
      runsControllers: false,
      wrapClient: (client) => ({
        ...client,
        patch: async (kind, ref, ...options) => {
          if (isFailing && kind.plural === persistentVolumeClaimKind.plural && ref.name === 'second')
            throw new Error('injected')
          return client.patch(kind, ref, ...options)
        },
      }),
    })
    await fixture.createNode('n1')
    await fixture.createClass('local')
    for (const name of ['first', 'second']) await fixture.createClaim(name)
    await fixture.createPod('db', { claims: ['first', 'second'] })
    const readSelectedNode = async (name: string) => (await fixture.claim(name)).metadata.annotations?.[SELECTED_NODE]
    await fixture.waitUntil(() => fixture.scheduler.queuedPods()[0]?.state === 'backoff', 'the binding to fail')
    expect([await readSelectedNode('first'), await readSelectedNode('second')]).toEqual(['n1', undefined])
    isFailing = false
    await fixture.waitUntil(() => readSelectedNode('second'), 'the second write')
  })
})
