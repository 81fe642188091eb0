// What the local driver guarantees with either backend: one suite for both.
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
  const skipped = backend === 'loop' ? skipReason(facts, ['loop', 'mount', 'xfs']) : undefined
  describe.skipIf(skipped)(`the local driver with ${backend} volumes${skipped ? ` (${skipped})` : ''}`, () => {
    contract(backend)
  })
}

function contract(backend: BackendName): void {
  let trial: DriverFixture
  beforeAll(async () => {
    trial = await startDriverFixture({ backend, poolBytes: POOL_BYTES })
  })
  afterAll(() => trial?.dispose())

  const files = () => readdir(join(trial.pool, 'volumes'))
  const volumes = async () => (await trial.csi.controller.listVolumes({})).entries.map(({ volume }) => volume!.volumeId)
  const capacity = async (parameters: Record<string, string> = {}) =>
    trial.csi.controller.getCapacity({ parameters, accessibleTopology: { segments: { [TOPOLOGY_KEY]: NODE } } })

  describe('creating', () => {
    it('SYS-6 returns the same volume for the same name and request, and rejects another size under that name', async () => {
      const id = await trial.create('twice')
      expect(await trial.create('twice')).toBe(id)
      expect(await outcomeOf(trial.create('twice', { bytes: GIB }))).toMatch(
        /^ALREADY_EXISTS: .*"twice" already exists/,
      )
      expect(await outcomeOf(trial.create('twice', { parameters: { provisioning: 'thin' } }))).toMatch(
        /^ALREADY_EXISTS/,
      )
      expect(await outcomeOf(trial.create('twice', { mutable: { iops: '5' } }))).toMatch(/^ALREADY_EXISTS/)
      await trial.remove(id)
    })

    it.each(['../../../etc/passwd', '/', '.', 'ü'.repeat(128), 'a b\tc', '💾', '-rf', 'x'.repeat(128)])(
      'SYS-6 accepts the name %j without interpreting it',
      async (name) => {
        const id = await trial.create(name)
        expect(id).toBe(volumeIdOf(name))
        expect(await files()).toContain(backend === 'loop' ? `${id}.img` : id)
        await trial.remove(id)
        expect(await files()).toEqual([])
      },
    )

    it.each(['\u0000', 'a\u0007b', '\u009f', 'x'.repeat(129)])('SYS-6 rejects the name %j', async (name) => {
      expect(await outcomeOf(trial.create(name))).toMatch(/^INVALID_ARGUMENT: The name /)
    })

    it('PROV-19 rejects an unknown parameter, lists the known ones, and creates nothing', async () => {
      expect(await outcomeOf(trial.create('odd', { parameters: { speed: 'fast' } }))).toBe(
        'INVALID_ARGUMENT: Unknown class parameter "speed". Supported: fsType, provisioning, overcommit, ' +
          'iops, throughput, provisioned-iops-on-create, provisioned-throughput-on-create.',
      )
      expect(await volumes()).toEqual([])
      expect(await files()).toEqual([])
    })

    it('SYS-6 rejects a volume for another node, so that the scheduler can choose again', async () => {
      expect(await outcomeOf(trial.create('far', { topology: { [TOPOLOGY_KEY]: 'node-2' } }))).toMatch(
        /^RESOURCE_EXHAUSTED/,
      )
      expect(await outcomeOf(trial.create('far', { topology: { 'example.com/zone': 'a' } }))).toMatch(
        /^RESOURCE_EXHAUSTED/,
      )
      const id = await trial.create('near', { topology: { [TOPOLOGY_KEY]: NODE } })
      await trial.remove(id)
    })

    it('SYS-6 rejects MULTI_NODE modes, because no other node reaches a volume', async () => {
      const call = trial.csi.controller.createVolume({
        name: 'shared',
        volumeCapabilities: [
          { accessType: { case: 'mount', value: {} }, accessMode: { mode: Mode.MULTI_NODE_MULTI_WRITER } },
        ],
      })
      expect(await outcomeOf(call)).toMatch(/^INVALID_ARGUMENT: Access mode MULTI_NODE_MULTI_WRITER/)
    })

    it('SYS-6 creates one volume for two concurrent calls with one name', async () => {
      const outcomes = await Promise.all([1, 2, 3].map(() => outcomeOf(trial.create('race'))))
      expect(outcomes).toContain('OK')
      for (const outcome of outcomes) expect(outcome).toMatch(/^(OK|ABORTED: Another operation)/)
      await trial.remove(volumeIdOf('race'))
    })
  })

  describe('unknown ids', () => {
    const HOSTILE = ['../../etc/passwd', 'fake-vol-id', `v-${'a'.repeat(26)}`, '/', `${'v-'.padEnd(28, 'a')}/../x`]
    it.each(HOSTILE)('SYS-6 every call reports %j as not found', async (volumeId) => {
      const { controller, node } = trial.csi
      const volumeCapability = { accessType: { case: 'mount' as const, value: {} }, accessMode: { mode: 1 } }
      const at = { stagingTargetPath: trial.path('no'), targetPath: trial.path('no'), volumePath: trial.path('no') }
      const calls = [
        controller.controllerExpandVolume({ volumeId, capacityRange: { requiredBytes: 1n } }),
        controller.controllerModifyVolume({ volumeId, mutableParameters: { iops: '1' } }),
        controller.controllerGetVolume({ volumeId }),
        controller.validateVolumeCapabilities({ volumeId, volumeCapabilities: [volumeCapability] }),
        controller.createSnapshot({ name: 's', sourceVolumeId: volumeId }),
        node.nodeStageVolume({ volumeId, ...at, volumeCapability }),
        node.nodeUnstageVolume({ volumeId, ...at }),
        node.nodePublishVolume({ volumeId, ...at, volumeCapability }),
        node.nodeGetVolumeStats({ volumeId, ...at }),
        node.nodeExpandVolume({ volumeId, ...at }),
      ]
      for (const call of calls) expect(await outcomeOf(call)).toMatch(/^NOT_FOUND: Volume .* does not exist/)
      expect(await outcomeOf(controller.deleteVolume({ volumeId }))).toBe('OK')
      expect(await outcomeOf(node.nodeUnpublishVolume({ volumeId, ...at }))).toBe('OK')
      expect(await files()).toEqual([])
    })
  })

  describe('capacity', () => {
    it('PROV-19 reports different capacity for two classes on one pool, and creates volumes of those sizes', async () => {
      const reserved = await capacity()
      const thin = await capacity({ provisioning: 'thin', overcommit: '2' })
      expect(reserved.availableCapacity).toBe(BigInt(POOL_BYTES))
      expect(thin.availableCapacity).toBe(BigInt(2 * POOL_BYTES))
      expect(reserved.minimumVolumeSize).toBe(backend === 'loop' ? BigInt(300 * MIB) : 1n)

      const id = await trial.create('most', { bytes: Number(reserved.maximumVolumeSize) })
      expect((await capacity()).availableCapacity).toBe(0n)
      expect(await outcomeOf(trial.create('more'))).toMatch(
        /^RESOURCE_EXHAUSTED: 320Mi do not fit .* 0 bytes are available/,
      )
      expect(await files()).toHaveLength(1)
      await trial.remove(id)

      const large = await trial.create('thin', {
        bytes: POOL_BYTES,
        parameters: { provisioning: 'thin', overcommit: '2' },
      })
      expect((await capacity()).availableCapacity).toBe(BigInt(POOL_BYTES / 2))
      await trial.remove(large)
    })

    it('PROV-19 reports no capacity where nothing can be created', async () => {
      const elsewhere = { accessibleTopology: { segments: { [TOPOLOGY_KEY]: 'node-2' } } }
      expect((await trial.csi.controller.getCapacity(elsewhere)).availableCapacity).toBe(0n)
      expect((await capacity({ speed: 'fast' })).availableCapacity).toBe(0n)
    })

    it('SYS-6 answers OUT_OF_RANGE for more than the pool can ever hold', async () => {
      expect(await outcomeOf(trial.create('huge', { bytes: POOL_BYTES + 1 }))).toMatch(/^OUT_OF_RANGE: .*whole pool/)
      expect(await outcomeOf(trial.create('endless', { bytes: Number.MAX_SAFE_INTEGER }))).toMatch(/^OUT_OF_RANGE/)
      expect(await outcomeOf(trial.create('backwards', { bytes: 2 * GIB, limitBytes: GIB }))).toMatch(
        /^INVALID_ARGUMENT/,
      )
    })
  })

  describe('expansion', () => {
    it('REX-1 expands to the byte, never shrinks, and stays within the pool', async () => {
      const id = await trial.create('grows')
      const expand = (requiredBytes: number, limitBytes = 0) =>
        trial.csi.controller.controllerExpandVolume({
          volumeId: id,
          capacityRange: { requiredBytes: BigInt(requiredBytes), limitBytes: BigInt(limitBytes) },
        })
      const grown = await expand(400 * MIB + 1)
      expect(grown.capacityBytes).toBe(BigInt(400 * MIB + 1))
      expect(grown.nodeExpansionRequired).toBe(backend === 'loop')
      expect((await expand(GIB / 4)).capacityBytes).toBe(BigInt(400 * MIB + 1))
      expect(await outcomeOf(expand(0, 300 * MIB))).toMatch(/^OUT_OF_RANGE: .*never shrink/)
      expect(await outcomeOf(expand(POOL_BYTES * 2))).toMatch(/^OUT_OF_RANGE/)
      const other = await trial.create('neighbour', { bytes: 6 * GIB })
      expect(await outcomeOf(expand(3 * GIB)), 'final: a smaller size may follow').toMatch(
        /^OUT_OF_RANGE: .* are available/,
      )
      const { volume } = await trial.csi.controller.controllerGetVolume({ volumeId: id })
      expect(volume?.capacityBytes).toBe(BigInt(400 * MIB + 1))
      await trial.remove(other)
      await trial.remove(id)
    })
  })

  describe('staging and publishing', () => {
    it('SYS-6 keeps data through unpublish, unstage, stage and publish', async () => {
      const { id, path } = await trial.use('data')
      await writeFile(join(path, 'orders'), 'twelve')
      await trial.unpublish(id)
      await trial.unstage(id)
      await trial.stage(id)
      expect(await readFile(join(await trial.publish(id), 'orders'), 'utf8')).toBe('twelve')
      await trial.unpublish(id)
      expect(await readdir(trial.path(''))).not.toContain(`publish-${id}`)
      await trial.unstage(id)
      await trial.remove(id)
    })

    it('SYS-6 every step is idempotent, and rejected out of order', async () => {
      const id = await trial.create('steps')
      expect(await outcomeOf(trial.publish(id))).toMatch(/^FAILED_PRECONDITION: .*is not staged/)
      await trial.stage(id)
      expect(await outcomeOf(trial.stage(id))).toBe('OK')
      expect(await outcomeOf(trial.stage(id, { mode: Mode.SINGLE_NODE_WRITER }))).toMatch(/^ALREADY_EXISTS/)
      await trial.publish(id)
      expect(await outcomeOf(trial.publish(id))).toBe('OK')
      expect(await outcomeOf(trial.publish(id, { mode: Mode.SINGLE_NODE_WRITER }))).toMatch(/^ALREADY_EXISTS/)
      await trial.publish(id, { at: 'second' })
      expect(await outcomeOf(trial.publish(id, { at: 'third', mode: Mode.SINGLE_NODE_SINGLE_WRITER }))).toMatch(
        /^FAILED_PRECONDITION: .*only one target path/,
      )
      expect(await readdir(trial.path(''))).not.toContain('third')
      expect(await outcomeOf(trial.remove(id))).toMatch(/^FAILED_PRECONDITION/)
      await trial.unpublish(id, 'second')
      await trial.unpublish(id)
      await trial.unpublish(id)
      expect(await outcomeOf(trial.remove(id))).toMatch(/^FAILED_PRECONDITION: .*staged/)
      await trial.unstage(id)
      await trial.unstage(id)
      await trial.remove(id)
      await trial.remove(id)
      expect(await files()).toEqual([])
    })

    it('SYS-6 neither publishes over a non-empty directory nor removes it', async () => {
      const id = await trial.create('over')
      await trial.stage(id)
      const path = trial.path(`publish-${id}`)
      await mkdir(path)
      await writeFile(join(path, 'theirs'), 'theirs')
      expect(await outcomeOf(trial.publish(id))).toMatch(/^FAILED_PRECONDITION: The volume cannot be published at/)
      expect(await outcomeOf(trial.unpublish(id))).toBe('OK')
      expect(await readFile(join(path, 'theirs'), 'utf8')).toBe('theirs')
      await rm(join(path, 'theirs'))
      expect(await outcomeOf(trial.unpublish(id))).toBe('OK')
      expect(await readdir(path)).toEqual([]) // nothing was published there, so unpublish must not remove it
      await rm(path, { recursive: true })
      await trial.unstage(id)
      await trial.remove(id)
    })

    it('SYS-6 requires absolute paths, and rejects inline volumes', async () => {
      const id = await trial.create('paths')
      const volumeCapability = { accessType: { case: 'mount' as const, value: {} }, accessMode: { mode: 1 } }
      const { node } = trial.csi
      const staging = node.nodeStageVolume({ volumeId: id, stagingTargetPath: 'some/path', volumeCapability })
      expect(await outcomeOf(staging)).toMatch(/^INVALID_ARGUMENT: staging_target_path "some\/path"/)
      const inline = node.nodePublishVolume({
        volumeId: id,
        targetPath: trial.path('x'),
        volumeCapability,
        volumeContext: { 'csi.storage.k8s.io/ephemeral': 'true' },
      })
      expect(await outcomeOf(inline)).toMatch(/^INVALID_ARGUMENT: Inline/)
      await trial.remove(id)
    })

    it('PIO-8 reports volume statistics at the paths of the volume only', async () => {
      const { id, path } = await trial.use('stats', { bytes: GIB })
      await writeFile(join(path, 'file'), Buffer.alloc(5 * MIB, 1))
      const { usage } = await trial.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: `${path}/` })
      const [bytes, inodes] = usage
      expect(bytes?.total).toBeGreaterThan(BigInt(900 * MIB))
      expect(bytes?.total).toBeLessThanOrEqual(BigInt(GIB))
      expect(bytes!.used + bytes!.available).toBeLessThanOrEqual(bytes!.total)
      if (backend === 'loop') expect(inodes?.used).toBeGreaterThan(0n)
      const astray = trial.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: trial.pool })
      expect(await outcomeOf(astray)).toMatch(/^NOT_FOUND: Volume .* neither staged nor published/)
      await trial.unpublish(id)
      await trial.unstage(id)
      await trial.remove(id)
    })
  })

  describe('snapshots and clones', () => {
    it('SYS-6 a snapshot keeps its data, outlives its volume, and restores to a larger volume', async () => {
      const { id, path } = await trial.use('original')
      await writeFile(join(path, 'a'), 'before')
      const cut = await trial.csi.controller.createSnapshot({ name: 'cut', sourceVolumeId: id })
      await writeFile(join(path, 'a'), 'after')
      const snapshotId = cut.snapshot!.snapshotId
      expect(cut.snapshot?.readyToUse).toBe(true)
      expect((await trial.csi.controller.createSnapshot({ name: 'cut', sourceVolumeId: id })).snapshot).toEqual(
        cut.snapshot,
      )
      await trial.unpublish(id)
      await trial.unstage(id)
      await trial.remove(id)

      const source = { type: { case: 'snapshot' as const, value: { snapshotId } } }
      expect(await outcomeOf(trial.create('small', { bytes: 300 * MIB, source }))).toMatch(
        /^OUT_OF_RANGE: A copy of 320Mi/,
      )
      const restored = await trial.use('restored', { bytes: 600 * MIB, source })
      expect(await readFile(join(restored.path, 'a'), 'utf8')).toBe('before')
      const stats = await trial.csi.node.nodeGetVolumeStats({ volumeId: restored.id, volumePath: restored.path })
      expect(stats.usage[0]!.total).toBeGreaterThan(BigInt(500 * MIB))
      await trial.unpublish(restored.id)
      await trial.unstage(restored.id)
      await trial.remove(restored.id)
      await trial.csi.controller.deleteSnapshot({ snapshotId })
      expect(await readdir(join(trial.pool, 'snapshots'))).toEqual([])
    })

    it('SYS-6 clones a volume in use, and both volumes can be used', async () => {
      const original = await trial.use('cloned')
      await writeFile(join(original.path, 'a'), 'shared')
      const source = { type: { case: 'volume' as const, value: { volumeId: original.id } } }
      const clone = await trial.use('clone', { source })
      await writeFile(join(clone.path, 'a'), 'own')
      expect(await readFile(join(original.path, 'a'), 'utf8')).toBe('shared')
      expect(await readFile(join(clone.path, 'a'), 'utf8')).toBe('own')
      for (const { id } of [original, clone]) {
        await trial.unpublish(id)
        await trial.unstage(id)
        await trial.remove(id)
      }
    })

    it('SYS-6 answers NOT_FOUND for a missing source', async () => {
      const volume = { type: { case: 'volume' as const, value: { volumeId: volumeIdOf('nothing') } } }
      const snapshot = { type: { case: 'snapshot' as const, value: { snapshotId: '../x' } } }
      expect(await outcomeOf(trial.create('from-nothing', { source: volume }))).toMatch(/^NOT_FOUND/)
      expect(await outcomeOf(trial.create('from-nothing', { source: snapshot }))).toMatch(/^NOT_FOUND/)
    })
  })

  describe('lists', () => {
    it('SYS-6 continues a list after a page whose volumes were deleted meanwhile', async () => {
      const ids = []
      for (const name of ['p1', 'p2', 'p3', 'p4', 'p5']) ids.push(await trial.create(name, { parameters: THIN }))
      const first = await trial.csi.controller.listVolumes({ maxEntries: 2 })
      expect(first.entries).toHaveLength(2)
      await trial.remove(first.entries[1]!.volume!.volumeId)
      const rest = await trial.csi.controller.listVolumes({ startingToken: first.nextToken })
      expect(rest.nextToken).toBe('')
      const seen = [...first.entries, ...rest.entries].map(({ volume }) => volume!.volumeId)
      expect(seen).toEqual([...ids].sort())
      expect(await outcomeOf(trial.csi.controller.listVolumes({ startingToken: '../x' }))).toMatch(/^ABORTED/)
      for (const id of ids) await trial.remove(id)
    })
  })

  describe('limits', () => {
    it('VAC-5 modifies all attributes or none, and reports limits that are not enforced', async () => {
      const { id } = await trial.use('rated', { mutable: { iops: '500' } })
      const modify = (mutableParameters: Record<string, string>) =>
        trial.csi.controller.controllerModifyVolume({ volumeId: id, mutableParameters })
      const condition = async () =>
        (await trial.csi.controller.controllerGetVolume({ volumeId: id })).status!.volumeCondition!

      expect(await outcomeOf(modify({ throughput: '10', iops: 'many' }))).toMatch(/^INVALID_ARGUMENT/)
      expect((await condition()).message).toMatch(/limits of 500 iops are not enforced: /)
      await modify({ throughput: '10' })
      expect(await condition()).toMatchObject({
        abnormal: false,
        message: expect.stringMatching(/limits of 500 iops and 10MiB\/s are not enforced/),
      })
      await modify({ throughput: '0', iops: '0' })
      expect((await condition()).message).toBe('The volume is healthy.')
      await trial.unpublish(id)
      await trial.unstage(id)
      await trial.remove(id)
    })
  })

  describe('after a restart', () => {
    it('SYS-6 keeps volumes, snapshots and mounts', async () => {
      const { id, path } = await trial.use('kept', { mutable: { iops: '100' } })
      await trial.restart()
      expect(await volumes()).toEqual([id])
      expect(await outcomeOf(trial.csi.node.nodeGetVolumeStats({ volumeId: id, volumePath: path }))).toBe('OK')
      expect(await outcomeOf(trial.stage(id))).toBe('OK')
      expect(await outcomeOf(trial.publish(id, { mode: Mode.SINGLE_NODE_WRITER }))).toMatch(/^ALREADY_EXISTS/)
      await trial.unpublish(id)
      await trial.unstage(id)
      await trial.remove(id)
    })

    it('SYS-6 sets an unreadable record aside and leaves its volume alone', async () => {
      const id = await trial.create('blurred')
      await trial.stop()
      const record = join(trial.pool, '.stowage', 'volumes', `${id}.json`)
      await writeFile(record, (await readFile(record, 'utf8')).slice(0, 40))
      await trial.start()
      expect(await volumes()).toEqual([])
      expect(await readdir(join(trial.pool, '.stowage', 'set-aside'))).toEqual([`volumes-${id}.json`])
      expect(await files()).toHaveLength(1)
      expect(trial.logged.join('\n')).toMatch(/a record is invalid and was set aside/)
      expect(trial.logged.join('\n')).toMatch(/the pool contains something without a record/)

      // The name stays reserved while the data exists, and its space is not promised.
      const data = (await files())[0]!
      const refusal = new RegExp(
        `^FAILED_PRECONDITION: .*${data} exists in the pool, but its record .*set-aside/volumes-${id}`,
      )
      expect(await outcomeOf(trial.create('blurred'))).toMatch(refusal)
      expect(await outcomeOf(trial.remove(id))).toMatch(refusal)
      expect(await files()).toEqual([data])
      const taken = POOL_BYTES - Number((await capacity()).availableCapacity)
      // A fragmented file takes a few more blocks for its extent list.
      const least = backend === 'loop' ? 320 * MIB : 0
      expect(taken).toBeGreaterThanOrEqual(least)
      expect(taken - least).toBeLessThan(MIB)

      await rm(join(trial.pool, 'volumes'), { recursive: true })
      await trial.restart()
      await trial.remove(await trial.create('blurred'))
    })

    it('SYS-6 a snapshot with a lost record keeps its name and data', async () => {
      const id = await trial.create('pictured')
      const cut = () => trial.csi.controller.createSnapshot({ name: 'picture', sourceVolumeId: id })
      const snapshotId = (await cut()).snapshot!.snapshotId
      await trial.stop()
      await writeFile(join(trial.pool, '.stowage', 'snapshots', `${snapshotId}.json`), '{')
      await trial.start()
      expect(await outcomeOf(cut())).toMatch(/^FAILED_PRECONDITION: .*set-aside\/snapshots-s-/)
      expect(await outcomeOf(trial.csi.controller.deleteSnapshot({ snapshotId }))).toMatch(/^FAILED_PRECONDITION/)
      expect(await readdir(join(trial.pool, 'snapshots'))).toHaveLength(1)
      await rm(join(trial.pool, 'snapshots'), { recursive: true })
      await trial.restart()
      await trial.remove(id)
    })

    it('SYS-6 a snapshot with missing content is not ready to use', async () => {
      const id = await trial.create('pictured')
      const { snapshot } = await trial.csi.controller.createSnapshot({ name: 'lost', sourceVolumeId: id })
      const { snapshotId } = snapshot!
      await rm(join(trial.pool, 'snapshots', (await readdir(join(trial.pool, 'snapshots')))[0]!), { recursive: true })
      expect((await trial.csi.controller.getSnapshot({ snapshotId })).snapshot?.readyToUse).toBe(false)
      const source = { type: { case: 'snapshot' as const, value: { snapshotId } } }
      expect(await outcomeOf(trial.create('from-lost', { source }))).toMatch(
        /^FAILED_PRECONDITION: Snapshot .* cannot be restored\. Its (file|directory) .* is gone/,
      )
      await trial.csi.controller.deleteSnapshot({ snapshotId })
      await trial.remove(id)
    })

    it('SYS-6 reports damaged files of its own and starts', async () => {
      const id = await trial.create('steady')
      await trial.stop()
      await writeFile(join(trial.pool, '.stowage', 'pool.json'), '{"backend":')
      await mkdir(join(trial.pool, '.stowage', 'volumes', 'a-directory'))
      await trial.start()
      expect(trial.running.backend).toBe(backend)
      expect(await volumes()).toEqual([id])
      expect(trial.logged.join('\n')).toMatch(/marker is invalid and was set aside.*pool\.json/)
      expect(trial.logged.join('\n')).toMatch(/cannot read a record.*volumes\/a-directory/)
      await rm(join(trial.pool, '.stowage', 'volumes', 'a-directory'), { recursive: true })
      await trial.remove(id)
    })

    it('SYS-6 reports a volume whose content was deleted by hand, and can still delete it', async () => {
      const id = await trial.create('emptied')
      await rm(join(trial.pool, 'volumes', (await files())[0]!), { recursive: true })
      const { status } = await trial.csi.controller.controllerGetVolume({ volumeId: id })
      expect(status?.volumeCondition).toMatchObject({ abnormal: true, message: expect.stringContaining('is gone') })
      const lost = /^FAILED_PRECONDITION: .*is gone from the pool/
      expect(await outcomeOf(trial.stage(id))).toMatch(lost)
      const { controller } = trial.csi
      const source = { type: { case: 'volume' as const, value: { volumeId: id } } }
      expect(await outcomeOf(controller.createSnapshot({ name: 'of-nothing', sourceVolumeId: id }))).toMatch(lost)
      expect(await outcomeOf(trial.create('copy-of-nothing', { source }))).toMatch(lost)
      const expansion = controller.controllerExpandVolume({
        volumeId: id,
        capacityRange: { requiredBytes: BigInt(GIB) },
      })
      expect(await outcomeOf(expansion)).toMatch(lost)
      expect(await files()).toEqual([])
      await trial.restart()
      expect(trial.logged.join('\n')).toMatch(/a volume is damaged/)
      await trial.remove(id)
      expect(await volumes()).toEqual([])
    })

    it('SYS-6 refuses a second driver on the same pool', async () => {
      await expect(trial.start()).rejects.toThrow(/in use by another driver/)
    })
  })
}

const THIN = { provisioning: 'thin' }
