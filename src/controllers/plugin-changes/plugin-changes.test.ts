import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createCacheSet, type EventDetails } from '../../runtime/index.ts'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import { defineProvisioner } from '../provisioning/plugin/check-plugin.ts'
import type { AnyProvisionerPlugin, ExpandRequest, ModifyRequest } from '../provisioning/plugin/contract.ts'
import { InfeasibleError, NotCreatedError } from '../provisioning/plugin/failures.ts'
import { parameter } from '../provisioning/plugin/parameter.ts'
import { createPluginChanges } from './index.ts'

const GI = 1024n ** 3n
const PLUGIN = 'example.com/disks'
const DRIVER = 'disks.example.com'
const CLASS = 'disks'
const NAMESPACE = 'default'
const CLAIM = { namespace: NAMESPACE, name: 'data' }

let server: ServerFixture
let expansions: ExpandRequest[]
let modifications: ModifyRequest[]
let events: EventDetails[]
let stop: (() => Promise<void>) | undefined

beforeEach(async () => {
  server = await createServerFixture()
  expansions = []
  modifications = []
  events = []
  stop = undefined
  await server.client().create(storageClassKind, {
    metadata: { name: CLASS },
    provisioner: PLUGIN,
    allowVolumeExpansion: true,
  } as never)
})
afterEach(async () => {
  await stop?.()
  await server.store.close()
})

/** A plugin whose volumes have the requested size and attributes. */
const createPlugin = (overrides: Partial<AnyProvisionerPlugin> = {}): AnyProvisionerPlugin => ({
  ...(defineProvisioner({
    name: PLUGIN,
    csiDriver: DRIVER,
    attributes: {
      tier: parameter.choice(['fast', 'slow'], { doc: 'kind of the disks' }),
      replicas: parameter.integer({ doc: 'number of copies', min: 1 }),
    },
    provision: () => Promise.reject(new Error('not called')),
    delete: () => Promise.reject(new Error('not called')),
    async expand(request) {
      expansions.push(request)
      return { sizeBytes: request.sizeBytes }
    },
    async modify(request) {
      modifications.push(request)
    },
  }) as AnyProvisionerPlugin),
  ...overrides,
})

function start(plugin: AnyProvisionerPlugin): void {
  const client = server.clientOf('sdk')
  const caches = createCacheSet({ client, clock: server.clock, random: () => 0.5 })
  const abort = new AbortController()
  const controllers = createPluginChanges({
    ...{ client, caches, clock: server.clock, random: () => 0.5, log: silentLog, plugin },
    events: { record: (_kind, _object, event) => void events.push(event) },
  })
  const run = controllers.run(abort.signal)
  stop = async () => {
    abort.abort()
    await run
    await caches.stop()
  }
}

interface VolumeOptions {
  readonly name?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly source?: object
}

/** Creates a claim for 1Gi and the volume that it is bound to. */
async function createBoundClaim({
  name = CLAIM.name,
  annotations = { [PROVISIONED_BY]: PLUGIN },
  source = { csi: { driver: DRIVER, volumeHandle: 'share-1' } },
}: VolumeOptions = {}): Promise<void> {
  const client = server.client()
  const accessModes = ['ReadWriteOnce' as const]
  const [claimRef, volumeRef] = [{ namespace: NAMESPACE, name }, { name: `pv-${name}` }]
  const claim = await client.create(persistentVolumeClaimKind, {
    metadata: claimRef,
    spec: {
      accessModes,
      storageClassName: CLASS,
      volumeName: volumeRef.name,
      resources: { requests: { storage: '1Gi' } },
    },
  } as never)
  await client.create(persistentVolumeKind, {
    metadata: { ...volumeRef, annotations },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes,
      storageClassName: CLASS,
      claimRef: { ...claimRef, uid: claim.metadata.uid },
      ...source,
    },
  } as never)
  const bound = { phase: 'Bound' }
  const status = { ...bound, accessModes, capacity: { storage: '1Gi' } }
  const subresource = { subresource: 'status' } as const
  await client.patch(persistentVolumeKind, volumeRef, { type: 'merge', body: { status: bound } }, subresource)
  await client.patch(persistentVolumeClaimKind, claimRef, { type: 'merge', body: { status } }, subresource)
}

const request = (spec: object, name = CLAIM.name) =>
  server.client().patch(persistentVolumeClaimKind, { namespace: NAMESPACE, name }, { type: 'merge', body: { spec } })
const requestSize = (storage: string, name?: string) => request({ resources: { requests: { storage } } }, name)
const readClaim = () => server.client().get(persistentVolumeClaimKind, CLAIM)
const readVolume = () => server.client().get(persistentVolumeKind, { name: 'pv-data' })
const messages = () => events.map(({ message }) => message).join('\n')

/** Runs the event loop and advances the clock until the condition holds. */
async function waitUntil(description: string, condition: () => unknown): Promise<void> {
  for (let turn = 0; turn < 20_000; turn++) {
    if (await condition()) return
    await new Promise((resolve) => setImmediate(resolve))
    if (turn % 40 === 39) await server.clock.advance(1_000)
  }
  throw new Error(`still waiting for ${description}; events:\n${messages()}`)
}

describe('createPluginChanges', () => {
  it("PROV-17 expands a volume whose source is not CSI with the plugin's function, and completes the claim", async () => {
    await createBoundClaim({ source: { nfs: { server: 'filer', path: '/share-1' } } })
    start(createPlugin())
    await requestSize('3Gi')
    await waitUntil('the expanded claim', async () => (await readClaim()).status?.capacity?.storage === '3Gi')
    expect((await readVolume()).spec?.capacity?.storage).toBe('3Gi')
    expect(expansions[0]).toMatchObject({
      sizeBytes: 3n * GI,
      volume: { name: 'pv-data', source: { nfs: { path: '/share-1' } }, sizeBytes: GI },
    })
    expect(events.map(({ reason }) => reason)).toContain('VolumeResizeSuccessful')
    expect((await readClaim()).status?.allocatedResourceStatuses).toBeUndefined()
  })

  it('PROV-17 saves the actual size if the plugin expands further', async () => {
    await createBoundClaim()
    start(createPlugin({ expand: async () => ({ sizeBytes: 4n * GI }) }))
    await requestSize('3Gi')
    await waitUntil('the expanded claim', async () => (await readClaim()).status?.capacity?.storage === '4Gi')
  })

  it('PROV-17 reports an infeasible size with the message of the plugin, and expands to a lower one', async () => {
    await createBoundClaim()
    const expand: AnyProvisionerPlugin['expand'] = async ({ sizeBytes }) => {
      if (sizeBytes > 5n * GI) throw new InfeasibleError('The pool has only 5Gi.')
      return { sizeBytes }
    }
    start(createPlugin({ expand }))
    await requestSize('9Gi')
    const isInfeasible = async () =>
      (await readClaim()).status?.allocatedResourceStatuses?.storage === 'ControllerResizeInfeasible'
    await waitUntil('the infeasible status', isInfeasible)
    expect(messages()).toContain('The pool has only 5Gi.')
    expect(messages()).not.toContain('rpc error')
    await requestSize('4Gi')
    await waitUntil('the expanded claim', async () => (await readClaim()).status?.capacity?.storage === '4Gi')
  })

  it('PROV-17 repeats a call that failed, until it succeeds', async () => {
    await createBoundClaim()
    const failures = [new Error('no answer'), new NotCreatedError('the pool is full')]
    start(
      createPlugin({
        async expand({ sizeBytes }) {
          const failure = failures.shift()
          if (failure) throw failure
          return { sizeBytes }
        },
      }),
    )
    await requestSize('2Gi')
    await waitUntil('the expanded claim', async () => (await readClaim()).status?.capacity?.storage === '2Gi')
    expect(messages()).toContain('no answer')
    expect(messages()).toContain('the pool is full')
  })

  it("PROV-17 reports a plugin that returns no size, and does not change the claim's size", async () => {
    await createBoundClaim()
    start(createPlugin({ expand: async () => ({}) as never }))
    await requestSize('2Gi')
    await waitUntil('the event', () => messages().includes('returned no size from "expand"'))
    expect((await readClaim()).status?.capacity?.storage).toBe('1Gi')
  })

  it('PROV-17 records an event if the plugin has no expand function', async () => {
    await createBoundClaim()
    start(createPlugin({ expand: undefined }))
    await requestSize('2Gi')
    await waitUntil('the event', () =>
      messages().includes(`${PLUGIN} does not expand volumes. Lower the request to 1Gi`),
    )
  })

  it('PROV-17 leaves volumes of other provisioners, and volumes that the plugin does not own, unchanged', async () => {
    await createBoundClaim({ name: 'foreign', annotations: { [PROVISIONED_BY]: 'example.com/others' } })
    await createBoundClaim({ name: 'disowned' })
    await createBoundClaim()
    for (const name of ['foreign', 'disowned', 'data']) await requestSize('2Gi', name)
    start(createPlugin({ owns: ({ name }) => name !== 'pv-disowned' }))
    await waitUntil('the expanded claim', async () => (await readClaim()).status?.capacity?.storage === '2Gi')
    expect(expansions.map(({ volume }) => volume.name)).toEqual(['pv-data'])
  })

  const createAttributesClass = (name: string, parameters: Readonly<Record<string, string>>) =>
    server.client().create(volumeAttributesClassKind, { metadata: { name }, driverName: DRIVER, parameters } as never)
  const currentClass = async () => (await readClaim()).status?.currentVolumeAttributesClassName

  it('VAC-5 PROV-17 modifies a volume with the typed attributes of its class', async () => {
    await createBoundClaim()
    start(createPlugin())
    await createAttributesClass('gold', { tier: 'fast', replicas: '3' })
    await request({ volumeAttributesClassName: 'gold' })
    await waitUntil('the current class', async () => (await currentClass()) === 'gold')
    expect((await readVolume()).spec?.volumeAttributesClassName).toBe('gold')
    expect(modifications[0]).toMatchObject({
      attributes: { tier: 'fast', replicas: 3 },
      volume: { name: 'pv-data', source: { csi: { volumeHandle: 'share-1' } } },
    })
  })

  it('VAC-6 PROV-17 reports attributes that the plugin has not declared or that are invalid, without a call', async () => {
    await createBoundClaim()
    start(createPlugin())
    await createAttributesClass('odd', { colour: 'red' })
    await request({ volumeAttributesClassName: 'odd' })
    await waitUntil('the event', () => messages().includes('does not support the attribute "colour"'))
    expect(messages()).toContain('The provisioner supports "tier", "replicas".')
    await createAttributesClass('warp', { tier: 'warp' })
    await request({ volumeAttributesClassName: 'warp' })
    await waitUntil('the event', () => messages().includes('has the value "warp"; expected fast or slow'))
    expect(modifications).toEqual([])
    expect((await readClaim()).status?.modifyVolumeStatus?.status).toBe('Infeasible')
  })
})
