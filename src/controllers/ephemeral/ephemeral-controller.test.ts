import { setMaxListeners } from 'node:events'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { inProcessClient, SYSTEM_USER } from '../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createCacheSet, type EventRecorder } from '../../runtime/index.ts'
import { createEphemeralController, createEphemeralMetrics, type EphemeralController } from './index.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'

let trial: ServerFixture
let controller: EphemeralController
let registry: Registry
let stop: () => Promise<void>
const told: string[] = []

beforeEach(async () => {
  trial = await createServerFixture()
  told.length = 0
  registry = new Registry()
  const events: EventRecorder = {
    record: (_kind, { metadata }, { type, reason, message }) =>
      void told.push(`${metadata.name} ${type} ${reason}: ${message}`),
    run: async () => {},
    stats: () => ({ pending: 0, dropped: 0, sent: 0 }),
  }
  const common = { client: inProcessClient(trial.server.objects, SYSTEM_USER), clock: trial.clock, random: () => 0.5 }
  const caches = createCacheSet(common)
  const abort = new AbortController()
  setMaxListeners(0, abort.signal)
  controller = createEphemeralController({
    ...common,
    caches,
    log: silentLog,
    events,
    ephemeralMetrics: createEphemeralMetrics(registry),
  })
  const running = controller.run(abort.signal)
  stop = async () => {
    abort.abort()
    await running
    await caches.stop()
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
  }
  throw new Error(`still waiting for: ${what}`)
}
const spec = { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '1Gi' } } }
const exists = (path: string) => async () => (await trial.get(path)).status === 200
const aPod = async (name: string, template: object = { spec }) => {
  const ephemeral = { volumeClaimTemplate: template }
  const body = {
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i' }], volumes: [{ name: 'v', ephemeral }] },
  }
  return (await trial.post(PODS, body)).json
}

describe('ephemeral volumes', () => {
  it('CAP-14 become claims made from the template and owned by the pod', async () => {
    const pod = await aPod('web', { metadata: { labels: { a: '1' }, annotations: { b: '2' } }, spec })
    await until(exists(`${CLAIMS}/web-v`), 'the claim')
    const { metadata, spec: made } = (await trial.get(`${CLAIMS}/web-v`)).json
    expect(metadata.labels).toEqual({ a: '1' })
    expect(metadata.annotations).toEqual({ b: '2' })
    expect(metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: pod.metadata.uid, controller: true, blockOwnerDeletion: true },
    ])
    expect(made).toMatchObject(spec)
    expect(await registry.getSingleMetricAsString('ephemeral_volume_controller_create_total')).toMatch(
      /create_total 1$/m,
    )
  })

  it('CAP-14 a claim that was not made for the pod is neither taken nor touched, and the pod is told', async () => {
    await trial.post(CLAIMS, { metadata: { name: 'web-v', annotations: { mine: 'yes' } }, spec })
    await aPod('web')
    await until(() => told.length > 0, 'the event')
    expect(told).toEqual([
      'web Warning FailedBinding: ephemeral volume v: PVC default/web-v was not created for pod default/web (pod is not owner)',
    ])
    const { metadata } = (await trial.get(`${CLAIMS}/web-v`)).json
    expect([metadata.annotations, metadata.ownerReferences]).toEqual([{ mine: 'yes' }, undefined])
    expect(controller.queues[0]?.standing('default/web')).toMatchObject({ is: 'stuck' })
    await trial.patch(`${CLAIMS}/web-v`, { metadata: { finalizers: null } }, 'merge')
    await trial.delete(`${CLAIMS}/web-v`)
    await until(
      async () => (await trial.get(`${CLAIMS}/web-v`)).json.metadata?.ownerReferences !== undefined,
      'a new claim',
    )
  })

  it('CAP-14 a claim of the same name in another namespace is nobody’s business', async () => {
    await trial.post('/api/v1/namespaces', { metadata: { name: 'other' } })
    await trial.post('/api/v1/namespaces/other/persistentvolumeclaims', { metadata: { name: 'web-v' }, spec })
    await aPod('web')
    await until(exists(`${CLAIMS}/web-v`), 'the claim')
    expect(told).toEqual([])
  })

  it('CAP-14 a claim that goes is made again, while the pod is there', async () => {
    await aPod('web')
    await until(exists(`${CLAIMS}/web-v`), 'the claim')
    const { uid } = (await trial.get(`${CLAIMS}/web-v`)).json.metadata
    await trial.patch(`${CLAIMS}/web-v`, { metadata: { finalizers: null } }, 'merge')
    await trial.delete(`${CLAIMS}/web-v`)
    const now = async () => (await trial.get(`${CLAIMS}/web-v`)).json.metadata?.uid
    await until(async () => ![undefined, uid].includes(await now()), 'another claim')
  })

  it('SYS-4 a claim that a quota refuses is told on the pod, and made once there is room', async () => {
    const quotas = '/api/v1/namespaces/default/resourcequotas'
    await trial.post(quotas, { metadata: { name: 'team' }, spec: { hard: { persistentvolumeclaims: '0' } } })
    await aPod('p')
    await until(() => told.length > 0, 'a word')
    expect(told[0]).toBe(
      'p Warning FailedBinding: ephemeral volume v: create PVC p-v: persistentvolumeclaims "p-v" is forbidden: ' +
        'exceeded quota: team, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0',
    )
    await trial.patch(`${quotas}/team`, { spec: { hard: { persistentvolumeclaims: '1' } } }, 'merge')
    const isThere = exists(`${CLAIMS}/p-v`)
    await until(async () => {
      await trial.clock.advance(1_000)
      return isThere()
    }, 'the claim')
  })
})
