// Tests the controller of lost volumes on an API server. The tests write the taints and conditions of a lost node, which the
// node-lifecycle controllers otherwise write.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { OUT_OF_SERVICE_TAINT } from '../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { parseLostVolumePolicy } from '../../volumes/lost-volume-policy.ts'
import { EXTERNAL_PROVISIONER_FINALIZER } from '../../volumes/names.ts'
import { createLostVolumesController } from './lost-volumes.ts'
import { VOLUME_LOST } from './plan-lost-volume.ts'

const NAMESPACE = 'default'
/** `npm run prove` uses 1,000. */
const LOST_VOLUMES = Number(process.env.LOST_VOLUMES ?? 100)
const KEY = 'topology.example.com/node'

let server: ServerFixture
let admin: Client
let requests: string[]
/** Called before each get of the controller. */
let beforeGet: (() => Promise<void>) | undefined
let stop: () => Promise<void>
beforeEach(async () => {
  server = await createServerFixture()
  admin = server.client()
  requests = []
  beforeGet = undefined
  stop = async () => {}
})
afterEach(async () => {
  await stop()
  await server.store.close()
})

async function settle(): Promise<void> {
  for (let turn = 0; turn < 80; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const advance = async (ms: number) => {
  await server.clock.advance(ms)
  await settle()
}

function start(defaultPolicy?: string) {
  const { clock } = server
  const client = recordRequests(server.clientOf('lost-volumes'))
  const caches = createCacheSet({ client, clock, random: () => 0.5 })
  const parsed = defaultPolicy === undefined ? undefined : parseLostVolumePolicy(defaultPolicy)
  const controller = createLostVolumesController({
    client,
    caches,
    clock,
    random: () => 0.5,
    log: silentLog,
    ...(parsed?.is === 'policy' ? { defaultPolicy: parsed.policy } : {}),
  })
  const abort = new AbortController()
  const run = controller.run(abort.signal)
  stop = async () => {
    abort.abort()
    await run
    await caches.stop()
  }
  return { stateOf: (name: string) => controller.queues[0]!.stateOf(name) }
}

function recordRequests(client: Client): Client {
  const recorded =
    (verb: 'get' | 'patch' | 'delete') =>
    async (kind: any, ref: any, ...rest: any[]) => {
      if (verb === 'get') await beforeGet?.()
      requests.push(`${verb} ${kind.kind} ${ref.name}`)
      return (client[verb] as any)(kind, ref, ...rest)
    }
  return { ...client, get: recorded('get'), patch: recorded('patch'), delete: recorded('delete') }
}

const createNode = (name: string) => admin.create(nodeKind, { metadata: { name, labels: { [KEY]: name } } } as never)

async function setLost(name: string, isLost: boolean): Promise<void> {
  const taints = isLost ? [{ key: OUT_OF_SERVICE_TAINT, effect: 'NoExecute' }] : []
  await admin.patch(nodeKind, { name }, { type: 'merge', body: { spec: { taints } } })
  const lastTransitionTime = timestamp(server.clock.nowMs())
  const conditions = [
    { type: 'Ready', status: isLost ? 'Unknown' : 'True', lastTransitionTime },
    { type: 'Lost', status: isLost ? 'True' : 'False', lastTransitionTime },
  ]
  await admin.patch(nodeKind, { name }, { type: 'merge', body: { status: { conditions } } }, { subresource: 'status' })
  await settle()
}

const createClass = (name: string, policy?: string) =>
  admin.create(storageClassKind, {
    metadata: { name, ...(policy === undefined ? {} : { annotations: { 'stowage.dev/lost-volume-policy': policy } }) },
    provisioner: 'disks.example.com',
  })

/** Creates a claim that is bound to a volume of the same name, which only these nodes reach. */
async function createVolume(name: string, { nodes = ['a'], className = 'fast', reclaim = 'Delete' } = {}) {
  const accessModes = ['ReadWriteOnce' as const]
  const claim = await admin.create(persistentVolumeClaimKind, {
    metadata: { namespace: NAMESPACE, name },
    spec: { accessModes, storageClassName: className, volumeName: name, resources: { requests: { storage: '1Gi' } } },
  })
  const matchExpressions = [{ key: KEY, operator: 'In', values: nodes }]
  await admin.create(persistentVolumeKind, {
    metadata: { name, finalizers: [EXTERNAL_PROVISIONER_FINALIZER] },
    spec: {
      accessModes,
      storageClassName: className,
      capacity: { storage: '1Gi' },
      persistentVolumeReclaimPolicy: reclaim,
      claimRef: { namespace: NAMESPACE, name, uid: claim.metadata.uid },
      csi: { driver: 'disks.example.com', volumeHandle: name },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  } as never)
}

const claimOf = (name: string) =>
  admin.get(persistentVolumeClaimKind, { namespace: NAMESPACE, name }).catch(() => undefined)
const volumeOf = (name: string) => admin.get(persistentVolumeKind, { name }).catch(() => undefined)
const isMarked = async (name: string) =>
  (await claimOf(name))?.status?.conditions?.some(({ type, status }) => type === VOLUME_LOST && status === 'True') ===
  true

/** Removes the finalizers that the protection controller removes from unused claims and volumes. */
async function removeProtection(name: string): Promise<void> {
  const body = { metadata: { finalizers: null } }
  await admin.patch(persistentVolumeClaimKind, { namespace: NAMESPACE, name }, { type: 'merge', body }).catch(() => {})
  await settle()
}

describe('the controller of lost volumes', () => {
  it('PLUS-11 waits by default, marks claims by the policy of their class, and removes the mark when the node returns', async () => {
    await createNode('a')
    await createNode('b')
    await createClass('fast')
    await createClass('marked', 'mark-lost')
    await createClass('invalid', 'mark')
    await createVolume('waiting')
    await createVolume('marked', { className: 'marked' })
    await createVolume('invalid', { className: 'invalid' })
    await createVolume('elsewhere', { className: 'marked', nodes: ['b'] })
    await createVolume('shared', { className: 'marked', nodes: ['a', 'b'] })
    const { stateOf } = start()
    await settle()
    expect(requests).toEqual([])

    await setLost('a', true)
    expect(requests).toEqual(['patch PersistentVolumeClaim marked'])
    expect(await isMarked('marked')).toBe(true)
    expect(stateOf('waiting')).toMatchObject({ is: 'stuck' })
    expect(stateOf('marked')).toMatchObject({ is: 'stuck' })
    expect(stateOf('elsewhere')).toBeUndefined()
    await advance(10_000)
    const events = (await admin.list(eventKind)).items
    expect(events.map(({ reason }) => reason)).toEqual(['VolumeLost'])

    await setLost('a', false)
    expect(await isMarked('marked')).toBe(false)
    expect(stateOf('waiting')).toBeUndefined()

    await setLost('a', true)
    expect(await isMarked('marked')).toBe(true)
    await advance(10_000)
    const repeated = (await admin.list(eventKind)).items.filter(({ reason }) => reason === 'VolumeLost')
    expect(repeated.map(({ count }) => count)).toEqual([2])
  })

  it('PLUS-11 applies the default policy to classes without one, and a changed policy immediately', async () => {
    await createNode('a')
    await createClass('fast')
    await createVolume('data')
    start('mark-lost')
    await setLost('a', true)
    expect(await isMarked('data')).toBe(true)
    const annotations = { 'stowage.dev/lost-volume-policy': 'wait' }
    await admin.patch(storageClassKind, { name: 'fast' }, { type: 'merge', body: { metadata: { annotations } } })
    await settle()
    expect(await isMarked('data')).toBe(false)
  })

  it('PLUS-11 deletes the claim and the volume after the time of the policy, even after a restart, and keeps retained volumes', async () => {
    await createNode('a')
    await createClass('fast', 'delete-after=1h')
    await createVolume('data')
    await createVolume('kept', { reclaim: 'Retain' })
    await createVolume('attached')
    await admin.create(volumeAttachmentKind, {
      metadata: { name: 'attachment' },
      spec: { attacher: 'disks.example.com', nodeName: 'a', source: { persistentVolumeName: 'attached' } },
    } as never)
    start()
    await setLost('a', true)
    await advance(30 * 60_000)
    await stop()
    start()
    await settle()
    await advance(29 * 60_000)
    expect((await claimOf('data'))?.metadata.deletionTimestamp).toBeUndefined()
    await advance(60_000)
    expect((await claimOf('data'))?.metadata.deletionTimestamp).toBeDefined()
    expect((await volumeOf('data'))?.metadata.deletionTimestamp).toBeUndefined()
    await removeProtection('data')
    expect(await claimOf('data')).toBeUndefined()
    const volume = await volumeOf('data')
    expect(volume?.metadata.finalizers ?? []).not.toContain(EXTERNAL_PROVISIONER_FINALIZER)
    expect(volume === undefined || volume.metadata.deletionTimestamp !== undefined).toBe(true)
    for (const name of ['kept', 'attached']) {
      expect((await claimOf(name))?.metadata.deletionTimestamp).toBeUndefined()
      expect((await volumeOf(name))?.metadata.deletionTimestamp).toBeUndefined()
      expect(await isMarked(name)).toBe(true)
    }
    await admin.delete(volumeAttachmentKind, { name: 'attachment' })
    await settle()
    expect((await claimOf('attached'))?.metadata.deletionTimestamp).toBeDefined()
  })

  it('PLUS-11 deletes nothing if the node has returned but the cache does not show it yet', async () => {
    await createNode('a')
    await createClass('fast', 'delete-after=1h')
    await createVolume('data')
    start()
    await setLost('a', true)
    beforeGet = async () => {
      beforeGet = undefined
      const body = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
      await admin.patch(nodeKind, { name: 'a' }, { type: 'merge', body }, { subresource: 'status' })
    }
    await advance(3_600_000)
    expect(beforeGet).toBeUndefined()
    expect((await claimOf('data'))?.metadata.deletionTimestamp).toBeUndefined()
  })

  it('PLUS-11 sends one request per lost volume, and none while other claims are provisioned', async () => {
    await createNode('a')
    await createNode('b')
    await createClass('fast', 'mark-lost')
    for (let index = 0; index < LOST_VOLUMES; index++) await createVolume(`lost-${index}`)
    start()
    await setLost('a', true)
    for (let turn = 0; turn < LOST_VOLUMES / 25; turn++) await settle()
    expect(requests).toHaveLength(LOST_VOLUMES) // one condition per claim
    await advance(60_000)
    requests.length = 0
    for (let index = 0; index < 20; index++) await createVolume(`new-${index}`, { nodes: ['b'] })
    await settle()
    await advance(3_600_000)
    expect(requests).toEqual([])
  })
})
