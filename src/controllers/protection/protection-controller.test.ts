import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { allGatesOn, type FeatureGates, parseFeatureGates } from '../../api/feature-gates.ts'
import { ApiError } from '../../api/status-error.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client, WatchEvent } from '../../client/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { createProtectionControllers } from './protection-controller.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const VOLUMES = '/api/v1/persistentvolumes'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'

let server: ServerFixture
let stop: () => Promise<void>
let stuckMessages: () => string[]
let isBusy: () => boolean
/** The names of the queues of all reconciles. */
const reconciledQueues: string[] = []

beforeEach(async () => {
  server = await createServerFixture()
  start()
})

const identity = (client: Client) => client

function start(wrapCacheClient = identity, wrapClient = identity, gates: FeatureGates = allGatesOn): void {
  const abort = new AbortController()
  const directClient = server.clientOf('protection')
  const client = wrapClient(directClient)
  const sharedOptions = { clock: server.clock, random: () => 0.5, log: silentLog }
  const caches = createCacheSet({ ...sharedOptions, client: wrapCacheClient(directClient) })
  const queueObserver = (name: string) => ({
    added() {},
    started: () => void reconciledQueues.push(name),
    finished() {},
    retried() {},
  })
  const metrics = { queueObserver, queues: new Set() } as never
  const controllers = createProtectionControllers({ ...sharedOptions, client, caches, gates, metrics })
  const run = controllers.run(abort.signal)
  isBusy = () => controllers.queues.some((queue) => queue.stats().depth + queue.stats().running > 0)
  stuckMessages = () => controllers.queues.flatMap((queue) => queue.states().map(({ message }) => message ?? ''))
  stop = () => {
    abort.abort()
    return run.then(() => caches.stop())
  }
}

/** Returns a client whose watches return no pods. */
const hidePods = (client: Client): Client => ({
  ...client,
  watch: (kind, request) => (kind.kind === 'Pod' ? watchNothing(request.signal) : client.watch(kind, request)),
})

async function* watchNothing(signal: AbortSignal): AsyncGenerator<Extract<WatchEvent<never>, { type: 'bookmark' }>> {
  yield { type: 'bookmark', resourceVersion: '1', endsInitialEvents: true }
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

afterEach(async () => {
  await stop()
  await server.store.close()
})

const waitUntil: ServerFixture['waitUntil'] = (condition, goal) => server.waitUntil(condition, goal)
/** Waits until the work queues stay empty. */
async function waitUntilIdle(): Promise<void> {
  for (let idleTurns = 0; idleTurns < 20; idleTurns++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (isBusy()) idleTurns = 0
  }
}
const isDeleted = (path: string) => async () => (await server.get(path)).status === 404
const reports = (text: string) => () => stuckMessages().some((message) => message.includes(text))

const createClaim = (name: string, extra: object = {}, metadata: object = {}) =>
  server.post(CLAIMS, {
    metadata: { name, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...extra },
  })
const createPod = (name: string, claimName: string, nodeName?: string) =>
  server.post(PODS, {
    metadata: { name },
    spec: {
      ...(nodeName ? { nodeName } : {}),
      containers: [{ name: 'c', image: 'i' }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
    },
  })

describe('createProtectionControllers', () => {
  it('PROV-18 deletes an unused claim immediately', async () => {
    await createClaim('free')
    await server.delete(`${CLAIMS}/free`)
    await waitUntil(isDeleted(`${CLAIMS}/free`), 'the claim to be deleted')
  })

  it('PROV-18 reconciles a claim for its pods only while it is being deleted', async () => {
    await createClaim('c')
    await waitUntilIdle()
    reconciledQueues.length = 0
    await createPod('p', 'c', 'n')
    await waitUntilIdle()
    expect(reconciledQueues).toEqual([])
    await server.delete(`${CLAIMS}/c`)
    await waitUntil(reports('used by pod default/p'), 'the claim to wait for its pod')
    await server.delete(`${PODS}/p`, { gracePeriodSeconds: 0 })
    await waitUntil(isDeleted(`${CLAIMS}/c`), 'the claim to be deleted')
  })

  it('PROV-18 keeps a claim while a pod on a node refers to it, even if the pod has terminated', async () => {
    await createClaim('used')
    await createPod('user', 'used', 'node-1')
    await server.delete(`${CLAIMS}/used`)
    await waitUntil(reports('used by pod default/user'), 'the message to be reported')
    expect((await server.get(`${CLAIMS}/used`)).json.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
    await server.patch(`${PODS}/user/status`, { status: { phase: 'Succeeded' } }, 'merge')
    await server.patch(`${CLAIMS}/used`, { metadata: { labels: { trigger: 'reconcile' } } }, 'merge')
    await waitUntilIdle()
    expect((await server.get(`${CLAIMS}/used`)).json.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
    await server.delete(`${PODS}/user`, { gracePeriodSeconds: 0 })
    await waitUntil(isDeleted(`${CLAIMS}/used`), 'the claim to be deleted')
  })

  it('PROV-18 keeps an ephemeral claim only for the pod that owns it, until the pod is shut down', async () => {
    const ephemeral = {
      volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
    }
    const pod = await server.post(PODS, {
      metadata: { name: 'p', finalizers: ['example.com/hold'] },
      spec: {
        nodeName: 'node-1',
        containers: [{ name: 'c', image: 'i' }],
        volumes: [
          { name: 'own', ephemeral },
          { name: 'other', ephemeral },
        ],
      },
    })
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', controller: true }
    await createClaim('p-own', {}, { ownerReferences: [{ ...owner, uid: pod.json.metadata.uid }] })
    await createClaim('p-other', {}, { ownerReferences: [{ ...owner, uid: 'another' }] })
    await server.delete(`${CLAIMS}/p-own`)
    await server.delete(`${CLAIMS}/p-other`)
    await waitUntil(isDeleted(`${CLAIMS}/p-other`), 'the claim of another pod to be deleted')
    await waitUntil(reports('used by pod default/p'), 'the message to be reported')
    // The pod is shut down, but a finalizer that may wait for the claim keeps it in the store.
    await server.delete(`${PODS}/p`, { gracePeriodSeconds: 0 })
    await waitUntil(isDeleted(`${CLAIMS}/p-own`), 'the claim of the pod that was shut down to be deleted')
    expect((await server.get(`${PODS}/p`)).status).toBe(200)
  })

  it('PROV-18 keeps a claim for a pod that is not in the cache yet', async () => {
    await stop()
    start(hidePods)
    await createClaim('used')
    await createPod('late', 'used', 'node-1')
    await server.delete(`${CLAIMS}/used`)
    await waitUntil(reports('used by pod default/late'), 'the message to be reported')
    expect((await server.get(`${CLAIMS}/used`)).status).toBe(200)
  })

  it('PROV-18 adds the finalizer to claims and volumes that lack it', async () => {
    await createClaim('old')
    await server.patch(`${CLAIMS}/old`, { metadata: { finalizers: null } }, 'merge')
    await waitUntil(
      async () => (await server.get(`${CLAIMS}/old`)).json.metadata.finalizers?.[0] === 'kubernetes.io/pvc-protection',
      'the claim to be protected',
    )
    const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } }
    await server.post(VOLUMES, { metadata: { name: 'pv' }, spec })
    await server.patch(`${VOLUMES}/pv`, { metadata: { finalizers: ['example.com/hold'] } }, 'merge')
    await waitUntil(
      async () =>
        (await server.get(`${VOLUMES}/pv`)).json.metadata.finalizers?.join() ===
        'example.com/hold,kubernetes.io/pv-protection',
      'the volume to be protected',
    )
  })

  it('PROV-18 deletes the claim of an unassigned pod', async () => {
    await createClaim('wanted')
    await createPod('waiting', 'wanted')
    await server.delete(`${CLAIMS}/wanted`)
    await waitUntil(isDeleted(`${CLAIMS}/wanted`), 'the claim to be deleted')
  })

  it('PROV-18 keeps a volume while it is bound', async () => {
    await server.post(VOLUMES, {
      metadata: { name: 'pv' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/x' },
        claimRef: { namespace: 'default', name: 'c' },
      },
    })
    await server.patch(`${VOLUMES}/pv/status`, { status: { phase: 'Bound' } }, 'merge')
    await server.delete(`${VOLUMES}/pv`)
    await waitUntil(reports('bound to claim default/c'), 'the message to be reported')
    await server.patch(`${VOLUMES}/pv/status`, { status: { phase: 'Released' } }, 'merge')
    await waitUntil(isDeleted(`${VOLUMES}/pv`), 'the volume to be deleted')
  })

  const createClass = (name: string) =>
    server.post(CLASSES, { metadata: { name }, driverName: 'd.example.com', parameters: { iops: '1' } })
  const readFinalizers = async (path: string) => (await server.get(path)).json.metadata.finalizers

  it('VAC-9 retries adding the finalizer to an existing class and removing it', async () => {
    await stop()
    let failures = 2
    start(undefined, (client) => ({
      ...client,
      patch: (...args) => {
        if (args[0].kind === 'VolumeAttributesClass' && failures-- > 0)
          throw new ApiError(500, 'InternalError', 'injected')
        return client.patch(...args)
      },
    }))
    await createClass('gold')
    await server.patch(`${CLASSES}/gold`, { metadata: { finalizers: null } }, 'merge')
    const isProtected = async () => (await readFinalizers(`${CLASSES}/gold`))?.[0] === 'kubernetes.io/vac-protection'
    await waitUntil(isProtected, 'the class to be protected')
    expect(failures).toBe(-1)
    failures = 2
    await server.delete(`${CLASSES}/gold`)
    await waitUntil(isDeleted(`${CLASSES}/gold`), 'the class to be deleted')
    expect(failures).toBe(-1)
  })

  it('VAC-9 adds no finalizer to a class if the feature gate is off', async () => {
    await stop()
    start(undefined, undefined, parseFeatureGates('VolumeAttributesClass=false'))
    await createClass('gold')
    await server.patch(`${CLASSES}/gold`, { metadata: { finalizers: null } }, 'merge')
    await waitUntilIdle()
    expect(await readFinalizers(`${CLASSES}/gold`)).toBeUndefined()
  })

  it('VAC-9 keeps a class while a claim requests it, has it or is being modified to it', async () => {
    await createClass('gold')
    await createClaim('requesting', { volumeAttributesClassName: 'gold' })
    await createClaim('current')
    await createClaim('modifying')
    await server.patch(`${CLAIMS}/current/status`, { status: { currentVolumeAttributesClassName: 'gold' } }, 'merge')
    const modifyVolumeStatus = { targetVolumeAttributesClassName: 'gold', status: 'InProgress' }
    await server.patch(`${CLAIMS}/modifying/status`, { status: { modifyVolumeStatus } }, 'merge')
    await server.delete(`${CLASSES}/gold`)
    for (const name of ['requesting', 'current', 'modifying']) {
      await waitUntil(reports(`used by claim default/${name}`), `the message to name ${name}`)
      await server.delete(`${CLAIMS}/${name}`)
    }
    await waitUntil(isDeleted(`${CLASSES}/gold`), 'the class to be deleted')
  })

  it('VAC-9 deletes a class after its claim has changed to another class', async () => {
    await createClass('gold')
    await createClaim('current')
    await server.patch(`${CLAIMS}/current/status`, { status: { currentVolumeAttributesClassName: 'gold' } }, 'merge')
    await server.delete(`${CLASSES}/gold`)
    await waitUntil(reports('used by claim default/current'), 'the message to be reported')
    await server.patch(`${CLAIMS}/current/status`, { status: { currentVolumeAttributesClassName: 'silver' } }, 'merge')
    await waitUntil(isDeleted(`${CLASSES}/gold`), 'the class to be deleted')
  })

  it('VAC-9 deletes a class after its volume has changed to another class', async () => {
    await createClass('gold')
    await server.post(VOLUMES, {
      metadata: { name: 'pv' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: 'd.example.com', volumeHandle: 'h' },
        volumeAttributesClassName: 'gold',
      },
    })
    await server.delete(`${CLASSES}/gold`)
    await waitUntil(reports('used by volume pv'), 'the message to be reported')
    await server.patch(`${VOLUMES}/pv`, { spec: { volumeAttributesClassName: 'silver' } }, 'merge')
    await waitUntil(isDeleted(`${CLASSES}/gold`), 'the class to be deleted')
  })

  it('VAC-9 keeps the class of a retained volume after the claim was deleted', async () => {
    await createClass('gold')
    expect(await readFinalizers(`${CLASSES}/gold`)).toEqual(['kubernetes.io/vac-protection'])
    const csi = { driver: 'd.example.com', volumeHandle: 'h' }
    const spec = {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi,
      volumeAttributesClassName: 'gold',
    }
    await server.post(VOLUMES, { metadata: { name: 'pv' }, spec })
    await createClaim('requesting', { volumeAttributesClassName: 'gold' })
    await server.delete(`${CLASSES}/gold`)
    await waitUntil(reports('used by claim default/requesting'), 'the message to be reported')
    await server.delete(`${CLAIMS}/requesting`)
    await waitUntil(reports('used by volume pv'), 'the message to change')
    expect((await createClass('gold')).status).toBe(409)
    await server.delete(`${VOLUMES}/pv`)
    await waitUntil(isDeleted(`${CLASSES}/gold`), 'the class to be deleted')
    expect((await createClass('gold')).status).toBe(201)
  })

  it('VAC-1 VAC-9 allows clients to create, read, label, delete and recreate a class, and to delete all classes', async () => {
    const response = await createClass('gold')
    expect(response.status).toBe(201)
    expect((await server.get(`${CLASSES}/gold`)).json).toEqual(response.json)
    const patchResponse = await server.patch(`${CLASSES}/gold`, { metadata: { labels: { patched: 'true' } } })
    expect(patchResponse.json.metadata.labels).toEqual({ patched: 'true' })
    await server.delete(`${CLASSES}/gold`)
    await waitUntil(async () => (await server.get(CLASSES)).json.items.length === 0, 'the classes to be deleted')
    await createClass('gold')
    const { json } = await server.get(`${CLASSES}/gold`)
    json.metadata.labels = { updated: 'true' }
    expect((await server.put(`${CLASSES}/gold`, json)).json.metadata.labels).toEqual({ updated: 'true' })
    await createClass('silver')
    expect((await server.delete(`${CLASSES}?labelSelector=updated%3Dtrue`)).status).toBe(200)
    await waitUntil(isDeleted(`${CLASSES}/gold`), 'the class to be deleted')
    expect((await server.get(`${CLASSES}/silver`)).status).toBe(200)
  })

  it('VAC-9 keeps a class until the last of 500 claims is deleted, without listing claims', async () => {
    await stop()
    const listedKinds: string[] = []
    start(undefined, (client) => ({
      ...client,
      list: (kind, request) => {
        listedKinds.push(kind.kind)
        return client.list(kind, request)
      },
    }))
    await createClass('gold')
    const names = Array.from({ length: 500 }, (_, index) => `claim-${index}`)
    for (const name of names) await createClaim(name, { volumeAttributesClassName: 'gold' })
    await server.delete(`${CLASSES}/gold`)
    await waitUntil(reports('used by claim default/claim-0 and 499 more'), 'the message to be reported')
    for (const name of names.slice(1)) await server.delete(`${CLAIMS}/${name}`)
    await waitUntil(isDeleted(`${CLAIMS}/claim-499`), 'all claims but one to be deleted')
    await waitUntilIdle()
    expect((await server.get(`${CLASSES}/gold`)).status).toBe(200)
    await server.delete(`${CLAIMS}/claim-0`)
    await waitUntil(isDeleted(`${CLASSES}/gold`), 'the class to be deleted')
    expect(new Set(listedKinds)).toEqual(new Set(['Pod'])) // claim protection lists pods
  })
})
