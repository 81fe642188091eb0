// Sends hostile requests to the local driver, and starts it with hostile records: ids, paths, options and half-written files.
// Nothing outside the pool and the target directory may change. HOSTILE_SEED replays a run, SCALE scales it.
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type DriverFixture, Mode, outcomeOf, startDriverFixture } from '../../src/driver/driver.fixture.ts'
import { probeThisMachine, skipReason } from '../allowed-skips.ts'
import { seededRandom } from '../helpers/random.ts'
import { createSurroundings, readSurroundings, SURROUNDING_PATHS } from './surroundings.ts'

const facts = await probeThisMachine()
const SCALE = Number(process.env.SCALE ?? 1)
const SEED = Number(process.env.HOSTILE_SEED ?? 1)
const REQUESTS = { directory: 1_500 * SCALE, loop: 60 * SCALE }
const RECORD_STARTS = { directory: 3 * SCALE, loop: SCALE }
const RECORDS_PER_START = 40
const CONCURRENT_REQUESTS = 10
const CHECK_EVERY = 500

let fixture: DriverFixture | undefined
afterEach(async () => {
  await fixture?.dispose()
  fixture = undefined
})

for (const backend of ['directory', 'loop'] as const) {
  const skipMessage = backend === 'loop' ? skipReason(facts, ['loop', 'mount', 'ext4']) : undefined
  describe.skipIf(skipMessage)(
    `the driver with the ${backend} backend${skipMessage ? ` (${skipMessage})` : ''}`,
    () => {
      const pick = createPick(seededRandom(SEED))

      async function start(): Promise<{ driver: DriverFixture; readOutside: () => Promise<Record<string, string>> }> {
        fixture = await startDriverFixture({ backend, hasTargetRoot: true })
        const top = fixture.machine.pool
        await createSurroundings(join(top, 'outside'))
        await symlink('../outside', fixture.path('link'))
        await symlink('../outside/new', fixture.path('dangling'))
        return { driver: fixture, readOutside: () => readSurroundings(top, ['pool', 'targets', 'csi.sock']) }
      }

      it('changes nothing outside its directories for hostile requests', { timeout: 3_600_000 }, async () => {
        const { driver, readOutside } = await start()
        const outsideBefore = await readOutside()
        const ids: string[] = []
        const outcomes = new Map<string, number>()
        const unexpectedOutcomes: string[] = []
        for (let count = 0; count < REQUESTS[backend]; count += CONCURRENT_REQUESTS) {
          const requests = Array.from({ length: CONCURRENT_REQUESTS }, () => createHostileRequest(driver, ids, pick))
          await Promise.all(
            requests.map(async ({ text, call }) => {
              const outcome = await outcomeOf(call()).catch((error: Error) => `client: ${error.message}`)
              const code = outcome.split(':')[0]!
              outcomes.set(code, (outcomes.get(code) ?? 0) + 1)
              if (['INTERNAL', 'UNKNOWN'].includes(code)) unexpectedOutcomes.push(`${text}: ${outcome}`)
            }),
          )
          if (count % CHECK_EVERY === 0)
            expect(await readOutside(), `after ${count} requests, seed ${SEED}`).toEqual(outsideBefore)
        }
        expect(unexpectedOutcomes).toEqual([])
        expect(await readOutside()).toEqual(outsideBefore)
        expect(outcomes.get('OK')).toBeGreaterThan(REQUESTS[backend] / 50) // hostile parts of valid requests are tested too
        expect(await mountsOutside(driver)).toEqual([])
      })

      it('starts with hostile records and changes nothing outside its directories', {
        timeout: 3_600_000,
      }, async () => {
        const { driver, readOutside } = await start()
        const ids: string[] = []
        for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
          ids.push(await driver.create(name, { bytes: 320 * 1_048_576, parameters: THIN }))
        }
        const outsideBefore = await readOutside()
        for (let count = 0; count < RECORD_STARTS[backend]; count++) {
          await driver.stop()
          for (let record = 0; record < RECORDS_PER_START; record++) await writeHostileRecord(driver, ids, pick)
          for (const id of ids) await writeHostileMountRecord(driver, id, pick)
          await driver.start()
          await outcomeOf(driver.csi.controller.listVolumes({}))
          expect(await readOutside(), `start ${count}, seed ${SEED}`).toEqual(outsideBefore)
        }
        expect(await mountsOutside(driver)).toEqual([])
      })
    },
  )
}

const THIN = { provisioning: 'thin', fsType: 'ext4' }

type Pick = <T>(...choices: readonly T[]) => T

const createPick =
  (random: () => number): Pick =>
  (...choices) =>
    choices[Math.floor(random() * choices.length)]!

async function mountsOutside({ machine }: DriverFixture): Promise<string[]> {
  const targets = (await machine.host.mounts.list()).map(({ target }) => target)
  return targets.filter((target) => target.startsWith(join(machine.pool, 'outside')))
}

const hostileText = (pick: Pick): string =>
  pick(
    '',
    '.',
    '..',
    '/',
    '../../outside/file',
    'a\0b',
    '%2e%2e',
    '-o',
    '--help',
    'x'.repeat(5_000),
    '\u{202e}',
    '$(touch x)',
    '*',
    '{}',
  )

function hostilePath(driver: DriverFixture, pick: Pick): string {
  const outsidePath = join(driver.machine.pool, 'outside', pick(...SURROUNDING_PATHS))
  const targetPath = driver.path(pick('a', 'b', 'c', 'd/e'))
  return pick(
    targetPath,
    targetPath,
    targetPath,
    outsidePath,
    `${targetPath}/../../outside/${pick(...SURROUNDING_PATHS)}`,
    driver.path(`link/${pick(...SURROUNDING_PATHS)}`),
    driver.path('dangling'),
    driver.path('dangling/x'),
    driver.path('.'),
    driver.pool,
    join(driver.pool, '.stowage', 'volumes'),
    `${targetPath}//./x/`,
    hostileText(pick),
  )
}

function createHostileRequest(
  driver: DriverFixture,
  ids: string[],
  pick: Pick,
): { text: string; call(): Promise<unknown> } {
  const { controller, node } = driver.csi
  const id = pick(pick(...ids, ''), pick(...ids, ''), hostileText(pick), `${pick(...ids, 'v-')}/../x`)
  const path = hostilePath(driver, pick)
  const stagingPath = pick(driver.path('stage'), hostilePath(driver, pick))
  const mount = {
    fsType: pick('', '', 'ext4', 'xfs', hostileText(pick)),
    mountFlags: pick<string[]>(
      [],
      [],
      ['noatime'],
      [hostileText(pick)],
      ['bind'],
      ['logdev=/dev/null'],
      ['x-mount.mkdir'],
    ),
  }
  const accessMode = { mode: pick(Mode.SINGLE_NODE_MULTI_WRITER, Mode.SINGLE_NODE_WRITER, Mode.MULTI_NODE_READER_ONLY) }
  const isBlock = pick(true, false, false, false)
  const volumeCapability = {
    accessMode,
    accessType: isBlock ? { case: 'block' as const, value: {} } : { case: 'mount' as const, value: mount },
  }
  const volumeContext = { 'csi.storage.k8s.io/pod.uid': pick('', '11111111-2222', '../../..', hostileText(pick)) }
  const capacityRange = {
    requiredBytes: pick(0n, 320n * 1_048_576n, -1n, 2n ** 62n),
    limitBytes: pick(0n, 0n, -5n, 1n),
  }
  const calls: Record<string, () => Promise<unknown>> = {
    createVolume: async () => {
      const { volume } = await controller.createVolume({
        name: pick('one', 'two', 'three', hostileText(pick)),
        capacityRange,
        volumeCapabilities: [volumeCapability],
        parameters: pick<Record<string, string>>(THIN, THIN, { [hostileText(pick)]: hostileText(pick) }),
      })
      if (volume && !ids.includes(volume.volumeId)) ids.push(volume.volumeId)
    },
    deleteVolume: () => controller.deleteVolume({ volumeId: id }),
    createSnapshot: async () => {
      const { snapshot } = await controller.createSnapshot({
        sourceVolumeId: id,
        name: pick('s1', 's2', hostileText(pick)),
      })
      if (snapshot && !ids.includes(snapshot.snapshotId)) ids.push(snapshot.snapshotId)
    },
    deleteSnapshot: () => controller.deleteSnapshot({ snapshotId: id }),
    controllerExpandVolume: () => controller.controllerExpandVolume({ volumeId: id, capacityRange }),
    nodeStageVolume: () =>
      node.nodeStageVolume({ volumeId: id, stagingTargetPath: stagingPath, volumeCapability, volumeContext }),
    nodeUnstageVolume: () => node.nodeUnstageVolume({ volumeId: id, stagingTargetPath: stagingPath }),
    nodePublishVolume: () =>
      node.nodePublishVolume({
        volumeId: id,
        stagingTargetPath: stagingPath,
        targetPath: path,
        volumeCapability,
        volumeContext,
        readonly: pick(true, false, false),
      }),
    nodeUnpublishVolume: () => node.nodeUnpublishVolume({ volumeId: id, targetPath: path }),
    nodeGetVolumeStats: () => node.nodeGetVolumeStats({ volumeId: id, volumePath: path }),
    nodeExpandVolume: () => node.nodeExpandVolume({ volumeId: id, volumePath: path, capacityRange }),
  }
  const method = pick(...Object.keys(calls))
  return { text: `${method} ${JSON.stringify({ id, path, stagingPath })}`, call: calls[method]! }
}

/** Writes a valid record of a volume that is mounted at a hostile path. A driver that trusted it would clean up there. */
async function writeHostileMountRecord(driver: DriverFixture, id: string, pick: Pick): Promise<void> {
  const emptyPath = join(driver.machine.pool, 'outside', pick('empty-file', 'empty-directory'))
  const path = pick(emptyPath, hostilePath(driver, pick))
  const publication = { path, accessType: pick('mount', 'block'), accessMode: 'SINGLE_NODE_WRITER', isReadOnly: false }
  const record = { format: 1, id, published: [publication] }
  await rm(join(driver.pool, '.stowage', 'presences', `${id}.json`), { recursive: true, force: true })
  await writeFile(join(driver.pool, '.stowage', 'presences', `${id}.json`), JSON.stringify(record))
}

async function writeHostileRecord(driver: DriverFixture, ids: readonly string[], pick: Pick): Promise<void> {
  const state = join(driver.pool, '.stowage')
  const kind = pick('volumes', 'snapshots', 'presences')
  const digest = Array.from({ length: 26 }, () => pick(...'abcdefghijklmnopqrstuvwxyz234567')).join('')
  const volumeId = pick(...ids)
  const id = pick(`v-${digest}`, `s-${digest}`, volumeId, volumeId, 'x')
  const path = hostilePath(driver, pick)
  const mount = { path, accessType: pick('mount', 'block'), accessMode: 'x', isReadOnly: true, flagsDigest: '' }
  const record = {
    ...{ format: 1, id: pick(id, id, id, '../../outside/file'), name: hostileText(pick) },
    state: pick('creating', 'ready', 'growing', 'deleting', '?'),
    ...{
      capacityBytes: pick(0, 1, 2 ** 40, -1),
      growingToBytes: 2 ** 41,
      provisioning: 'thin',
      overcommit: pick(1, 0.1),
    },
    ...{ accessTypes: ['mount'], fsType: pick('ext4', 'xfs', '../x'), createdWith: {}, limits: {} },
    ...{ sourceVolumeId: pick(volumeId, `v-${digest}`, '../x'), sizeBytes: 1, allocatedBytes: 1, createdAtMs: 1 },
    ...{ staged: pick(mount, undefined), published: pick<unknown>([mount], [mount], [], 'x') },
    isUnused: pick(true, undefined),
  }
  const text = JSON.stringify(record)
  const content = pick(text, text, text, text.slice(0, text.length / 2), '', 'null', '[]', '{"format":1}', '\0\0\0')
  if (id === volumeId && kind === 'volumes') return // keep the records of real volumes
  const file = join(state, kind, pick(`${id}.json`, `${id}.json`, `${id}.json`, `${id}.json.tmp`, id))
  await rm(file, { recursive: true, force: true })
  if (pick(...Array(15).fill(false), true)) await mkdir(file)
  else await writeFile(file, content)
  if (pick(...Array(20).fill(false), true))
    await writeFile(join(state, 'pool.json'), pick('{', 'null', '{"backend":"../x"}'))
}
