// Reads the PersistentVolumes and claims of an embedded store. It works on a copy, so that it neither changes the store nor
// needs its lock: the server may be running.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { collectionPrefix, createEncryption, parseEncryptionConfiguration } from '../../../apiserver/index.ts'
import type { Clock } from '../../../base/clock.ts'
import { readTextIfPresent } from '../../../base/files.ts'
import { ENCRYPTION_FILE } from '../../../processes/server/encryption.ts'
import { storeDirOf } from '../../../processes/store-location.ts'
import { copyLmdbStore, openLmdbStore, type Store } from '../../../store/index.ts'

export interface StoredObjects {
  readonly volumes: readonly PersistentVolume[]
  readonly claims: readonly PersistentVolumeClaim[]
}

export interface ReadStoredObjectsOptions {
  readonly dataDir: string
  readonly pkiDir: string
  readonly clock: Clock
}

/** Throws if the store is missing or damaged, or if an object cannot be decrypted. */
export async function readStoredObjects({ dataDir, pkiDir, clock }: ReadStoredObjectsOptions): Promise<StoredObjects> {
  const configuration = await readTextIfPresent(join(pkiDir, ENCRYPTION_FILE))
  const transformer = createEncryption(configuration ? await parseEncryptionConfiguration(configuration) : [])
  const copyDir = await mkdtemp(join(tmpdir(), 'stowage-reset-'))
  try {
    await copyLmdbStore({ sourceDir: storeDirOf(dataDir), targetDir: copyDir })
    const store = await openLmdbStore({ dir: copyDir, clock, transformer })
    try {
      return {
        volumes: await listObjects<PersistentVolume>(store, collectionPrefix(persistentVolumeKind)),
        claims: await listObjects<PersistentVolumeClaim>(store, collectionPrefix(persistentVolumeClaimKind)),
      }
    } finally {
      await store.close()
    }
  } finally {
    await rm(copyDir, { recursive: true, force: true })
  }
}

async function listObjects<T>(store: Store, prefix: string): Promise<T[]> {
  const { entries } = await store.list({ prefix })
  return entries.map(({ value }) => JSON.parse(Buffer.from(value).toString('utf8')) as T)
}
