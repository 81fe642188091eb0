import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SYSTEM_USER } from '../../apiserver/index.ts'
import { startTrial, type TrialServer } from '../../apiserver/server-trial.ts'
import { silentLog } from '../../base/log.ts'
import { type Client, createCacheSet, inProcessClient } from '../../client/index.ts'
import { createProtectionControllers } from './protection-controller.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const VOLUMES = '/api/v1/persistentvolumes'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'

let trial: TrialServer
let stop: () => Promise<void>
let standings: () => string[]
let isBusy: () => boolean

beforeEach(async () => {
  trial = await startTrial()
  start()
})

function start(seenBy: (client: Client) => Client = (client) => client): void {
  const abort = new AbortController()
  const client = inProcessClient(trial.server.objects, SYSTEM_USER)
  const common = { clock: trial.clock, random: () => 0.5, log: silentLog }
  const caches = createCacheSet({ ...common, client: seenBy(client) })
  const controllers = createProtectionControllers({ ...common, client, caches })
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

async function until(condition: () => Promise<boolean> | boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 2_000; turn++) {
    if (await condition()) return
    await new Promise((resolve) => setImmediate(resolve))
    if (turn % 50 === 49) await trial.clock.advance(1_000)
  }
  throw new Error(`still waiting for: ${what}`)
}
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

  it('VAC-9 a class stays while a claim has, had or wants it, and goes with the last one', async () => {
    await trial.post(CLASSES, { metadata: { name: 'gold' }, driverName: 'd.example.com', parameters: { iops: '1' } })
    await aClaim('asks', { volumeAttributesClassName: 'gold' })
    await aClaim('had')
    await trial.patch(`${CLAIMS}/had/status`, { status: { currentVolumeAttributesClassName: 'gold' } }, 'merge')
    await trial.delete(`${CLASSES}/gold`)
    await until(says('used by the claim default/asks'), 'the reason')
    await trial.delete(`${CLAIMS}/asks`)
    await until(says('used by the claim default/had'), 'the other reason')
    await trial.delete(`${CLAIMS}/had`)
    await until(isGone(`${CLASSES}/gold`), 'the class to go')
  })
})
