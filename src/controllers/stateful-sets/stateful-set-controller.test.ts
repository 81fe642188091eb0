import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Json } from '../../apiserver/server.fixture.ts'
import { CLAIMS, type ControllerFixture, createControllerFixture, PODS, REVISIONS, SETS } from './controller.fixture.ts'

let fixture: ControllerFixture
beforeEach(async () => {
  fixture = await createControllerFixture()
})
afterEach(() => fixture.close())

const getSet = async () => (await fixture.server.get(`${SETS}/web`)).json
const getPod = async (name: string) => (await fixture.server.get(`${PODS}/${name}`)).json
const readImages = async () => (await fixture.list(PODS)).map(({ spec }) => spec.containers[0].image)
const ownersOf = ({ metadata }: Json) =>
  (metadata.ownerReferences ?? []).map(({ kind, name }: Json) => `${kind}/${name}`)
const isReady = async () => {
  const { status, spec, metadata } = await getSet()
  return (
    status.observedGeneration === metadata.generation &&
    status.readyReplicas === spec.replicas &&
    status.replicas === spec.replicas &&
    status.currentRevision === status.updateRevision
  )
}
const image = (name: string) => ({ spec: { template: { spec: { containers: [{ name: 'c', image: name }] } } } })

async function startReadySet(spec?: object): Promise<void> {
  fixture.start()
  await fixture.createSet(spec)
  await fixture.settle(isReady, 'all pods to be ready')
}

describe('the stateful set controller', () => {
  it('SYS-27 creates pods one after the other with their identity, claims, status and events', async () => {
    fixture.start()
    await fixture.createSet({ serviceName: 'web' })
    for (const count of [1, 2, 3]) {
      await fixture.server.waitUntil(async () => (await fixture.podNames()).length === count, `${count} pods`)
      expect(await fixture.makePodsReady()).toEqual([`web-${count - 1}`])
    }
    await fixture.settle(isReady, 'the status to be written')
    const { metadata, spec } = await getPod('web-1')
    expect(metadata.labels).toMatchObject({
      app: 'web',
      'statefulset.kubernetes.io/pod-name': 'web-1',
      'apps.kubernetes.io/pod-index': '1',
      'controller-revision-hash': (await getSet()).status.updateRevision,
    })
    expect([spec.hostname, spec.subdomain, spec.volumes[0]]).toEqual([
      'web-1',
      'web',
      { name: 'data', persistentVolumeClaim: { claimName: 'data-web-1' } },
    ])
    expect((await fixture.list(CLAIMS)).map((claim) => [claim.metadata.name, claim.metadata.labels])).toEqual(
      [0, 1, 2].map((ordinal) => [`data-web-${ordinal}`, { app: 'web' }]),
    )
    expect((await getSet()).status).toMatchObject({
      replicas: 3,
      readyReplicas: 3,
      availableReplicas: 3,
      currentReplicas: 3,
      updatedReplicas: 3,
      collisionCount: 0,
    })
    expect(fixture.events.slice(0, 2)).toEqual([
      'SuccessfulCreate: create Claim data-web-0 Pod web-0 in StatefulSet web success',
      'SuccessfulCreate: create Pod web-0 in StatefulSet web successful',
    ])
  })

  it('SYS-27 updates pods in descending order, keeps the history to its limit, and renumbers a revision on rollback', async () => {
    await startReadySet({ revisionHistoryLimit: 1 })
    for (const name of ['v2', 'v3', 'v1']) {
      await fixture.patchSet(image(name))
      await fixture.settle(async () => (await isReady()) && (await readImages()).every((other) => other === name), name)
    }
    const numbers = async () => (await fixture.list(REVISIONS)).map(({ revision }) => revision).sort()
    await fixture.settle(async () => (await numbers()).length === 2, 'the history to be truncated')
    expect(await numbers()).toEqual([3, 4])
    const deletions = fixture.events.filter((event) => event.startsWith('SuccessfulDelete'))
    expect(deletions.slice(0, 3)).toEqual(
      [2, 1, 0].map((ordinal) => `SuccessfulDelete: delete Pod web-${ordinal} in StatefulSet web successful`),
    )
    expect(await fixture.list(CLAIMS)).toHaveLength(3)
  })

  it('SYS-27 replaces an unready pod of a reverted rollout only after the user deletes it', async () => {
    await startReadySet()
    await fixture.patchSet(image('broken'))
    await fixture.settle(async () => (await readImages()).includes('broken'), 'the broken pod')
    await fixture.patchSet(image('v1'))
    const isObserved = async () => {
      const { status, metadata } = await getSet()
      return status.observedGeneration === metadata.generation
    }
    await fixture.settle(isObserved, 'the revert to be observed')
    expect(await readImages()).toEqual(['v1', 'v1', 'broken'])
    await fixture.server.delete(`${PODS}/web-2`)
    await fixture.settle(isReady, 'the pod to be replaced')
    expect(await readImages()).toEqual(['v1', 'v1', 'v1'])
  })

  it('SYS-27 makes the set or its pods the owners of claims according to the retention policy', async () => {
    const policy = { whenScaled: 'Delete', whenDeleted: 'Delete' }
    await startReadySet({ replicas: 2, persistentVolumeClaimRetentionPolicy: policy })
    expect((await fixture.list(CLAIMS)).map(ownersOf)).toEqual([['StatefulSet/web'], ['StatefulSet/web']])
    await fixture.patchSet({ spec: { replicas: 1 } })
    await fixture.settle(async () => (await fixture.podNames()).length === 1, 'web-1 to be deleted')
    expect((await fixture.list(CLAIMS)).map(ownersOf)).toEqual([['StatefulSet/web'], ['Pod/web-1']])
    // No garbage collector runs in this test, so the claim of the earlier pod blocks the next one.
    await fixture.patchSet({ spec: { replicas: 2 } })
    const isReported = async () => fixture.events.some((event) => event.includes('pvc data-web-1 is being deleted'))
    await fixture.settle(isReported, 'the claim to be reported')
    expect(await fixture.podNames()).toEqual(['web-0'])
    await fixture.server.patch(`${CLAIMS}/data-web-1`, { metadata: { finalizers: null } }, 'merge')
    await fixture.server.delete(`${CLAIMS}/data-web-1`)
    await fixture.settle(isReady, 'web-1 with a new claim')
    await fixture.patchSet({ spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain' } } })
    const areRetained = async () => (await fixture.list(CLAIMS)).every((claim) => ownersOf(claim).length === 0)
    await fixture.settle(areRetained, 'the owners to be removed')
  })

  it('SYS-27 adopts pods and revisions without a controller, and releases a pod that no longer matches', async () => {
    await startReadySet({ replicas: 2 })
    const uids = (await fixture.list(PODS)).map(({ metadata }) => metadata.uid)
    await fixture.stop()
    await fixture.server.delete(`${SETS}/web`)
    for (const url of [PODS, REVISIONS])
      for (const { metadata } of await fixture.list(url))
        await fixture.server.patch(`${url}/${metadata.name}`, { metadata: { ownerReferences: null } }, 'merge')
    await startReadySet({ replicas: 2 })
    expect((await fixture.list(PODS)).map(({ metadata }) => metadata.uid)).toEqual(uids)
    expect((await fixture.list(REVISIONS)).map(ownersOf)).toEqual([['StatefulSet/web']])
    await fixture.server.patch(`${PODS}/web-1`, { metadata: { labels: { app: 'other' } } }, 'merge')
    const isReleased = async () => ownersOf(await getPod('web-1')).length === 0
    await fixture.settle(isReleased, 'web-1 to be released')
    await fixture.server.delete(`${PODS}/web-1`)
    await fixture.settle(isReady, 'web-1 to be replaced')
  })

  it('SYS-27 restores removed identity labels, and replaces a pod that has failed', async () => {
    await startReadySet({ replicas: 1 })
    const label = 'apps.kubernetes.io/pod-index'
    await fixture.server.patch(`${PODS}/web-0`, { metadata: { labels: { [label]: null } } }, 'merge')
    await fixture.settle(async () => (await getPod('web-0')).metadata.labels[label] === '0', 'the label')
    const { uid } = (await getPod('web-0')).metadata
    await fixture.server.patch(`${PODS}/web-0/status`, { status: { phase: 'Failed' } }, 'merge')
    await fixture.settle(async () => (await isReady()) && (await getPod('web-0')).metadata.uid !== uid, 'another pod')
    expect(fixture.events).toContain('SuccessfulUpdate: update Pod web-0 in StatefulSet web successful')
  })

  it('SYS-27 counts a pod as available after minReadySeconds, and creates the next one then', async () => {
    fixture.start()
    await fixture.createSet({ replicas: 2, minReadySeconds: 60 })
    await fixture.server.waitUntil(async () => (await fixture.makePodsReady()).length > 0, 'web-0')
    await fixture.server.waitUntil(async () => (await getSet()).status.readyReplicas === 1, 'web-0 to be counted')
    expect([(await getSet()).status.availableReplicas, await fixture.podNames()]).toEqual([0, ['web-0']])
    await fixture.server.clock.advance(60_000)
    await fixture.settle(async () => (await fixture.podNames()).length === 2, 'web-1')
  })

  it('SYS-27 creates and deletes the pods of a parallel set together, and reports pods that a quota rejects', async () => {
    const quotas = '/api/v1/namespaces/default/resourcequotas'
    await fixture.server.post(quotas, { metadata: { name: 'few' }, spec: { hard: { pods: '3' } } })
    fixture.start()
    await fixture.createSet({ replicas: 5, podManagementPolicy: 'Parallel' })
    await fixture.server.waitUntil(async () => (await fixture.podNames()).length === 3, 'three pods')
    const isReported = () =>
      fixture.events.some((event) => /^FailedCreate: create Pod web-\d .*exceeded quota/.test(event))
    await fixture.server.waitUntil(isReported, 'the rejection to be reported')
    await fixture.server.waitUntil(async () => (await getSet()).status.replicas === 3, 'the status')
    await fixture.server.patch(`${quotas}/few`, { spec: { hard: { pods: '5' } } }, 'merge')
    await fixture.settle(isReady, 'five pods')
    await fixture.patchSet({ spec: { replicas: 0 } })
    await fixture.settle(async () => (await fixture.podNames()).length === 0, 'no pods')
  })

  it('SYS-27 waits while another controller owns a pod with the name', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'u', controller: true }
    await fixture.server.post(PODS, {
      metadata: { name: 'web-0', labels: { app: 'web' }, ownerReferences: [owner] },
      spec: { containers: [{ name: 'c', image: 'other' }] },
    })
    fixture.start()
    await fixture.createSet({ replicas: 1 })
    await fixture.settle(async () => (await getSet()).status.observedGeneration === 1, 'the set to be observed')
    expect(ownersOf(await getPod('web-0'))).toEqual(['ConfigMap/c'])
    await fixture.server.delete(`${PODS}/web-0`)
    await fixture.settle(isReady, 'the pod of the set')
    expect(ownersOf(await getPod('web-0'))).toEqual(['StatefulSet/web'])
  })

  it('SYS-27 creates no pods for a set that is being deleted', async () => {
    await startReadySet({ replicas: 1 })
    await fixture.server.delete(`${SETS}/web`, { propagationPolicy: 'Foreground' })
    await fixture.server.delete(`${PODS}/web-0`)
    await fixture.settle(async () => ((await getSet()).status.replicas ?? 0) === 0, 'the status')
    expect(await fixture.podNames()).toEqual([])
  })

  it('SYS-27 uses another name for a revision whose name is taken', async () => {
    fixture.start()
    await fixture.createSet({ replicas: 0 })
    await fixture.settle(async () => (await fixture.list(REVISIONS)).length === 1, 'the revision')
    const [{ metadata }] = (await fixture.list(REVISIONS)) as [Json]
    await fixture.stop()
    await fixture.server.delete(`${SETS}/web`)
    await fixture.server.delete(`${REVISIONS}/${metadata.name}`)
    await fixture.server.post(REVISIONS, { metadata: { name: metadata.name }, data: { other: 1 }, revision: 1 })
    fixture.start()
    await fixture.createSet({ replicas: 0 })
    await fixture.settle(async () => (await getSet()).status.collisionCount === 1, 'the collision to be counted')
    expect((await getSet()).status.updateRevision).not.toBe(metadata.name)
  })
})
