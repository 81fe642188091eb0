// Reads the storage on this machine: the records and files of the local driver's pool, its loop devices, and the volumes
// that a node agent or kubelet has staged and published. All of it is optional, because the command may run on another
// machine.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readTextIfPresent } from '../../../base/files.ts'
import { isVolumeId } from '../../../driver/ids.ts'
import { contentPathOf, findUnrecorded, imagePathOf, stateIn, volumesIn } from '../../../driver/pool/pool-layout.ts'
import { parseVolumeRecord, type VolumeRecord } from '../../../driver/pool/records.ts'
import { listLoopFiles } from '../../../host/loop-files.ts'
import { agentPaths, VOL_DATA } from '../../../nodeagent/paths.ts'
import { parseVolData } from '../../../nodeagent/vol-data.ts'
import type { DriverProcess } from './inventory.ts'

/** What the local driver's pool records about a volume beyond what CSI reports. */
export interface VolumeDetails {
  readonly name: string
  readonly createdAtMs?: number
  readonly isBlock: boolean
  readonly fsType: string
}

export interface PoolFile {
  readonly path: string
  readonly sizeBytes?: number
  readonly createdAtMs?: number
}

export interface PoolLoop {
  readonly device: string
  readonly handle: string
  readonly file: string
}

/** A staged or published volume of a node. */
export interface NodeVolume {
  readonly driver: string
  readonly handle: string
  readonly path: string
  /** Absent for a staged volume. */
  readonly podUid?: string
}

export interface Machine {
  /** By handle. */
  readonly details: ReadonlyMap<string, VolumeDetails>
  /** Content of pools that belongs to no volume or snapshot. */
  readonly unrecordedFiles: readonly PoolFile[]
  readonly loops: readonly PoolLoop[]
  readonly nodeVolumes: readonly NodeVolume[]
}

/** Snapshots in pools are omitted, because the driver lists them. */
export async function readMachine(processes: readonly DriverProcess[]): Promise<Machine> {
  const pools = processes.flatMap(({ pool }) => pool ?? [])
  const roots = [...new Set(processes.flatMap(({ nodeRoot }) => nodeRoot ?? []))]
  const records = (await Promise.all(pools.map(readRecords))).flat()
  const knownIds = new Set<string>(records.map(({ record }) => record.id))
  const unrecorded = await Promise.all(
    pools.map((pool) => findUnrecorded(pool, (id) => knownIds.has(id) || id.startsWith('s-')).catch(() => undefined)),
  )
  const files = unrecorded.flatMap((found) => found?.unknownContent.map(({ path }) => path) ?? [])
  const loopFiles = pools.length > 0 ? await listLoopFiles() : []
  return {
    details: new Map(
      await Promise.all(
        records.map(async ({ pool, record }) => [record.id, await describeRecord(pool, record)] as const),
      ),
    ),
    unrecordedFiles: await Promise.all(files.map(describeFile)),
    loops: loopFiles.flatMap(({ device, file }) => {
      const pool = pools.find((directory) => file.startsWith(`${volumesIn(directory)}/`))
      const id = pool && file.slice(volumesIn(pool).length + 1).replace(/\.img$/, '')
      return id && isVolumeId(id) ? [{ device, handle: id, file }] : []
    }),
    nodeVolumes: (await Promise.all(roots.map(readNodeVolumes))).flat(),
  }
}

async function readRecords(pool: string): Promise<{ pool: string; record: VolumeRecord }[]> {
  const directory = join(stateIn(pool), 'volumes')
  const names = await readdir(directory).catch(() => [])
  const records = await Promise.all(
    names.map(async (file) => {
      const text = await readTextIfPresent(join(directory, file)).catch(() => undefined)
      const record = text === undefined ? undefined : parseRecord(text, file.replace(/\.json$/, ''))
      return record ? [{ pool, record }] : []
    }),
  )
  return records.flat()
}

/** Returns undefined if the record is damaged. The driver reports damaged records. */
function parseRecord(text: string, id: string): VolumeRecord | undefined {
  try {
    const record = parseVolumeRecord(JSON.parse(text), id)
    return 'problem' in record ? undefined : record
  } catch {
    return undefined
  }
}

async function describeRecord(pool: string, { id, name, accessTypes, fsType }: VolumeRecord): Promise<VolumeDetails> {
  const times = await readTimes(imagePathOf(pool, id)).then((found) => found ?? readTimes(contentPathOf(pool, id)))
  return { name, isBlock: !accessTypes.includes('mount'), fsType, ...(times ? { createdAtMs: times.createdAtMs } : {}) }
}

async function describeFile(path: string): Promise<PoolFile> {
  const times = await readTimes(path)
  return times ? { path, ...times } : { path }
}

async function readTimes(path: string): Promise<{ sizeBytes: number; createdAtMs: number } | undefined> {
  const found = await stat(path).catch(() => undefined)
  if (!found) return undefined
  // Some file systems do not record the birth time.
  return { sizeBytes: found.blocks * 512, createdAtMs: found.birthtimeMs > 0 ? found.birthtimeMs : found.mtimeMs }
}

async function readNodeVolumes(root: string): Promise<NodeVolume[]> {
  const paths = agentPaths(root)
  const list = (directory: string) => readdir(directory).catch(() => [])
  const volumes: NodeVolume[] = []
  const add = async (directory: string, mountName: string, podUid?: string) => {
    const text = await readTextIfPresent(join(directory, VOL_DATA)).catch(() => undefined)
    const data = text === undefined ? undefined : parseVolData(text)
    if (!data) return
    const path = join(directory, mountName)
    volumes.push({ driver: data.driverName, handle: data.volumeHandle, path, ...(podUid ? { podUid } : {}) })
  }
  for (const uid of await list(paths.pods))
    for (const name of await list(paths.csiVolumes(uid))) await add(paths.csiVolume(uid, name), 'mount', uid)
  for (const driver of await list(paths.csi)) {
    if (join(paths.csi, driver) === paths.devices) continue
    for (const digest of await list(join(paths.csi, driver))) await add(join(paths.csi, driver, digest), 'globalmount')
  }
  return volumes
}

/** Returns whether the record of a staged or published volume still exists. */
export const isStillRecorded = async ({ path }: NodeVolume): Promise<boolean> =>
  (await readTextIfPresent(join(path, '..', VOL_DATA)).catch(() => undefined)) !== undefined
