import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SYSTEM_USER } from '../../apiserver/index.ts'
import { startTrial, type TrialServer } from '../../apiserver/server-trial.ts'
import { silentLog } from '../../base/log.ts'
import { inProcessClient } from '../../client/index.ts'
import { createProtectionControllers } from './protection-controller.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const VOLUMES = '/api/v1/persistentvolumes'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'

let trial: TrialServer
let stop: () => Promise<void>
let standings: () => string[]

beforeEach(async () => {
  trial = await startTrial()
  const abort = new AbortController()
  const client = inProcessClient(trial.server.objects, SYSTEM_USER)
  const controllers = createProtectionControllers({ client, clock: trial.clock, random: () => 0.5, log: silentLog })
  const running = controllers.run(abort.signal)
  standings = () => controllers.queues.flatMap((queue) => queue.standings().map(({ because }) => because ?? ''))
  stop = () => {
    abort.abort()
    return running
  }
})
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
const isGone = (path: string) => async () => (await trial.get(path)).status === 404
const says = (text: string) => () => standings().some((because) => because.includes(text))

const aClaim = (name: string, extra: object = {}) =>
  trial.post(CLAIMS, {
    metadata: { name },
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

  it('PROV-18 a claim stays while a running pod names it, says so, and goes when the pod ends', async () => {
    await aClaim('used')
    await aPod('user', 'used', 'node-1')
    await trial.delete(`${CLAIMS}/used`)
    await until(says('used by the pod default/user'), 'the reason')
    expect((await trial.get(`${CLAIMS}/used`)).json.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
    await trial.patch(`${PODS}/user/status`, { status: { phase: 'Succeeded' } }, 'merge')
    await until(isGone(`${CLAIMS}/used`), 'the claim to go')
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
