import { setMaxListeners } from 'node:events'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet, type EventRecorder } from '../../runtime/index.ts'
import { createEphemeralController, createEphemeralMetrics, type EphemeralController } from './index.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'

let server: ServerFixture
let controller: EphemeralController
let registry: Registry
let stop: () => Promise<void>
const recordedEvents: string[] = []

beforeEach(async () => {
  server = await createServerFixture()
  recordedEvents.length = 0
  registry = new Registry()
  const events: EventRecorder = {
    record: (_kind, { metadata }, { type, reason, message }) =>
      void recordedEvents.push(`${metadata.name} ${type} ${reason}: ${message}`),
    run: async () => {},
    stats: () => ({ pending: 0, dropped: 0, sent: 0 }),
  }
  const sharedOptions = { client: server.clientOf('ephemeral'), clock: server.clock, random: () => 0.5 }
  const caches = createCacheSet(sharedOptions)
  const abort = new AbortController()
  setMaxListeners(0, abort.signal)
  controller = createEphemeralController({
    ...sharedOptions,
    caches,
    log: silentLog,
    events,
    ephemeralMetrics: createEphemeralMetrics(registry),
  })
  const run = controller.run(abort.signal)
  stop = async () => {
    abort.abort()
    await run
    await caches.stop()
  }
})
afterEach(async () => {
  await stop()
  await server.store.close()
})

async function waitUntil(condition: () => Promise<boolean> | boolean, goal: string): Promise<void> {
  for (let attempt = 0; attempt < 2_000; attempt++) {
    if (await condition()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`still waiting for: ${goal}`)
}
const spec = { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '1Gi' } } }
const exists = (path: string) => async () => (await server.get(path)).status === 200
const createPod = async (name: string, template: object = { spec }) => {
  const ephemeral = { volumeClaimTemplate: template }
  const body = {
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i' }], volumes: [{ name: 'v', ephemeral }] },
  }
  return (await server.post(PODS, body)).json
}

/** Returns a client whose lists and watches return no claims. */
const hideClaims = (client: Client): Client => ({
  ...client,
  list: async (kind, request) => {
    const list = await client.list(kind, request)
    return kind.kind === 'PersistentVolumeClaim' ? { ...list, items: [] } : list
  },
  async *watch(kind, request) {
    for await (const event of client.watch(kind, request)) {
      if (kind.kind !== 'PersistentVolumeClaim' || event.type === 'bookmark') yield event
    }
  },
})

describe('createEphemeralController', () => {
  it('CAP-14 creates a claim from the template and makes the pod its owner', async () => {
    const pod = await createPod('web', { metadata: { labels: { a: '1' }, annotations: { b: '2' } }, spec })
    await waitUntil(exists(`${CLAIMS}/web-v`), 'the claim to be created')
    const { metadata, spec: createdSpec } = (await server.get(`${CLAIMS}/web-v`)).json
    expect(metadata.labels).toEqual({ a: '1' })
    expect(metadata.annotations).toEqual({ b: '2' })
    expect(metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: pod.metadata.uid, controller: true, blockOwnerDeletion: true },
    ])
    expect(createdSpec).toMatchObject(spec)
    expect(await registry.getSingleMetricAsString('ephemeral_volume_controller_create_total')).toMatch(
      /create_total 1$/m,
    )
  })

  it('CAP-14 does not change a claim that the pod does not own, and records an event', async () => {
    await server.post(CLAIMS, { metadata: { name: 'web-v', annotations: { user: 'alice' } }, spec })
    await createPod('web')
    await waitUntil(() => recordedEvents.length > 0, 'the event to be recorded')
    expect(recordedEvents).toEqual([
      'web Warning FailedBinding: ephemeral volume v: PVC default/web-v was not created for pod default/web (pod is not owner)',
    ])
    const { metadata } = (await server.get(`${CLAIMS}/web-v`)).json
    expect([metadata.annotations, metadata.ownerReferences]).toEqual([{ user: 'alice' }, undefined])
    expect(controller.queues[0]?.stateOf('default/web')).toMatchObject({ is: 'stuck' })
    await server.patch(`${CLAIMS}/web-v`, { metadata: { finalizers: null } }, 'merge')
    await server.delete(`${CLAIMS}/web-v`)
    await waitUntil(
      async () => (await server.get(`${CLAIMS}/web-v`)).json.metadata?.ownerReferences !== undefined,
      'a new claim to be created',
    )
  })

  it('CAP-14 reads a claim that exists but is not in its cache yet', async () => {
    await stop()
    const client = server.clientOf('ephemeral')
    const caches = createCacheSet({ client: hideClaims(client), clock: server.clock, random: () => 0.5 })
    const abort = new AbortController()
    const sharedOptions = { client, clock: server.clock, random: () => 0.5, log: silentLog }
    controller = createEphemeralController({ ...sharedOptions, caches })
    const run = controller.run(abort.signal)
    stop = async () => {
      abort.abort()
      await run
      await caches.stop()
    }
    await server.post(CLAIMS, { metadata: { name: 'web-v' }, spec })
    await createPod('web')
    await waitUntil(() => controller.queues[0]?.stateOf('default/web')?.is === 'stuck', 'the pod to wait')
    expect(controller.queues[0]?.stateOf('default/web')?.message).toContain('was not created for pod default/web')
  })

  it('CAP-14 ignores a claim of the same name in another namespace', async () => {
    await server.post('/api/v1/namespaces', { metadata: { name: 'other' } })
    await server.post('/api/v1/namespaces/other/persistentvolumeclaims', { metadata: { name: 'web-v' }, spec })
    await createPod('web')
    await waitUntil(exists(`${CLAIMS}/web-v`), 'the claim to be created')
    expect(recordedEvents).toEqual([])
  })

  it('CAP-14 recreates a deleted claim while the pod exists', async () => {
    await createPod('web')
    await waitUntil(exists(`${CLAIMS}/web-v`), 'the claim to be created')
    const { uid } = (await server.get(`${CLAIMS}/web-v`)).json.metadata
    await server.patch(`${CLAIMS}/web-v`, { metadata: { finalizers: null } }, 'merge')
    await server.delete(`${CLAIMS}/web-v`)
    const currentUid = async () => (await server.get(`${CLAIMS}/web-v`)).json.metadata?.uid
    await waitUntil(async () => ![undefined, uid].includes(await currentUid()), 'another claim to be created')
  })

  it('CAP-14 records an event if a quota rejects the claim, and creates the claim after the quota is raised', async () => {
    const quotas = '/api/v1/namespaces/default/resourcequotas'
    await server.post(quotas, { metadata: { name: 'team' }, spec: { hard: { persistentvolumeclaims: '0' } } })
    await createPod('p')
    await waitUntil(() => recordedEvents.length > 0, 'the event to be recorded')
    expect(recordedEvents[0]).toBe(
      'p Warning FailedBinding: ephemeral volume v: create PVC p-v: persistentvolumeclaims "p-v" is forbidden: ' +
        'exceeded quota: team, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0',
    )
    await server.patch(`${quotas}/team`, { spec: { hard: { persistentvolumeclaims: '1' } } }, 'merge')
    const isCreated = exists(`${CLAIMS}/p-v`)
    await waitUntil(async () => {
      await server.clock.advance(1_000)
      return isCreated()
    }, 'the claim to be created')
  })
})
