import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { allGatesOn, type FeatureGates, parseFeatureGates } from '../../api/feature-gates.ts'
import { ApiError } from '../../api/status-error.ts'
import { inProcessClient, SYSTEM_USER } from '../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { createProtectionControllers } from './protection-controller.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const VOLUMES = '/api/v1/persistentvolumes'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'

let trial: ServerFixture
let stop: () => Promise<void>
let standings: () => string[]
let isBusy: () => boolean

beforeEach(async () => {
  trial = await createServerFixture()
  start()
})

const asItIs = (client: Client) => client

function start(seenBy = asItIs, writtenBy = asItIs, gates: FeatureGates = allGatesOn): void {
  const abort = new AbortController()
  const real = inProcessClient(trial.server.objects, SYSTEM_USER)
  const client = writtenBy(real)
  const common = { clock: trial.clock, random: () => 0.5, log: silentLog }
  const caches = createCacheSet({ ...common, client: seenBy(real) })
  const controllers = createProtectionControllers({ ...common, client, caches, gates })
  const running = controllers.run(abort.signal)
  isBusy = () => controllers.queues.some((queue) => queue.stats().depth + queue.stats().running > 0)
  standings = () => controllers.queues.flatMap((queue) => queue.standings().map(({ because }) => because ?? ''))
  stop = () => {
    abort.abort()
    return running.then(() => caches.stop())
  }
}

/** A client whose watches of pods show none. */
const blindToPods = (client: Client): Client => ({
  ...client,
  watch: (kind, request) => (kind.kind === 'Pod' ? nothing(request.signal) : client.watch(kind, request)),
})

async function* nothing(signal: AbortSignal): AsyncGenerator<any> {
  yield { type: 'bookmark', resourceVersion: '1', endsInitialEvents: true }
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

afterEach(async () => {
  await stop()
  await trial.store.close()
})

const until: ServerFixture['until'] = (condition, what) => trial.until(condition, what)
/** Nothing is being worked on, and nothing comes by itself. */
async function untilQuiet(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (isBusy()) turns = 0
  }
}
const isGone = (path: string) => async () => (await trial.get(path)).status === 404
const says = (text: string) => () => standings().some((because) => because.includes(text))

const aClaim = (name: string, extra: object = {}, metadata: object = {}) =>
  trial.post(CLAIMS, {
    metadata: { name, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...extra },
  })
const aPod = (name: string, claimName: string, nodeName?: string) =>
  trial.post(PODS, {
    metadata: { name },
    spec: {
      ...(nodeName ? { nodeName } : {}),
      containers: [{ name: 'c', image: 'i' }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
    },
  })

describe('protection', () => {
  it('PROV-18 a claim that nothing uses goes at once', async () => {
    await aClaim('free')
    await trial.delete(`${CLAIMS}/free`)
    await until(isGone(`${CLAIMS}/free`), 'the claim to go')
  })

  it('PROV-18 a claim stays while a pod on a node names it, also when that has ended, and goes with the pod', async () => {
    await aClaim('used')
    await aPod('user', 'used', 'node-1')
    await trial.delete(`${CLAIMS}/used`)
    await until(says('used by the pod default/user'), 'the reason')
    expect((await trial.get(`${CLAIMS}/used`)).json.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
    await trial.patch(`${PODS}/user/status`, { status: { phase: 'Succeeded' } }, 'merge')
    await trial.patch(`${CLAIMS}/used`, { metadata: { labels: { look: 'again' } } }, 'merge')
    await untilQuiet()
    expect((await trial.get(`${CLAIMS}/used`)).json.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
    await trial.delete(`${PODS}/user`, { gracePeriodSeconds: 0 })
    await until(isGone(`${CLAIMS}/used`), 'the claim to go')
  })

  it('PROV-18 a claim made from a template stays while its own pod does, and not for another pod of that name', async () => {
    const ephemeral = {
      volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
    }
    const pod = await trial.post(PODS, {
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
    await aClaim('p-own', {}, { ownerReferences: [{ ...owner, uid: pod.json.metadata.uid }] })
    await aClaim('p-other', {}, { ownerReferences: [{ ...owner, uid: 'another' }] })
    await trial.delete(`${CLAIMS}/p-own`)
    await trial.delete(`${CLAIMS}/p-other`)
    await until(isGone(`${CLAIMS}/p-other`), 'the claim that is not the pod’s to go')
    await until(says('used by the pod default/p'), 'the reason')
    // Shut down, but held back itself: perhaps by someone who waits for the claim.
    await trial.delete(`${PODS}/p`, { gracePeriodSeconds: 0 })
    await until(isGone(`${CLAIMS}/p-own`), 'the claim of the pod that was shut down to go')
    expect((await trial.get(`${PODS}/p`)).status).toBe(200)
  })

  it('PROV-18 a pod that only the server knows of yet holds its claim', async () => {
    await stop()
    start(blindToPods)
    await aClaim('used')
    await aPod('late', 'used', 'node-1')
    await trial.delete(`${CLAIMS}/used`)
    await until(says('used by the pod default/late'), 'the reason')
    expect((await trial.get(`${CLAIMS}/used`)).status).toBe(200)
  })

  it('PROV-18 claims and volumes from before the rule get their finalizer', async () => {
    await aClaim('old')
    await trial.patch(`${CLAIMS}/old`, { metadata: { finalizers: null } }, 'merge')
    await until(
      async () => (await trial.get(`${CLAIMS}/old`)).json.metadata.finalizers?.[0] === 'kubernetes.io/pvc-protection',
      'the claim to be protected',
    )
    const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } }
    await trial.post(VOLUMES, { metadata: { name: 'pv' }, spec })
    await trial.patch(`${VOLUMES}/pv`, { metadata: { finalizers: ['example.com/hold'] } }, 'merge')
    await until(
      async () =>
        (await trial.get(`${VOLUMES}/pv`)).json.metadata.finalizers?.join() ===
        'example.com/hold,kubernetes.io/pv-protection',
      'the volume to be protected',
    )
  })

  it('PROV-18 a pod that no node has been given does not hold its claim', async () => {
    await aClaim('wanted')
    await aPod('waiting', 'wanted')
    await trial.delete(`${CLAIMS}/wanted`)
    await until(isGone(`${CLAIMS}/wanted`), 'the claim to go')
  })

  it('PROV-18 a volume stays while it is bound, and goes when it is released', async () => {
    await trial.post(VOLUMES, {
      metadata: { name: 'pv' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/x' },
        claimRef: { namespace: 'default', name: 'c' },
      },
    })
    await trial.patch(`${VOLUMES}/pv/status`, { status: { phase: 'Bound' } }, 'merge')
    await trial.delete(`${VOLUMES}/pv`)
    await until(says('bound to the claim default/c'), 'the reason')
    await trial.patch(`${VOLUMES}/pv/status`, { status: { phase: 'Released' } }, 'merge')
    await until(isGone(`${VOLUMES}/pv`), 'the volume to go')
  })

  const aClass = (name: string) =>
    trial.post(CLASSES, { metadata: { name }, driverName: 'd.example.com', parameters: { iops: '1' } })
  const finalizersOf = async (path: string) => (await trial.get(path)).json.metadata.finalizers

  it('VAC-9 (62) a class from before the rule gets its finalizer, however often the write fails', async () => {
    await stop()
    let failures = 2
    start(undefined, (client) => ({
      ...client,
      patch: (...args) => {
        if (args[0].kind === 'VolumeAttributesClass' && failures-- > 0) throw new ApiError(500, 'InternalError', 'no')
        return client.patch(...args)
      },
    }))
    await aClass('gold')
    await trial.patch(`${CLASSES}/gold`, { metadata: { finalizers: null } }, 'merge')
    const isProtected = async () => (await finalizersOf(`${CLASSES}/gold`))?.[0] === 'kubernetes.io/vac-protection'
    await until(isProtected, 'the class to be protected')
    expect(failures).toBe(-1)
    failures = 2
    await trial.delete(`${CLASSES}/gold`)
    await until(isGone(`${CLASSES}/gold`), 'the class to go')
    expect(failures).toBe(-1)
  })

  it('VAC-9 (59) with the gate off a class is left as it is', async () => {
    await stop()
    start(undefined, undefined, parseFeatureGates('VolumeAttributesClass=false'))
    await aClass('gold')
    await trial.patch(`${CLASSES}/gold`, { metadata: { finalizers: null } }, 'merge')
    await untilQuiet()
    expect(await finalizersOf(`${CLASSES}/gold`)).toBeUndefined()
  })

  it('VAC-9 (63, 64) a class stays while a claim has, had or wants it, and goes with the last one', async () => {
    await aClass('gold')
    await aClaim('asks', { volumeAttributesClassName: 'gold' })
    await aClaim('had')
    await aClaim('moves')
    await trial.patch(`${CLAIMS}/had/status`, { status: { currentVolumeAttributesClassName: 'gold' } }, 'merge')
    const modifyVolumeStatus = { targetVolumeAttributesClassName: 'gold', status: 'InProgress' }
    await trial.patch(`${CLAIMS}/moves/status`, { status: { modifyVolumeStatus } }, 'merge')
    await trial.delete(`${CLASSES}/gold`)
    for (const name of ['asks', 'had', 'moves']) {
      await until(says(`used by the claim default/${name}`), `the reason ${name}`)
      await trial.delete(`${CLAIMS}/${name}`)
    }
    await until(isGone(`${CLASSES}/gold`), 'the class to go')
  })

  it('VAC-9 (64) a claim that moves to another class lets go of the one before', async () => {
    await aClass('gold')
    await aClaim('had')
    await trial.patch(`${CLAIMS}/had/status`, { status: { currentVolumeAttributesClassName: 'gold' } }, 'merge')
    await trial.delete(`${CLASSES}/gold`)
    await until(says('used by the claim default/had'), 'the reason')
    await trial.patch(`${CLAIMS}/had/status`, { status: { currentVolumeAttributesClassName: 'silver' } }, 'merge')
    await until(isGone(`${CLASSES}/gold`), 'the class to go')
  })

  it('VAC-9 (63, 64) a volume that gets another class lets go of the one before', async () => {
    await aClass('gold')
    await trial.post(VOLUMES, {
      metadata: { name: 'pv' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: 'd.example.com', volumeHandle: 'h' },
        volumeAttributesClassName: 'gold',
      },
    })
    await trial.delete(`${CLASSES}/gold`)
    await until(says('used by the volume pv'), 'the reason')
    await trial.patch(`${VOLUMES}/pv`, { spec: { volumeAttributesClassName: 'silver' } }, 'merge')
    await until(isGone(`${CLASSES}/gold`), 'the class to go')
  })

  it('VAC-9 (65) a class stays for a retained volume after its claim is gone, and goes with the volume', async () => {
    await aClass('gold')
    expect(await finalizersOf(`${CLASSES}/gold`)).toEqual(['kubernetes.io/vac-protection'])
    const csi = { driver: 'd.example.com', volumeHandle: 'h' }
    const spec = {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi,
      volumeAttributesClassName: 'gold',
    }
    await trial.post(VOLUMES, { metadata: { name: 'pv' }, spec })
    await aClaim('asks', { volumeAttributesClassName: 'gold' })
    await trial.delete(`${CLASSES}/gold`)
    await until(says('used by the claim default/asks'), 'the reason')
    await trial.delete(`${CLAIMS}/asks`)
    await until(says('used by the volume pv'), 'the other reason')
    expect((await aClass('gold')).status).toBe(409)
    await trial.delete(`${VOLUMES}/pv`)
    await until(isGone(`${CLASSES}/gold`), 'the class to go')
    expect((await aClass('gold')).status).toBe(201)
  })

  it('VAC-1 VAC-9 (67) a class through its whole life: made, read, labelled, deleted, made anew, and all of them deleted', async () => {
    const made = await aClass('gold')
    expect(made.status).toBe(201)
    expect((await trial.get(`${CLASSES}/gold`)).json).toEqual(made.json)
    const labelled = await trial.patch(`${CLASSES}/gold`, { metadata: { labels: { patched: 'true' } } })
    expect(labelled.json.metadata.labels).toEqual({ patched: 'true' })
    await trial.delete(`${CLASSES}/gold`)
    await until(async () => (await trial.get(CLASSES)).json.items.length === 0, 'none to be left')
    await aClass('gold')
    const { json } = await trial.get(`${CLASSES}/gold`)
    json.metadata.labels = { updated: 'true' }
    expect((await trial.put(`${CLASSES}/gold`, json)).json.metadata.labels).toEqual({ updated: 'true' })
    await aClass('silver')
    expect((await trial.delete(`${CLASSES}?labelSelector=updated%3Dtrue`)).status).toBe(200)
    await until(isGone(`${CLASSES}/gold`), 'the class to go')
    expect((await trial.get(`${CLASSES}/silver`)).status).toBe(200)
  })

  it('VAC-9 500 claims of one class hold it until the last one goes, and nothing is listed for it', async () => {
    await stop()
    const listed: string[] = []
    start(undefined, (client) => ({
      ...client,
      list: (kind, request) => {
        listed.push(kind.kind)
        return client.list(kind, request)
      },
    }))
    await aClass('gold')
    const names = Array.from({ length: 500 }, (_, index) => `claim-${index}`)
    for (const name of names) await aClaim(name, { volumeAttributesClassName: 'gold' })
    await trial.delete(`${CLASSES}/gold`)
    await until(says('used by the claim default/claim-0 and 499 more'), 'the reason')
    for (const name of names.slice(1)) await trial.delete(`${CLAIMS}/${name}`)
    await until(isGone(`${CLAIMS}/claim-499`), 'all claims but one to go')
    await untilQuiet()
    expect((await trial.get(`${CLASSES}/gold`)).status).toBe(200)
    await trial.delete(`${CLAIMS}/claim-0`)
    await until(isGone(`${CLASSES}/gold`), 'the class to go')
    expect(new Set(listed)).toEqual(new Set(['Pod'])) // for claims: a pod may have come a moment ago
  })
})
