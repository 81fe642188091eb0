// Loads and removes hostile records of the node agent: mount records (vol_data.json) and records of containers that are
// half-written, have other types, or name paths outside the agent's root. Nothing outside that root may change.
// HOSTILE_SEED replays a run; SCALE=100 loads 100,000 records.
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { createMounts } from '../../src/host/mounts.ts'
import { createRun } from '../../src/host/run.ts'
import { HOST_DEFAULTS } from '../../src/nodeagent/commands/host-containers.fixture.ts'
import { createHostContainers } from '../../src/nodeagent/commands/host-containers.ts'
import { createMountRecords } from '../../src/nodeagent/csi/mount-records.ts'
import { createHostDisk } from '../../src/nodeagent/disk/host-disk.ts'
import { agentPaths } from '../../src/nodeagent/paths.ts'
import { seededRandom } from '../helpers/random.ts'
import { createSurroundings, readSurroundings, SURROUNDING_PATHS } from './surroundings.ts'

const SEED = Number(process.env.HOSTILE_SEED ?? 1)
const ROUNDS = 25 * Number(process.env.SCALE ?? 1)
const RECORDS_PER_ROUND = 40

it('the node agent changes nothing outside its root for hostile records', { timeout: 3_600_000 }, async () => {
  const random = seededRandom(SEED)
  const pick = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)]!
  const top = await realpath(await mkdtemp(join(tmpdir(), 'stowage-hostile-')))
  const root = join(top, 'agent')
  const paths = agentPaths(root)
  const clock = systemClock()
  const run = createRun({ clock })
  const disk = createHostDisk({ mounts: createMounts({ run }), run })
  const cgroups = { create: async () => [], processes: async () => [], remove: async () => true }
  await createSurroundings(join(top, 'outside'))
  const surroundingsBefore = await readSurroundings(top, ['agent'])

  const hostileText = () =>
    pick(
      '',
      '.',
      '..',
      `../../outside/${pick(...SURROUNDING_PATHS)}`,
      join(top, 'outside', 'empty-directory'),
      'a\0b',
      'x',
      'v-1',
    )
  const hostileContent = (): string => {
    const volData = {
      volumeHandle: hostileText(),
      driverName: hostileText(),
      specVolID: hostileText(),
      attachmentID: hostileText(),
    }
    const runRecord = { pid: pick<unknown>(1, 0, -1, '1', 2 ** 30, null), startTicks: pick<unknown>('1', 1, '') }
    const text = JSON.stringify(pick<object>(volData, volData, { ...volData, nodeName: 1 }, runRecord, runRecord))
    return pick(text, text, text.slice(0, text.length / 2), '', 'null', '[]', '1', '\0')
  }
  const recordPath = (uid: string): string => {
    const name = pick('a', 'b', '..data', '%2e%2e')
    return pick(
      join(paths.csiVolume(uid, name), 'vol_data.json'),
      join(paths.blockData(name), 'vol_data.json'),
      paths.blockLink(uid, name),
      join(dirname(paths.staging('driver', pick('x', 'y'))), 'vol_data.json'),
      join(paths.container(uid, name), pick('0', '1', 'x'), pick('started', 'pid', 'exit')),
    )
  }
  async function writeRecord(uid: string): Promise<void> {
    const path = recordPath(uid)
    try {
      await mkdir(dirname(path), { recursive: true })
      await rm(path, { recursive: true, force: true })
      const kind = pick('file', 'file', 'file', 'file', 'directory', 'link')
      if (kind === 'file') await writeFile(path, hostileContent())
      else if (kind === 'directory') await mkdir(path)
      else await symlink(join(top, 'outside', pick(...SURROUNDING_PATHS)), path)
    } catch {
      // an earlier record is in the way
    }
  }

  for (let round = 0; round < ROUNDS; round++) {
    for (let count = 0; count < RECORDS_PER_ROUND; count++) await writeRecord(pick('uid-1', 'uid-2', 'uid-3'))
    const records = createMountRecords({ disk, paths, nodeName: 'node', log: silentLog })
    await records.load()
    const containers = await createHostContainers({ ...HOST_DEFAULTS, paths, disk, clock, log: silentLog, cgroups })
    for (const uid of records.uids()) {
      await containers.stop(uid, 0).catch(() => {})
      await containers.removeRecords(uid).catch(() => {})
      for (const publication of records.publicationsOfPod(uid))
        await records.removePublication(publication).catch(() => {})
    }
    for (const staging of records.stagings()) await records.removeStaging(staging).catch(() => {})
    expect(await readSurroundings(top, ['agent']), `round ${round}, seed ${SEED}`).toEqual(surroundingsBefore)
    if (round % 10 === 9) await rm(root, { recursive: true })
  }
  await rm(top, { recursive: true })
})
