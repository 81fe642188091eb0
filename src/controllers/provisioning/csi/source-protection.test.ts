import { describe, expect, it, onTestFinished } from 'vitest'
import { authorizeUnservedKinds } from '../../../apiserver/rbac/component-access.fixture.ts'
import { createServerFixture } from '../../../apiserver/server.fixture.ts'
import { silentLog } from '../../../base/log.ts'
import type { Client } from '../../../client/index.ts'
import { GUARDED_CACHES } from '../../../processes/pruned-fields.fixture.ts'
import { createCacheSet } from '../../../runtime/index.ts'
import { SNAPSHOT_GROUP } from './snapshot-kinds.ts'
import { createSourceProtection } from './source-protection.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const CLONE_FINALIZER = 'provisioner.storage.kubernetes.io/cloning-protection'
const SNAPSHOT_FINALIZER = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection'

async function start(wrapClient: (client: Client) => Client = (client) => client) {
  const apiServer = await createServerFixture()
  const client = authorizeUnservedKinds(wrapClient(apiServer.clientOf('provisioner')), 'provisioner')
  const deps = { client, clock: apiServer.clock, random: () => 0.5, log: silentLog }
  const caches = createCacheSet({ ...deps, reductions: GUARDED_CACHES })
  const protection = createSourceProtection({ ...deps, caches })
  const abort = new AbortController()
  const run = protection.run(abort.signal)
  onTestFinished(async () => {
    abort.abort()
    await run
    await caches.stop()
    await apiServer.store.close()
  })
  return {
    apiServer,
    stuckMessages: () => protection.queues.flatMap((queue) => queue.states().map(({ message }) => message ?? '')),
    waitUntil: apiServer.waitUntil,
  }
}

const claimSpec = (overrides: object = {}) => ({
  accessModes: ['ReadWriteOnce'],
  resources: { requests: { storage: '1Gi' } },
  storageClassName: 'fast',
  ...overrides,
})

describe('createSourceProtection', () => {
  it('releases a deleted source after the clone is bound', async () => {
    const { apiServer, waitUntil, stuckMessages } = await start()
    await apiServer.post(CLAIMS, { metadata: { name: 'source', finalizers: [CLONE_FINALIZER] }, spec: claimSpec() })
    const dataSource = { kind: 'PersistentVolumeClaim', name: 'source' }
    await apiServer.post(CLAIMS, { metadata: { name: 'copy' }, spec: claimSpec({ dataSource }) })
    await apiServer.delete(`${CLAIMS}/source`)
    await apiServer.patch(`${CLAIMS}/source`, { metadata: { finalizers: [CLONE_FINALIZER] } }, 'merge') // removes pvc-protection
    await waitUntil(
      () => stuckMessages().includes('claim default/copy is being cloned from claim default/source'),
      'the message to be reported',
    )
    expect((await apiServer.get(`${CLAIMS}/source`)).status).toBe(200)
    await apiServer.patch(`${CLAIMS}/copy/status`, { status: { phase: 'Bound' } }, 'merge')
    await waitUntil(async () => (await apiServer.get(`${CLAIMS}/source`)).status === 404, 'the source to be deleted')
  })

  it('releases a deleted source after the cloning claim is deleted', async () => {
    const { apiServer, waitUntil } = await start()
    const dataSource = { kind: 'PersistentVolumeClaim', name: 'source' }
    await apiServer.post(CLAIMS, { metadata: { name: 'kept', finalizers: [CLONE_FINALIZER] }, spec: claimSpec() })
    await apiServer.post(CLAIMS, { metadata: { name: 'source', finalizers: [CLONE_FINALIZER] }, spec: claimSpec() })
    await apiServer.post(CLAIMS, { metadata: { name: 'copy' }, spec: claimSpec({ dataSource }) })
    await apiServer.delete(`${CLAIMS}/source`)
    await apiServer.patch(`${CLAIMS}/source`, { metadata: { finalizers: [CLONE_FINALIZER] } }, 'merge')
    await apiServer.delete(`${CLAIMS}/copy`)
    await apiServer.patch(`${CLAIMS}/copy`, { metadata: { finalizers: null } }, 'merge')
    await waitUntil(async () => (await apiServer.get(`${CLAIMS}/source`)).status === 404, 'the source to be deleted')
    expect((await apiServer.get(`${CLAIMS}/kept`)).json.metadata.finalizers).toContain(CLONE_FINALIZER)
  })

  it('releases a snapshot after the restore, and a snapshot with a leftover finalizer', async () => {
    const aProtectedSnapshot = (name: string) => ({
      metadata: { name, namespace: 'default', uid: name, resourceVersion: '1', finalizers: [SNAPSHOT_FINALIZER] },
    })
    const snapshots = new Map<string, any>([['left-over', aProtectedSnapshot('left-over')]])
    const wrapClient = (client: Client): Client => ({
      ...client,
      serves: async (kind) => kind.group === SNAPSHOT_GROUP || client.serves(kind),
      get: async (kind: any, ref: any, options: any) =>
        kind.group === SNAPSHOT_GROUP ? snapshots.get(ref.name) : client.get(kind, ref, options),
      list: async (kind: any, request: any) =>
        kind.group === SNAPSHOT_GROUP
          ? { items: [...snapshots.values()], resourceVersion: '1' }
          : (client.list(kind, request) as any),
      patch: async (kind: any, ref: any, patch: any, options: any) => {
        if (kind.group !== SNAPSHOT_GROUP) return client.patch(kind, ref, patch, options)
        const { metadata } = snapshots.get(ref.name)
        snapshots.set(ref.name, { metadata: { ...metadata, finalizers: patch.body.metadata.finalizers ?? [] } })
        return snapshots.get(ref.name)
      },
    })
    const { apiServer, waitUntil, stuckMessages } = await start(wrapClient)
    const dataSource = { apiGroup: SNAPSHOT_GROUP, kind: 'VolumeSnapshot', name: 'snap' }
    await apiServer.post(CLAIMS, { metadata: { name: 'restored' }, spec: claimSpec({ dataSource }) })
    snapshots.set('snap', aProtectedSnapshot('snap')) // as set by the provisioner before CreateVolume
    const isProtected = (name: string) => snapshots.get(name).metadata.finalizers.length > 0
    await waitUntil(
      () => stuckMessages().includes('claim default/restored is being restored from snapshot default/snap'),
      'the message to be reported',
    )
    await waitUntil(() => !isProtected('left-over'), 'the leftover snapshot to be released')
    expect(isProtected('snap')).toBe(true)
    await apiServer.patch(`${CLAIMS}/restored/status`, { status: { phase: 'Bound' } }, 'merge')
    await waitUntil(() => !isProtected('snap'), 'the snapshot to be released')
  })
})
