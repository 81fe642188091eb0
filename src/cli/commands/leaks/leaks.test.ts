import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { leaseKind } from '../../../api/kinds/lease/lease.ts'
import { operationKind } from '../../../api/kinds/operation/operation.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { asStock } from '../../../client/stock-server.fixture.ts'
import { INTENTS_ANNOTATION } from '../../../controllers/provisioning/intent-journal.ts'
import { FAKE_CONTROLLER_CAPABILITIES } from '../../../csi/fake/index.ts'
import { PROVISIONER } from '../../../volumes/names.ts'
import { type ChangeRequest, changeLeaks, selectCandidates } from './change.ts'
import { compareDriver, type Leak } from './compare.ts'
import { type FindOptions, findLeaks } from './find-leaks.ts'
import { createLeaksFixture, DRIVER, GIB, type LeaksFixtureOptions, OPTIONS, withSegments } from './leaks.fixture.ts'

type Fixture = Awaited<ReturnType<typeof createLeaksFixture>>

const without = (...names: readonly string[]): LeaksFixtureOptions => ({
  settings: { controller: FAKE_CONTROLLER_CAPABILITIES.filter((name) => !names.includes(name)) },
})

const find = ({ deps }: Fixture, options: FindOptions = OPTIONS) => findLeaks(deps, options)
const listLeaks = async (fixture: Fixture): Promise<readonly Leak[]> => (await find(fixture)).report.leaks
const reasons = async (fixture: Fixture): Promise<string[]> => (await listLeaks(fixture)).map(({ reason }) => reason)

/** Adopts or deletes as the command does after confirmation, and advances the clock past the grace period. */
async function change(fixture: Fixture, request: Partial<ChangeRequest> & Pick<ChangeRequest, 'action'>) {
  const options = { ...OPTIONS, ...request }
  const candidates = selectCandidates(await find(fixture, options), options)
  const { clock } = fixture.server
  const changes = changeLeaks(candidates, options, {
    ...fixture.deps,
    onWait: (ms) => void setImmediate(() => clock.advance(ms)),
  })
  return (await changes).map(({ leak, result, pv, message }) => ({ handle: leak.handle, result, pv, message }))
}

/** Makes the driver list a volume with another handle. */
function renameVolume({ driver }: Fixture, handle: string, listedHandle: string): void {
  const { listVolumes } = driver.controller
  Object.assign(driver.controller, {
    async listVolumes(request: never) {
      const page = await listVolumes(request)
      for (const { volume } of page.entries) if (volume?.volumeId === handle) volume!.volumeId = listedHandle
      return page
    },
  })
}

describe('findLeaks', () => {
  it('PLUS-8 finds no leaks if every volume has a PV', async () => {
    const fixture = await createLeaksFixture()
    await fixture.createPv('a', await fixture.createVolume('a'))
    expect((await find(fixture)).report).toEqual({
      drivers: [{ driver: DRIVER, sockets: ['/csi.sock'], volumes: 1, snapshots: 0, pvs: 1 }],
      leaks: [],
      unknown: [],
    })
  })

  it('PLUS-8 finds volumes without a PV over several pages, with their size', async () => {
    const fixture = await createLeaksFixture()
    const handles = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => fixture.createVolume(name)))
    await fixture.createPv('a', handles[0]!)
    const { listVolumes } = fixture.driver.controller
    const pages: string[] = []
    Object.assign(fixture.driver.controller, {
      listVolumes: (request: { startingToken: string }) => {
        pages.push(request.startingToken)
        return listVolumes({ ...request, maxEntries: 2 } as never)
      },
    })
    const leaks = await listLeaks(fixture)
    expect(leaks.map(({ handle }) => handle)).toEqual(handles.slice(1))
    expect(leaks[0]).toMatchObject({
      reason: 'VolumeWithoutPV',
      sizeBytes: GIB,
      message: 'no PV refers to this volume',
    })
    expect(pages.length).toBe(6) // three pages per check
  })

  it('PLUS-8 restarts a list whose token became invalid, and fails on a list that never ends', async () => {
    const fixture = await createLeaksFixture()
    await Promise.all(['a', 'b'].map((name) => fixture.createVolume(name)))
    const { listVolumes } = fixture.driver.controller
    fixture.fake.script.setRules([
      {
        method: 'ListVolumes',
        nth: 2,
        effect: { do: 'fail', code: 'ABORTED' },
      },
    ])
    Object.assign(fixture.driver.controller, {
      listVolumes: (request: object) => listVolumes({ ...request, maxEntries: 1 } as never),
    })
    expect(await reasons(fixture)).toEqual(['VolumeWithoutPV', 'VolumeWithoutPV'])
    Object.assign(fixture.driver.controller, {
      listVolumes: async () => ({ entries: [], nextToken: 'again' }),
    })
    await expect(find(fixture)).rejects.toThrow(
      'ListVolumes of the driver fake.stowage.example at /csi.sock does not end',
    )
  })

  it('PLUS-8 finds PVs without a volume and volumes with two PVs, but not PVs that are being deleted', async () => {
    const fixture = await createLeaksFixture()
    const handle = await fixture.createVolume('shared')
    await fixture.createPv('one', handle)
    await fixture.createPv('two', handle)
    await fixture.createPv('lost', 'vol-gone')
    await fixture.createPv('released', 'vol-deleted', { persistentVolumeReclaimPolicy: 'Delete' })
    const body = { status: { phase: 'Released' } }
    const patch = { type: 'merge' as const, body }
    await fixture.admin.patch(persistentVolumeKind, { name: 'released' }, patch, { subresource: 'status' })
    expect(await listLeaks(fixture)).toMatchObject([
      { reason: 'PVWithoutVolume', object: 'lost', handle: 'vol-gone', sizeBytes: GIB },
      {
        reason: 'HandleOfTwoPVs',
        handle,
        message: expect.stringContaining('the PVs one, two refer to the same volume'),
      },
    ])
  })

  it('PLUS-8 finds wrong sizes and attributes, but no size that an expansion changes', async () => {
    const fixture = await createLeaksFixture()
    const [small, growing, other] = await Promise.all(['a', 'b', 'c'].map((name) => fixture.createVolume(name)))
    await fixture.createPv('small', small!, { capacity: { storage: '2Gi' } })
    const claim = await fixture.createClaim('growing')
    const claimRef = { namespace: 'default', name: 'growing', uid: claim.metadata.uid }
    await fixture.createPv('growing', growing!, { capacity: { storage: '512Mi' }, claimRef })
    await fixture.createPv('other', other!, { csi: { volumeAttributes: { tier: 'slow' } } as never })
    const { listVolumes } = fixture.driver.controller
    Object.assign(fixture.driver.controller, {
      async listVolumes(request: never) {
        const page = await listVolumes(request)
        for (const { volume } of page.entries) if (volume?.volumeId === other) volume!.volumeContext = { tier: 'fast' }
        return page
      },
    })
    expect(await listLeaks(fixture)).toMatchObject([
      { reason: 'WrongSize', object: 'small', message: 'the PV has 2Gi, the driver reports 1Gi' },
      { reason: 'WrongAttributes', object: 'other', message: expect.stringContaining('differ') },
    ])
  })

  it('PLUS-8 finds attachments that only the driver or only the API server has', async () => {
    const fixture = await createLeaksFixture()
    const { admin, driver } = fixture
    const [published, attached] = [await fixture.createVolume('a'), await fixture.createVolume('b')]
    const both = await fixture.createVolume('c')
    for (const [name, handle] of Object.entries({ published, attached, both })) await fixture.createPv(name, handle)
    const drivers = [{ name: DRIVER, nodeID: 'node-1', topologyKeys: [] }]
    await admin.create(csiNodeKind, { metadata: { name: 'worker' }, spec: { drivers } })
    const volumeCapability = { accessMode: { mode: 1 }, accessType: { case: 'mount', value: {} } }
    for (const volumeId of [published, both])
      await driver.controller.controllerPublishVolume({ volumeId, nodeId: 'node-1', volumeCapability } as never)
    for (const persistentVolumeName of ['attached', 'both'])
      await admin.create(volumeAttachmentKind, {
        metadata: { name: `va-${persistentVolumeName}` },
        spec: { attacher: DRIVER, nodeName: 'worker', source: { persistentVolumeName } },
        status: { attached: true },
      })
    for (const name of ['va-attached', 'va-both'])
      await admin.patch(
        volumeAttachmentKind,
        { name },
        { type: 'merge', body: { status: { attached: true } } },
        { subresource: 'status' },
      )
    expect(await listLeaks(fixture)).toMatchObject([
      { reason: 'PublishedWithoutAttachment', handle: published, node: 'node-1' },
      { reason: 'AttachmentNotPublished', object: 'va-attached', node: 'worker' },
    ])
  })

  it('PLUS-8 compares snapshots with VolumeSnapshotContents, and counts them as not compared if the server serves no contents', async () => {
    const contents: object[] = []
    const fixture = await createLeaksFixture({ contents: contents as never })
    const volume = await fixture.createVolume('a')
    await fixture.createPv('a', volume)
    const { snapshot } = await fixture.driver.controller.createSnapshot({ name: 's', sourceVolumeId: volume } as never)
    const handle = snapshot!.snapshotId
    contents.push({ metadata: { name: 'lost' }, spec: { driver: DRIVER }, status: { snapshotHandle: 'snap-gone' } })
    expect(await listLeaks(fixture)).toMatchObject([
      { reason: 'SnapshotWithoutContent', handle, createdAt: expect.any(String) },
      { reason: 'ContentWithoutSnapshot', object: 'lost' },
    ])
    contents.push({ metadata: { name: 'creating' }, spec: { driver: DRIVER } })
    expect((await listLeaks(fixture))[0]!.leftBecause).toContain('VolumeSnapshotContent creating')
    contents[1] = { metadata: { name: 'static' }, spec: { driver: DRIVER, source: { snapshotHandle: handle } } }
    expect(await reasons(fixture)).toEqual(['ContentWithoutSnapshot'])
    const unserved = await createLeaksFixture()
    const source = await unserved.createVolume('a')
    await unserved.createPv('a', source)
    await unserved.driver.controller.createSnapshot({ name: 's', sourceVolumeId: source } as never)
    expect((await find(unserved)).report).toMatchObject({
      leaks: [],
      unknown: [expect.stringContaining('has 1 snapshot, not compared')],
    })
  })

  it('PLUS-8 does not report the inline volumes of pods', async () => {
    const fixture = await createLeaksFixture()
    const pod = await fixture.admin.create(podKind, {
      metadata: { namespace: 'default', name: 'web' },
      spec: { containers: [{ name: 'c', image: 'i' }], volumes: [{ name: 'scratch', csi: { driver: DRIVER } }] },
    })
    const handle = await fixture.createVolume('inline')
    const { createHash } = await import('node:crypto')
    const inlineHandle = `csi-${createHash('sha256').update(`${pod.metadata.uid}scratch`).digest('hex')}`
    const { listVolumes } = fixture.driver.controller
    Object.assign(fixture.driver.controller, {
      async listVolumes(request: never) {
        const page = await listVolumes(request)
        for (const { volume } of page.entries) if (volume?.volumeId === handle) volume!.volumeId = inlineHandle
        return page
      },
    })
    expect(await listLeaks(fixture)).toEqual([])
    await fixture.admin.delete(podKind, { namespace: 'default', name: 'web' }, { gracePeriodSeconds: 0 })
    expect(await reasons(fixture)).toEqual(['VolumeWithoutPV'])
  })

  it.each([
    { capability: 'ControllerGetVolume', removed: ['LIST_VOLUMES'] },
    { capability: 'ValidateVolumeCapabilities', removed: ['LIST_VOLUMES', 'GET_VOLUME'] },
  ])('PLUS-8 checks PVs with $capability if the driver lists no volumes', async ({ capability, removed }) => {
    const fixture = await createLeaksFixture(without(...removed))
    await fixture.createPv('kept', await fixture.createVolume('kept'))
    await fixture.createVolume('orphan')
    await fixture.createPv('lost', 'vol-gone')
    const { leaks, unknown } = (await find(fixture)).report
    expect(leaks).toMatchObject([{ reason: 'PVWithoutVolume', object: 'lost' }])
    expect(unknown).toEqual([expect.stringMatching(`no LIST_VOLUMES.*checked with ${capability}`)])
    fixture.fake.script.setRules([
      {
        method: capability,
        effect: { do: 'fail', code: 'INTERNAL', message: 'broken' },
      },
    ])
    const failed = (await find(fixture)).report
    expect(failed.leaks).toEqual([])
    expect(failed.unknown).toContain('the PV kept was not checked: broken')
  })

  it('PLUS-8 does not report PVs of other nodes if the driver serves one node', async () => {
    const fixture = await createLeaksFixture()
    const terms = (zone: string) => ({
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In' as const, values: [zone] }] }],
      },
    })
    await fixture.createPv('here', 'vol-gone', { nodeAffinity: terms('a') })
    await fixture.createPv('there', 'vol-elsewhere', { nodeAffinity: terms('b') })
    const processes = [withSegments(fixture.process, { zone: 'a' })]
    const { report } = await findLeaks({ ...fixture.deps, processes }, OPTIONS)
    expect(report.leaks).toMatchObject([{ reason: 'PVWithoutVolume', object: 'here' }])
    expect(report.unknown).toEqual([expect.stringMatching(/ has 1 PV on other nodes, not compared/)])
  })

  it('PLUS-8 requires permission to list PVs, and names the other missing rules', async () => {
    const fixture = await createLeaksFixture()
    const handle = await fixture.createVolume('orphan')
    const deny = (...plurals: string[]) => ({
      ...fixture.deps,
      client: asStock(fixture.admin, {
        allows: ({ kind }) => !plurals.includes(kind.plural),
        serves: ({ group }) => group !== operationKind.group,
      }),
    })
    await expect(findLeaks(deny('persistentvolumes'), OPTIONS)).rejects.toThrow(
      'PVs cannot be read: you need permission to list persistentvolumes',
    )
    const { report } = await findLeaks(deny('leases', 'csinodes'), OPTIONS)
    expect(report.unknown).toEqual([
      'you need permission to list leases.coordination.k8s.io in all namespaces',
      'you need permission to list csinodes.storage.k8s.io',
    ])
    expect(report.leaks).toMatchObject([
      { handle, leftBecause: expect.stringContaining('the owner is not known: you need permission to list leases') },
    ])
    expect((await findLeaks(deny(), OPTIONS)).report).toMatchObject({ leaks: [{ handle }], unknown: [] })
  })
})

describe('compareDriver', () => {
  it('PLUS-8 finds loop devices in the pool of the driver that belong to no volume', async () => {
    const fixture = await createLeaksFixture()
    const { inventories, cluster, machine } = await find(fixture)
    const loop = (pool: string) => ({
      device: `/dev/loop-${pool}`,
      handle: 'v-gone',
      file: `/${pool}/volumes/v-gone.img`,
    })
    const inventory = { ...inventories[0]!, processes: [{ ...fixture.process, pool: '/own' }] }
    const options = { ...OPTIONS, nowMs: 0 }
    const { leaks } = compareDriver(inventory, cluster, { ...machine, loops: [loop('own'), loop('other')] }, options)
    expect(leaks).toMatchObject([{ reason: 'LoopDeviceWithoutVolume', path: '/dev/loop-own', handle: 'v-gone' }])
  })
})

describe('stowage leaks on storage that may have an owner', () => {
  const leftBecause = async (fixture: Fixture, options: FindOptions = OPTIONS) =>
    (await find(fixture, options)).report.leaks[0]?.leftBecause
  const named = (handle: string): FindOptions => ({ ...OPTIONS, namedHandles: new Set([handle]) })

  it('PLUS-8 leaves a volume while a claim has an intent, even if the user names the volume', async () => {
    const fixture = await createLeaksFixture()
    const handle = await fixture.createVolume('orphan')
    expect(await leftBecause(fixture)).toBeUndefined()
    await fixture.createClaim('other', { finalizers: ['provisioning.stowage.dev/other.example'] })
    expect(await leftBecause(fixture)).toBeUndefined()
    await fixture.createClaim('orders', { finalizers: [`provisioning.stowage.dev/${DRIVER}.node-1`] })
    expect(await leftBecause(fixture, named(handle))).toBe(
      'the volume may belong to the claim default/orders, whose provisioning has not ended',
    )
    expect(await change(fixture, { action: 'delete' })).toEqual([])
    await expect(change(fixture, { action: 'delete', ...named(handle) })).rejects.toThrow('Nothing was changed')
  })

  it('PLUS-8 leaves a volume while the journal of a provisioner has an intent, or cannot be read', async () => {
    const fixture = await createLeaksFixture()
    await fixture.createVolume('orphan')
    const claim = { metadata: { namespace: 'shop', name: 'cart', uid: 'u-1' }, spec: {} }
    const ref = { namespace: 'default', name: 'stowage-intents-fake-stowage-example' }
    const annotate = (value: string) =>
      fixture.admin.patch(leaseKind, ref, {
        type: 'merge',
        body: { metadata: { annotations: { [INTENTS_ANNOTATION]: value } } },
      })
    await fixture.admin.create(leaseKind, { metadata: ref })
    await annotate(JSON.stringify({ 'u-1': claim }))
    expect(await leftBecause(fixture)).toContain('the claim shop/cart')
    await annotate('{"u-1":')
    expect(await leftBecause(fixture)).toContain('the owner is not known: Cannot read the intents')
    await annotate('{}')
    expect(await leftBecause(fixture)).toBeUndefined()
  })

  it('PLUS-8 leaves a volume while a claim is assigned to the driver, unless the user names the volume', async () => {
    const fixture = await createLeaksFixture()
    const handle = await fixture.createVolume('orphan')
    const claim = await fixture.createClaim('orders', { annotations: { [PROVISIONER]: DRIVER } })
    expect(await leftBecause(fixture)).toContain('default/orders')
    expect(await leftBecause(fixture, named(handle))).toBeUndefined()
    const own = await fixture.createVolume(`pvc-${claim.metadata.uid}`)
    renameVolume(fixture, own, `pvc-${claim.metadata.uid}`)
    const { leaks } = (await find(fixture, named(`pvc-${claim.metadata.uid}`))).report
    expect(leaks[1]?.leftBecause).toBe('the volume is being provisioned for the claim default/orders')
    const patch = { type: 'merge' as const, body: { spec: { volumeName: 'bound' } } }
    await fixture.admin.patch(persistentVolumeClaimKind, { namespace: 'default', name: 'orders' }, patch)
    expect(await leftBecause(fixture)).toBeUndefined()
  })

  it('PLUS-8 does not delete a volume of a lost PV that a claim or an attachment refers to, but adopts it', async () => {
    const fixture = await createLeaksFixture()
    const handle = await fixture.createVolume('orphan')
    const claim = { namespace: 'default', name: 'orders' }
    await fixture.createClaim('orders')
    const patch = { type: 'merge' as const, body: { spec: { volumeName: 'gone' } } }
    await fixture.admin.patch(persistentVolumeClaimKind, claim, patch)
    const why = 'the claim default/orders refers to the PV gone, which does not exist'
    expect((await listLeaks(fixture))[0]).toMatchObject({
      notDeletedBecause: `the volume may belong to a lost PV: ${why}`,
    })
    expect(await change(fixture, { action: 'delete' })).toEqual([])
    expect((await find(fixture, named(handle))).report.leaks[0]?.notDeletedBecause).toBeUndefined()
    renameVolume(fixture, handle, 'vol-gone')
    await expect(change(fixture, { action: 'delete', ...named('vol-gone') })).rejects.toThrow(
      `"vol-gone" is left: the volume belongs to a lost PV: ${why}. Nothing was changed.`,
    )
    await fixture.admin.patch(persistentVolumeClaimKind, claim, {
      type: 'merge',
      body: { metadata: { finalizers: null } },
    })
    await fixture.admin.delete(persistentVolumeClaimKind, claim)
    await fixture.admin.create(volumeAttachmentKind, {
      metadata: { name: 'csi-1' },
      spec: { attacher: DRIVER, nodeName: 'node-1', source: { persistentVolumeName: 'gone' } },
    })
    expect((await listLeaks(fixture))[0]?.notDeletedBecause).toContain(
      'the VolumeAttachment csi-1 refers to the PV gone',
    )
    expect(await change(fixture, { action: 'delete' })).toEqual([])
    expect(await change(fixture, { action: 'adopt' })).toMatchObject([{ handle: 'vol-gone', result: 'adopted' }])
  })

  it('PLUS-8 leaves snapshots that are young or part of a group', async () => {
    const fixture = await createLeaksFixture({ contents: [] })
    const sourceVolumeId = await fixture.createVolume('source')
    await fixture.createPv('source', sourceVolumeId)
    await fixture.driver.controller.createSnapshot({ name: 's', sourceVolumeId } as never)
    expect(await leftBecause(fixture)).toBe('the snapshot is younger than the grace period of 60 s')
    expect(await change(fixture, { action: 'delete' })).toEqual([])
    await fixture.server.clock.advance(OPTIONS.gracePeriodMs)
    expect(await leftBecause(fixture)).toBeUndefined()
    const { listSnapshots } = fixture.driver.controller
    Object.assign(fixture.driver.controller, {
      async listSnapshots(request: never) {
        const page = await listSnapshots(request)
        for (const { snapshot } of page.entries) snapshot!.groupSnapshotId = 'nightly'
        return page
      },
    })
    expect(await leftBecause(fixture)).toContain('the snapshot belongs to the group snapshot nightly')
  })

  it('PLUS-8 leaves a volume while operations.stowage.dev lists the provisioning of a deleted claim', async () => {
    const fixture = await createLeaksFixture()
    await fixture.createVolume('orphan')
    fixture.server.operations.applyLocal({
      changed: [
        {
          metadata: { namespace: 'default', name: 'orders.0a1b2c3d4e' },
          object: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'orders', uid: 'u-9' },
          component: 'provisioner',
          process: 'p',
          operation: 'Provision',
          phase: 'Running',
        },
      ],
      removed: [],
    })
    await fixture.server.waitUntil(
      async () => (await leftBecause(fixture))?.includes('default/orders') ?? false,
      'the operation',
    )
  })

  it('PLUS-8 leaves a volume that is published', async () => {
    const fixture = await createLeaksFixture()
    const volumeId = await fixture.createVolume('orphan')
    const volumeCapability = { accessMode: { mode: 1 }, accessType: { case: 'mount', value: {} } }
    await fixture.driver.controller.controllerPublishVolume({ volumeId, nodeId: 'node-1', volumeCapability } as never)
    expect(await leftBecause(fixture)).toBe('the volume is published to node-1')
  })
})

describe('changeLeaks', () => {
  it('PLUS-8 deletes volumes and snapshots that are still leaks after the grace period', async () => {
    const fixture = await createLeaksFixture({ contents: [] })
    const [orphan, keptHandle, late] = [
      await fixture.createVolume('a'),
      await fixture.createVolume('b'),
      await fixture.createVolume('c'),
    ]
    await fixture.createPv('kept', keptHandle)
    const { snapshot } = await fixture.driver.controller.createSnapshot({
      name: 's',
      sourceVolumeId: keptHandle,
    } as never)
    await fixture.server.clock.advance(OPTIONS.gracePeriodMs) // the snapshot contains its creation time
    const options = { ...OPTIONS, action: 'delete' as const }
    const candidates = selectCandidates(await find(fixture), options)
    const changes = await changeLeaks(candidates, options, {
      ...fixture.deps,
      onWait: (ms) =>
        void fixture.createPv('late', late).then(() => setImmediate(() => fixture.server.clock.advance(ms))),
    })
    expect(changes.map(({ leak, result, message }) => [leak.handle, result, message])).toEqual([
      [orphan, 'deleted', undefined],
      [late, 'left', 'the volume is no longer a leak'],
      [snapshot!.snapshotId, 'deleted', undefined],
    ])
    expect(Object.keys(fixture.fake.state.volumes)).toEqual([keptHandle, late])
    expect(await listLeaks(fixture)).toEqual([])
  })

  it('PLUS-8 checks again before a deletion if the earlier one took long', async () => {
    const fixture = await createLeaksFixture()
    const handles = [await fixture.createVolume('a'), await fixture.createVolume('b')]
    const { deleteVolume } = fixture.driver.controller
    Object.assign(fixture.driver.controller, {
      async deleteVolume(request: never) {
        const response = await deleteVolume(request)
        await fixture.createPv('meanwhile', handles[1]!)
        await fixture.server.clock.advance(5_000)
        return response
      },
    })
    expect(await change(fixture, { action: 'delete' })).toMatchObject([
      { handle: handles[0], result: 'deleted' },
      { handle: handles[1], result: 'left', message: 'the volume is no longer a leak' },
    ])
  })

  it('PLUS-8 reports a deletion that the driver rejects, and deletes the others', async () => {
    const fixture = await createLeaksFixture()
    const handles = [await fixture.createVolume('a'), await fixture.createVolume('b')]
    fixture.fake.script.setRules([
      {
        method: 'DeleteVolume',
        volume: 'a',
        effect: { do: 'fail', code: 'FAILED_PRECONDITION', message: 'in use' },
      },
    ])
    expect(await change(fixture, { action: 'delete' })).toMatchObject([
      { handle: handles[0], result: 'failed', message: 'FAILED_PRECONDITION: in use' },
      { handle: handles[1], result: 'deleted' },
    ])
  })

  it('PLUS-8 adopts a volume as a PV with Retain, reserved for a claim, and does not adopt it twice', async () => {
    const pools = [{ name: 'pool', capacityBytes: 10 * GIB, segments: { zone: 'a' } }]
    const fixture = await createLeaksFixture({ settings: { pools } })
    const handle = await fixture.createVolume('orphan')
    expect(await change(fixture, { action: 'adopt' })).toMatchObject([{ handle, result: 'adopted', pv: handle }])
    const { spec, metadata } = await fixture.admin.get(persistentVolumeKind, { name: handle })
    expect(metadata.annotations).toEqual({ 'pv.kubernetes.io/provisioned-by': DRIVER })
    expect(spec).toMatchObject({
      capacity: { storage: '1Gi' },
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'fast',
      claimRef: { namespace: 'default', name: handle },
      csi: { driver: DRIVER, volumeHandle: handle },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }] },
      },
    })
    expect(await listLeaks(fixture)).toEqual([])
    expect(await change(fixture, { action: 'adopt' })).toEqual([])
  })

  it('PLUS-8 adopts with the class and the claim that the user names', async () => {
    const fixture = await createLeaksFixture()
    await fixture.admin.create(storageClassKind, { metadata: { name: 'slow' }, provisioner: DRIVER })
    const handle = await fixture.createVolume('orphan')
    await expect(change(fixture, { action: 'adopt' })).rejects.toThrow('has the classes fast, slow: choose')
    await expect(change(fixture, { action: 'adopt', className: 'fst' })).rejects.toThrow('"fst" is not a class of')
    const claim = { namespace: 'shop', name: 'orders' }
    const request = { action: 'adopt', className: 'slow', claim, namedHandles: new Set([handle]) } as const
    expect(await change(fixture, request)).toMatchObject([{ result: 'adopted' }])
    const { spec } = await fixture.admin.get(persistentVolumeKind, { name: handle })
    expect(spec).toMatchObject({ storageClassName: 'slow', claimRef: claim })
    await expect(change(fixture, request)).rejects.toThrow(`"${handle}" is not a leak that --adopt can change`)
  })
})
