// Tests the contract of the local driver with both backends.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { BackendName } from '../src/driver/backends/backend.ts'
import {
  type DriverFixture,
  GIB,
  MIB,
  Mode,
  NODE,
  outcomeOf,
  startDriverFixture,
  TOPOLOGY_KEY,
} from '../src/driver/driver.fixture.ts'
import { volumeIdOf } from '../src/driver/ids.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'

const POOL_BYTES = 8 * GIB
const facts = await probeThisMachine()

for (const backend of ['loop', 'directory'] as const satisfies BackendName[]) {
  const skipMessage = backend === 'loop' ? skipReason(facts, ['loop', 'mount', 'xfs']) : undefined
  describe.skipIf(skipMessage)(
    `the local driver with ${backend} volumes${skipMessage ? ` (${skipMessage})` : ''}`,
    () => {
      testDriverContract(backend)
    },
  )
}

function testDriverContract(backend: BackendName): void {
  let fixture: DriverFixture
  beforeAll(async () => {
    fixture = await startDriverFixture({ backend, poolBytes: POOL_BYTES })
  })
  afterAll(() => fixture?.dispose())

  const listFiles = () => readdir(join(fixture.pool, 'volumes'))
  const listVolumes = async () =>
    (await fixture.csi.controller.listVolumes({})).entries.map(({ volume }) => volume!.volumeId)
  const getCapacity = async (parameters: Record<string, string> = {}) =>
    fixture.csi.controller.getCapacity({ parameters, accessibleTopology: { segments: { [TOPOLOGY_KEY]: NODE } } })

  describe('CreateVolume', () => {
    it('returns the same volume for the same name and request, and rejects a different request with that name', async () => {
      const id = await fixture.create('twice')
      expect(await fixture.create('twice')).toBe(id)
      expect(await outcomeOf(fixture.create('twice', { bytes: GIB }))).toMatch(
        /^ALREADY_EXISTS: .*"twice" already exists/,
      )
      expect(await outcomeOf(fixture.create('twice', { parameters: { provisioning: 'thin' } }))).toMatch(
        /^ALREADY_EXISTS/,
      )
      expect(await outcomeOf(fixture.create('twice', { mutableParameters: { iops: '5' } }))).toMatch(/^ALREADY_EXISTS/)
      expect(await fixture.create('twice', { topology: { [TOPOLOGY_KEY]: NODE } })).toBe(id)
      expect(await outcomeOf(fixture.create('twice', { topology: { [TOPOLOGY_KEY]: 'node-2' } }))).toMatch(
        /^ALREADY_EXISTS: .*accessible only from .*=node-1, which the requested topology does not include/,
      )
      await fixture.remove(id)
    })

    it.each(['../../../etc/passwd', '/', '.', 'ü'.repeat(128), 'a b\tc', '💾', '-rf', 'x'.repeat(128)])(
      'accepts the name %j without interpreting it',
      async (name) => {
        const id = await fixture.create(name)
        expect(id).toBe(volumeIdOf(name))
        expect(await listFiles()).toContain(backend === 'loop' ? `${id}.img` : id)
        await fixture.remove(id)
        expect(await listFiles()).toEqual([])
      },
    )

    it.each(['\u0000', 'a\u0007b', '\u009f', 'x'.repeat(129)])('rejects the name %j', async (name) => {
      expect(await outcomeOf(fixture.create(name))).toMatch(/^INVALID_ARGUMENT: The name /)
    })

    it('rejects an unknown parameter, lists the known ones, and creates nothing', async () => {
      expect(await outcomeOf(fixture.create('odd', { parameters: { speed: 'fast' } }))).toBe(
        'INVALID_ARGUMENT: Unknown class parameter "speed". Supported: fsType, provisioning, overcommit, ' +
          'iops, throughput, provisioned-iops-on-create, provisioned-throughput-on-create.',
      )
      expect(await listVolumes()).toEqual([])
      expect(await listFiles()).toEqual([])
    })

    it('rejects a volume for another node with RESOURCE_EXHAUSTED', async () => {
      expect(await outcomeOf(fixture.create('far', { topology: { [TOPOLOGY_KEY]: 'node-2' } }))).toMatch(
        /^RESOURCE_EXHAUSTED/,
      )
      expect(await outcomeOf(fixture.create('far', { topology: { 'example.com/zone': 'a' } }))).toMatch(
        /^RESOURCE_EXHAUSTED/,
      )
      const id = await fixture.create('near', { topology: { [TOPOLOGY_KEY]: NODE } })
      await fixture.remove(id)
    })

    it('rejects MULTI_NODE modes, because no other node reaches a volume', async () => {
      const call = fixture.csi.controller.createVolume({
        name: 'shared',
        volumeCapabilities: [
          { accessType: { case: 'mount', value: {} }, accessMode: { mode: Mode.MULTI_NODE_MULTI_WRITER } },
        ],
      })
      expect(await outcomeOf(call)).toMatch(/^INVALID_ARGUMENT: Access mode MULTI_NODE_MULTI_WRITER/)
    })

    it('creates one volume for three concurrent calls with one name, some of which may be aborted', async () => {
      const outcomes = await Promise.all([1, 2, 3].map(() => outcomeOf(fixture.create('race'))))
      expect(outcomes).toContain('OK')
      for (const outcome of outcomes) expect(outcome).toMatch(/^(OK|ABORTED: Another operation)/)
      await fixture.remove(volumeIdOf('race'))
    })
  })

  describe('an unknown volume id', () => {
    const UNKNOWN_IDS = ['../../etc/passwd', 'fake-vol-id', `v-${'a'.repeat(26)}`, '/', `${'v-'.padEnd(28, 'a')}/../x`]
    it.each(UNKNOWN_IDS)('%j is not found, except by delete and unpublish, which succeed', async (volumeId) => {
      const { controller, node } = fixture.csi
      const volumeCapability = { accessType: { case: 'mount' as const, value: {} }, accessMode: { mode: 1 } }
      const paths = {
        stagingTargetPath: fixture.path('no'),
        targetPath: fixture.path('no'),
        volumePath: fixture.path('no'),
      }
      const calls = [
        controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: 1n } }),
        controller.controllerModifyVolume({ volumeId, mutableParameters: { iops: '1' } }),
        controller.controllerGetVolume({ volumeId }),
        controller.validateVolumeCapabilities({ volumeId, volumeCapabilities: [volumeCapability] }),
        controller.createSnapshot({ name: 's', sourceVolumeId: volumeId }),
        node.nodeStageVolume({ volumeId, ...paths, volumeCapability }),
        node.nodeUnstageVolume({ volumeId, ...paths }),
        node.nodePublishVolume({ volumeId, ...paths, volumeCapability }),
        node.nodeGetVolumeStats({ volumeId, ...paths }),
        node.nodeExpandVolume({ volumeId, ...paths }),
      ]
      for (const outcome of await Promise.all(calls.map(outcomeOf)))
        expect(outcome).toMatch(/^NOT_FOUND: Volume .* does not exist/)
      expect(await outcomeOf(controller.deleteVolume({ volumeId }))).toBe('OK')
      expect(await outcomeOf(node.nodeUnpublishVolume({ volumeId, ...paths }))).toBe('OK')
      expect(await listFiles()).toEqual([])
    })
  })

  describe('capacity', () => {
    it('reports different capacity for two classes on one pool, and less after a volume is created', async () => {
      const reservedCapacity = await getCapacity()
      const thinCapacity = await getCapacity({ provisioning: 'thin', overcommit: '2' })
      expect(reservedCapacity.availableCapacity).toBe(BigInt(POOL_BYTES))
      expect(thinCapacity.availableCapacity).toBe(BigInt(2 * POOL_BYTES))
      expect(reservedCapacity.minimumVolumeSize).toBe(backend === 'loop' ? BigInt(300 * MIB) : 1n)

      const id = await fixture.create('most', { bytes: Number(reservedCapacity.maximumVolumeSize) })
      expect((await getCapacity()).availableCapacity).toBe(0n)
      expect(await outcomeOf(fixture.create('more'))).toMatch(
        /^RESOURCE_EXHAUSTED: 320Mi does not fit .* only 0 bytes available/,
      )
      expect(await listFiles()).toHaveLength(1)
      await fixture.remove(id)

      const thinVolume = await fixture.create('thin', {
        bytes: POOL_BYTES,
        parameters: { provisioning: 'thin', overcommit: '2' },
      })
      expect((await getCapacity()).availableCapacity).toBe(BigInt(POOL_BYTES / 2))
      await fixture.remove(thinVolume)
    })

    it('reports no capacity for another node or an invalid class', async () => {
      const otherNode = { accessibleTopology: { segments: { [TOPOLOGY_KEY]: 'node-2' } } }
      expect((await fixture.csi.controller.getCapacity(otherNode)).availableCapacity).toBe(0n)
      expect((await getCapacity({ speed: 'fast' })).availableCapacity).toBe(0n)
    })

    it('fails with OUT_OF_RANGE for more than the size of the pool, and with INVALID_ARGUMENT for a limit below the size', async () => {
      expect(await outcomeOf(fixture.create('huge', { bytes: POOL_BYTES + 1 }))).toMatch(/^OUT_OF_RANGE: .*whole pool/)
      expect(await outcomeOf(fixture.create('endless', { bytes: Number.MAX_SAFE_INTEGER }))).toMatch(/^OUT_OF_RANGE/)
      expect(await outcomeOf(fixture.create('backwards', { bytes: 2 * GIB, limitBytes: GIB }))).toMatch(
        /^INVALID_ARGUMENT/,
      )
    })
  })

  describe('expansion', () => {
    it('REX-8 expands to the exact size, never shrinks, and stays within the pool', async () => {
      const id = await fixture.create('grows')
      const expand = (requiredBytes: number, limitBytes = 0) =>
        fixture.csi.controller.controllerExpandVolume({
          volumeId: id,
          capacityRange: { requiredBytes: BigInt(requiredBytes), limitBytes: BigInt(limitBytes) },
        })
      const expansion = await expand(400 * MIB + 1)
      expect(expansion.capacityBytes).toBe(BigInt(400 * MIB + 1))
      expect(expansion.nodeExpansionRequired).toBe(backend === 'loop')
      expect((await expand(GIB / 4)).capacityBytes).toBe(BigInt(400 * MIB + 1))
      expect(await outcomeOf(expand(0, 300 * MIB))).toMatch(/^OUT_OF_RANGE: .*never shrink/)
      expect(await outcomeOf(expand(POOL_BYTES * 2))).toMatch(/^OUT_OF_RANGE/)
      const neighbour = await fixture.create('neighbour', { bytes: 6 * GIB })
      expect(await outcomeOf(expand(3 * GIB)), 'final, so that a smaller size can be requested').toMatch(
        /^OUT_OF_RANGE: .* available/,
      )
      const { volume } = await fixture.csi.controller.controllerGetVolume({ volumeId: id })
      expect(volume?.capacityBytes).toBe(BigInt(400 * MIB + 1))
      await fixture.remove(neighbour)
      await fixture.remove(id)
    })
  })

  describe('staging and publishing', () => {
    it('keeps data through unpublish, unstage, stage and publish', async () => {
      const { id, path } = await fixture.use('data')
      await writeFile(join(path, 'orders'), 'twelve')
      await fixture.unpublish(id)
      await fixture.unstage(id)
      await fixture.stage(id)
      expect(await readFile(join(await fixture.publish(id), 'orders'), 'utf8')).toBe('twelve')
      await fixture.unpublish(id)
      expect(await readdir(fixture.path(''))).not.toContain(`publish-${id}`)
      await fixture.unstage(id)
      await fixture.remove(id)
    })

    it('accepts repeated calls, and rejects incompatible ones and calls in the wrong order', async () => {
      const id = await fixture.create('steps')
      expect(await outcomeOf(fixture.publish(id))).toMatch(/^FAILED_PRECONDITION: .*is not staged/)
      await fixture.stage(id)
      expect(await outcomeOf(fixture.stage(id))).toBe('OK')
      expect(await outcomeOf(fixture.stage(id, { mode: Mode.SINGLE_NODE_WRITER }))).toMatch(/^ALREADY_EXISTS/)
      await fixture.publish(id)
      expect(await outcomeOf(fixture.publish(id))).toBe('OK')
      expect(await outcomeOf(fixture.publish(id, { mode: Mode.SINGLE_NODE_WRITER }))).toMatch(/^ALREADY_EXISTS/)
      await fixture.publish(id, { targetName: 'second' })
      expect(
        await outcomeOf(fixture.publish(id, { targetName: 'third', mode: Mode.SINGLE_NODE_SINGLE_WRITER })),
      ).toMatch(/^FAILED_PRECONDITION: .*only one target path/)
      expect(await readdir(fixture.path(''))).not.toContain('third')
      expect(await outcomeOf(fixture.remove(id))).toMatch(/^FAILED_PRECONDITION/)
      await fixture.unpublish(id, 'second')
      await fixture.unpublish(id)
      await fixture.unpublish(id)
      expect(await outcomeOf(fixture.remove(id))).toMatch(/^FAILED_PRECONDITION: .*staged/)
      await fixture.unstage(id)
      await fixture.unstage(id)
      await fixture.remove(id)
      await fixture.remove(id)
      expect(await listFiles()).toEqual([])
    })

    it('neither publishes to nor removes a non-empty directory', async () => {
      const id = await fixture.create('over')
      await fixture.stage(id)
      const path = fixture.path(`publish-${id}`)
      await mkdir(path)
      await writeFile(join(path, 'foreign'), 'foreign')
      expect(await outcomeOf(fixture.publish(id))).toMatch(/^FAILED_PRECONDITION: The volume cannot be published at/)
      expect(await outcomeOf(fixture.unpublish(id))).toBe('OK')
      expect(await readFile(join(path, 'foreign'), 'utf8')).toBe('foreign')
      await rm(join(path, 'foreign'))
      expect(await outcomeOf(fixture.unpublish(id))).toBe('OK')
      expect(await readdir(path)).toEqual([]) // unpublish must not remove a path at which the volume was not published
      await rm(path, { recursive: true })
      await fixture.unstage(id)
      await fixture.remove(id)
    })

    it('requires an absolute staging path, and rejects inline volumes', async () => {
      const id = await fixture.create('paths')
      const volumeCapability = { accessType: { case: 'mount' as const, value: {} }, accessMode: { mode: 1 } }
      const { node } = fixture.csi
      const stageCall = node.nodeStageVolume({ volumeId: id, stagingTargetPath: 'some/path', volumeCapability })
      expect(await outcomeOf(stageCall)).toMatch(/^INVALID_ARGUMENT: staging_target_path "some\/path"/)
      const inlinePublish = node.nodePublishVolume({
        volumeId: id,
        targetPath: fixture.path('x'),
        volumeCapability,
        volumeContext: { 'csi.storage.k8s.io/ephemeral': 'true' },
      })
      expect(await outcomeOf(inlinePublish)).toMatch(/^INVALID_ARGUMENT: Inline/)
      await fixture.remove(id)
    })

    it("reports volume statistics at the volume's paths only", async () => {
      const { id, path } = await fixture.use('stats', { bytes: GIB })
      await writeFile(join(path, 'file'), Buffer.alloc(5 * MIB, 1))
      const { usage } = await fixture.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: `${path}/` })
      const [bytes, inodes] = usage
      expect(bytes?.total).toBeGreaterThan(BigInt(900 * MIB))
      expect(bytes?.total).toBeLessThanOrEqual(BigInt(GIB))
      expect(bytes!.used + bytes!.available).toBeLessThanOrEqual(bytes!.total)
      if (backend === 'loop') expect(inodes?.used).toBeGreaterThan(0n)
      const foreignPath = fixture.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: fixture.pool })
      expect(await outcomeOf(foreignPath)).toMatch(/^NOT_FOUND: Volume .* neither staged nor published/)
      await fixture.unpublish(id)
      await fixture.unstage(id)
      await fixture.remove(id)
    })
  })

  describe('snapshots and clones', () => {
    it('keeps the data of a snapshot after its volume is deleted, and restores it to a larger volume', async () => {
      const { id, path } = await fixture.use('original')
      await writeFile(join(path, 'a'), 'before')
      const snapshotResponse = await fixture.csi.controller.createSnapshot({ name: 'cut', sourceVolumeId: id })
      await writeFile(join(path, 'a'), 'after')
      const snapshotId = snapshotResponse.snapshot!.snapshotId
      expect(snapshotResponse.snapshot?.readyToUse).toBe(true)
      expect((await fixture.csi.controller.createSnapshot({ name: 'cut', sourceVolumeId: id })).snapshot).toEqual(
        snapshotResponse.snapshot,
      )
      await fixture.unpublish(id)
      await fixture.unstage(id)
      await fixture.remove(id)

      const source = { type: { case: 'snapshot' as const, value: { snapshotId } } }
      expect(await outcomeOf(fixture.create('small', { bytes: 300 * MIB, source }))).toMatch(
        /^OUT_OF_RANGE: A copy of 320Mi/,
      )
      const restoredVolume = await fixture.use('restored', { bytes: 600 * MIB, source })
      expect(await readFile(join(restoredVolume.path, 'a'), 'utf8')).toBe('before')
      const stats = await fixture.csi.node.nodeGetVolumeStats({
        volumeId: restoredVolume.id,
        volumePath: restoredVolume.path,
      })
      expect(stats.usage[0]!.total).toBeGreaterThan(BigInt(500 * MIB))
      await fixture.unpublish(restoredVolume.id)
      await fixture.unstage(restoredVolume.id)
      await fixture.remove(restoredVolume.id)
      await fixture.csi.controller.deleteSnapshot({ snapshotId })
      expect(await readdir(join(fixture.pool, 'snapshots'))).toEqual([])
    })

    it('clones a volume in use, and keeps both volumes usable and independent', async () => {
      const original = await fixture.use('cloned')
      await writeFile(join(original.path, 'a'), 'shared')
      const source = { type: { case: 'volume' as const, value: { volumeId: original.id } } }
      const clone = await fixture.use('clone', { source })
      await writeFile(join(clone.path, 'a'), 'own')
      expect(await readFile(join(original.path, 'a'), 'utf8')).toBe('shared')
      expect(await readFile(join(clone.path, 'a'), 'utf8')).toBe('own')
      for (const { id } of [original, clone]) {
        await fixture.unpublish(id)
        await fixture.unstage(id)
        await fixture.remove(id)
      }
    })

    it('fails with NOT_FOUND for a missing source', async () => {
      const volume = { type: { case: 'volume' as const, value: { volumeId: volumeIdOf('nothing') } } }
      const snapshot = { type: { case: 'snapshot' as const, value: { snapshotId: '../x' } } }
      expect(await outcomeOf(fixture.create('from-nothing', { source: volume }))).toMatch(/^NOT_FOUND/)
      expect(await outcomeOf(fixture.create('from-nothing', { source: snapshot }))).toMatch(/^NOT_FOUND/)
    })
  })

  describe('lists', () => {
    it("continues a list if a page's last volume was deleted", async () => {
      const ids = []
      for (const name of ['p1', 'p2', 'p3', 'p4', 'p5']) ids.push(await fixture.create(name, { parameters: THIN }))
      const firstPage = await fixture.csi.controller.listVolumes({ maxEntries: 2 })
      expect(firstPage.entries).toHaveLength(2)
      await fixture.remove(firstPage.entries[1]!.volume!.volumeId)
      const secondPage = await fixture.csi.controller.listVolumes({ startingToken: firstPage.nextToken })
      expect(secondPage.nextToken).toBe('')
      const listedIds = [...firstPage.entries, ...secondPage.entries].map(({ volume }) => volume!.volumeId)
      expect(listedIds).toEqual([...ids].sort())
      expect(await outcomeOf(fixture.csi.controller.listVolumes({ startingToken: '../x' }))).toMatch(/^ABORTED/)
      for (const id of ids) await fixture.remove(id)
    })
  })

  describe('limits', () => {
    const itWith = (name: BackendName) => (backend === name ? it : () => {})

    itWith('directory')('rejects limits, which a directory cannot enforce, and accepts 0', async () => {
      const limits = { iops: '500' }
      const rejection =
        /^INVALID_ARGUMENT: iops and throughput cannot be enforced on this node: The volume is a directory/
      expect(await outcomeOf(fixture.create('limited', { mutableParameters: limits }))).toMatch(rejection)
      expect(await outcomeOf(fixture.create('limited', { parameters: { throughput: '10' } }))).toMatch(rejection)
      const volumeId = await fixture.create('free', { mutableParameters: { iops: '0' } })
      const { controllerModifyVolume } = fixture.csi.controller
      expect(await outcomeOf(controllerModifyVolume({ volumeId, mutableParameters: limits }))).toMatch(rejection)
      expect(await outcomeOf(controllerModifyVolume({ volumeId, mutableParameters: { iops: '0' } }))).toBe('OK')
      await fixture.remove(volumeId)
      expect(await listVolumes()).toEqual([])
    })

    itWith('loop')('modifies all attributes or none, and reports limits that are not enforced', async () => {
      const { id } = await fixture.use('limited', { mutableParameters: { iops: '500' } })
      const modify = (mutableParameters: Record<string, string>) =>
        fixture.csi.controller.controllerModifyVolume({ volumeId: id, mutableParameters })
      const getCondition = async () =>
        (await fixture.csi.controller.controllerGetVolume({ volumeId: id })).status!.volumeCondition!

      expect(await outcomeOf(modify({ throughput: '10', iops: 'many' }))).toMatch(/^INVALID_ARGUMENT/)
      expect((await getCondition()).message).toMatch(/limits of 500 iops are not enforced: /)
      await modify({ throughput: '10' })
      expect(await getCondition()).toMatchObject({
        abnormal: false,
        message: expect.stringMatching(/limits of 500 iops and 10MiB\/s are not enforced/),
      })
      await modify({ throughput: '0', iops: '0' })
      expect((await getCondition()).message).toBe('The volume is healthy.')
      await fixture.unpublish(id)
      await fixture.unstage(id)
      await fixture.remove(id)
    })
  })

  describe('restarts and damage', () => {
    it('keeps volumes and mounts across a restart', async () => {
      const { id, path } = await fixture.use('kept', backend === 'loop' ? { mutableParameters: { iops: '100' } } : {})
      await fixture.restart()
      expect(await listVolumes()).toEqual([id])
      expect(await outcomeOf(fixture.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: path }))).toBe('OK')
      expect(await outcomeOf(fixture.stage(id))).toBe('OK')
      expect(await outcomeOf(fixture.publish(id, { mode: Mode.SINGLE_NODE_WRITER }))).toMatch(/^ALREADY_EXISTS/)
      await fixture.unpublish(id)
      await fixture.unstage(id)
      await fixture.remove(id)
    })

    it('sets an invalid record aside and keeps its volume', async () => {
      const id = await fixture.create('invalid-record')
      await fixture.stop()
      const record = join(fixture.pool, '.stowage', 'volumes', `${id}.json`)
      await writeFile(record, (await readFile(record, 'utf8')).slice(0, 40))
      await fixture.start()
      expect(await listVolumes()).toEqual([])
      expect(await readdir(join(fixture.pool, '.stowage', 'set-aside'))).toEqual([`volumes-${id}.json`])
      expect(await listFiles()).toHaveLength(1)
      expect(fixture.logLines.join('\n')).toMatch(/a record is invalid and was set aside/)
      expect(fixture.logLines.join('\n')).toMatch(/the pool contains files without a record/)

      // The name stays reserved while the data exists, and its space stays allocated.
      const data = (await listFiles())[0]!
      const missingRecord = new RegExp(
        `^FAILED_PRECONDITION: .*${data} exists in the pool, but its record .*set-aside/volumes-${id}`,
      )
      expect(await outcomeOf(fixture.create('invalid-record'))).toMatch(missingRecord)
      expect(await outcomeOf(fixture.remove(id))).toMatch(missingRecord)
      expect(await listFiles()).toEqual([data])
      const usedBytes = POOL_BYTES - Number((await getCapacity()).availableCapacity)
      // A fragmented file needs a few more blocks for its extent list.
      const minimumBytes = backend === 'loop' ? 320 * MIB : 0
      expect(usedBytes).toBeGreaterThanOrEqual(minimumBytes)
      expect(usedBytes - minimumBytes).toBeLessThan(MIB)

      await rm(join(fixture.pool, 'volumes'), { recursive: true })
      await fixture.restart()
      await fixture.remove(await fixture.create('invalid-record'))
    })

    it('keeps the name and the data of a snapshot with an invalid record', async () => {
      const id = await fixture.create('source')
      const createSnapshot = () => fixture.csi.controller.createSnapshot({ name: 'snapshot', sourceVolumeId: id })
      const snapshotId = (await createSnapshot()).snapshot!.snapshotId
      await fixture.stop()
      await writeFile(join(fixture.pool, '.stowage', 'snapshots', `${snapshotId}.json`), '{')
      await fixture.start()
      expect(await outcomeOf(createSnapshot())).toMatch(/^FAILED_PRECONDITION: .*set-aside\/snapshots-s-/)
      expect(await outcomeOf(fixture.csi.controller.deleteSnapshot({ snapshotId }))).toMatch(/^FAILED_PRECONDITION/)
      expect(await readdir(join(fixture.pool, 'snapshots'))).toHaveLength(1)
      await rm(join(fixture.pool, 'snapshots'), { recursive: true })
      await fixture.restart()
      await fixture.remove(id)
    })

    it('reports a snapshot with missing content as not ready to use', async () => {
      const id = await fixture.create('source')
      const { snapshot } = await fixture.csi.controller.createSnapshot({ name: 'lost', sourceVolumeId: id })
      const { snapshotId } = snapshot!
      await rm(join(fixture.pool, 'snapshots', (await readdir(join(fixture.pool, 'snapshots')))[0]!), {
        recursive: true,
      })
      expect((await fixture.csi.controller.getSnapshot({ snapshotId })).snapshot?.readyToUse).toBe(false)
      const source = { type: { case: 'snapshot' as const, value: { snapshotId } } }
      expect(await outcomeOf(fixture.create('from-lost', { source }))).toMatch(
        /^FAILED_PRECONDITION: Snapshot .* cannot be restored\. The (file|directory) .* of the snapshot is missing/,
      )
      await fixture.csi.controller.deleteSnapshot({ snapshotId })
      await fixture.remove(id)
    })

    it('starts with damaged files and reports them', async () => {
      const id = await fixture.create('intact')
      await fixture.stop()
      await writeFile(join(fixture.pool, '.stowage', 'pool.json'), '{"backend":')
      await mkdir(join(fixture.pool, '.stowage', 'volumes', 'a-directory'))
      await fixture.start()
      expect(fixture.runningDriver.backend).toBe(backend)
      expect(await listVolumes()).toEqual([id])
      expect(fixture.logLines.join('\n')).toMatch(/marker is invalid and was set aside.*pool\.json/)
      expect(fixture.logLines.join('\n')).toMatch(/cannot read a record.*volumes\/a-directory/)
      await rm(join(fixture.pool, '.stowage', 'volumes', 'a-directory'), { recursive: true })
      await fixture.remove(id)
    })

    it('reports a volume whose content was deleted by a user, and can still delete it', async () => {
      const id = await fixture.create('emptied')
      await rm(join(fixture.pool, 'volumes', (await listFiles())[0]!), { recursive: true })
      const { status } = await fixture.csi.controller.controllerGetVolume({ volumeId: id })
      expect(status?.volumeCondition).toMatchObject({ abnormal: true, message: expect.stringContaining('is missing') })
      const missingContent = /^FAILED_PRECONDITION: .*is missing in the pool/
      expect(await outcomeOf(fixture.stage(id))).toMatch(missingContent)
      const { controller } = fixture.csi
      const source = { type: { case: 'volume' as const, value: { volumeId: id } } }
      expect(await outcomeOf(controller.createSnapshot({ name: 'of-nothing', sourceVolumeId: id }))).toMatch(
        missingContent,
      )
      expect(await outcomeOf(fixture.create('copy-of-nothing', { source }))).toMatch(missingContent)
      const expansion = controller.controllerExpandVolume({
        volumeId: id,
        capacityRange: { requiredBytes: BigInt(GIB) },
      })
      expect(await outcomeOf(expansion)).toMatch(missingContent)
      expect(await listFiles()).toEqual([])
      await fixture.restart()
      expect(fixture.logLines.join('\n')).toMatch(/a volume has a problem/)
      await fixture.remove(id)
      expect(await listVolumes()).toEqual([])
    })

    it('rejects a second driver on the same pool', async () => {
      await expect(fixture.start()).rejects.toThrow(/in use by another driver/)
    })
  })
}

const THIN = { provisioning: 'thin' }
