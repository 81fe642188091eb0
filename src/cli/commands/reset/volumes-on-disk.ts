// Finds the volumes in a data directory and decides which of them a reset keeps: those with reclaim policy Retain, those
// that may contain data but belong to no PersistentVolume and no claim, and all of them if the store cannot be read.
import { join } from 'node:path'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { readTextIfPresent } from '../../../base/files.ts'
import { isVolumeId } from '../../../driver/ids.ts'
import { DRIVER_NAME } from '../../../driver/index.ts'
import { stateIn, volumesIn } from '../../../driver/pool/pool-layout.ts'
import { parseVolumeRecord, type VolumeRecord } from '../../../driver/pool/records.ts'
import { listNames } from './data-files.ts'
import type { StoredObjects } from './stored-objects.ts'

export interface VolumeOnDisk {
  /** File or directory with the content. */
  readonly path: string
  /** Name of the PersistentVolume if it is known, otherwise the name in the record or of the file. */
  readonly name: string
  /** Namespace and name of the claim, if the volume has one. */
  readonly claim?: string
  /** Why the volume is kept; absent if it is deleted. */
  readonly keepReason?: string
}

/** The objects of the store, or why they cannot be read. */
export type StoreContent = StoredObjects | { readonly problem: string }

/** Prefix of directories that the directory provisioner archives instead of deleting. */
const ARCHIVED_PREFIX = '.archived-'
const UNFINISHED_SUFFIX = /\.(part|gone)$/

export async function findVolumes(dataDir: string, store: StoreContent): Promise<VolumeOnDisk[]> {
  const nodesDir = join(dataDir, 'nodes')
  const pools = (await listNames(nodesDir)).map((node) => join(nodesDir, node, 'pool'))
  const poolVolumes = await Promise.all(pools.map((pool) => findPoolVolumes(pool, store)))
  return [...poolVolumes.flat(), ...(await findDirectories(join(dataDir, 'volumes'), store))]
}

async function findPoolVolumes(pool: string, store: StoreContent): Promise<VolumeOnDisk[]> {
  const names = (await listNames(volumesIn(pool))).filter((name) => !UNFINISHED_SUFFIX.test(name))
  return Promise.all(
    names.map(async (file) => {
      const id = file.replace(/\.img$/, '')
      const describesVolume = ({ spec }: PersistentVolume) =>
        spec?.csi?.driver === DRIVER_NAME && spec.csi.volumeHandle === id
      const record = isVolumeId(id) ? await readRecord(join(stateIn(pool), 'volumes', `${id}.json`), id) : undefined
      const canHaveData = !(record && (record.isUnused || record.state === 'creating' || record.state === 'deleting'))
      return describeVolume(
        { path: join(volumesIn(pool), file), name: record?.name ?? file, describesVolume, canHaveData },
        store,
      )
    }),
  )
}

async function findDirectories(root: string, store: StoreContent): Promise<VolumeOnDisk[]> {
  const names = await listNames(root)
  const volumes = names.filter((name) => !name.startsWith('.') || name.startsWith(ARCHIVED_PREFIX))
  return Promise.all(
    volumes.map(async (name) => {
      const path = join(root, name)
      const describesVolume = ({ metadata, spec }: PersistentVolume) =>
        spec?.hostPath?.path !== undefined && metadata.name === name && spec.hostPath.path.endsWith(`/${name}`)
      return describeVolume({ path, name, describesVolume, canHaveData: (await listNames(path)).length > 0 }, store)
    }),
  )
}

interface Candidate {
  readonly path: string
  /** Name of the volume in the request to create it. */
  readonly name: string
  readonly describesVolume: (volume: PersistentVolume) => boolean
  readonly canHaveData: boolean
}

function describeVolume({ path, name, describesVolume, canHaveData }: Candidate, store: StoreContent): VolumeOnDisk {
  if ('problem' in store) return { path, name, keepReason: `the store cannot be read: ${store.problem}` }
  const volume = store.volumes.find(describesVolume)
  if (volume) {
    const { claimRef, persistentVolumeReclaimPolicy: policy } = volume.spec ?? {}
    const claim = claimRef?.name === undefined ? {} : { claim: `${claimRef.namespace}/${claimRef.name}` }
    const describedVolume = { path, name: volume.metadata.name ?? name, ...claim }
    return policy === 'Delete' || policy === 'Recycle'
      ? describedVolume
      : { ...describedVolume, keepReason: 'reclaim policy Retain' }
  }
  // The volume of a claim that is being provisioned has no PersistentVolume yet.
  const isNew = store.claims.some(({ metadata }) => name === `pvc-${metadata.uid}`)
  return isNew || !canHaveData ? { path, name } : { path, name, keepReason: 'no PersistentVolume refers to it' }
}

/** Returns undefined if the record is missing or damaged. */
async function readRecord(path: string, id: string): Promise<VolumeRecord | undefined> {
  try {
    const record = parseVolumeRecord(JSON.parse((await readTextIfPresent(path)) ?? 'null'), id)
    return 'problem' in record ? undefined : record
  } catch {
    return undefined
  }
}
