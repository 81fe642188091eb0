// Opens a server's data directory: checks that it can be used, loads the encryption keys, and opens the store.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { BRIEF_HISTORY_PREFIXES } from '../../apiserver/index.ts'
import type { Clock } from '../../base/clock.ts'
import { requireDiskSpace } from '../../base/disk-space.ts'
import { ensureDirectory } from '../../base/files.ts'
import type { Logger } from '../../base/log.ts'
import { COPYING_DIR, RESTORING_FILE } from '../../store/backup/index.ts'
import { requireUnusedDirectory, STORE_FILE, type Store } from '../../store/index.ts'
import { openStore, type TlsFiles } from '../open-store.ts'
import { type StoreLocation, storeDirOf, warnAboutPlainText } from '../store-location.ts'
import { checkStoredValues, type LoadedEncryption, loadEncryption } from './encryption.ts'
import { rethrowUnusable, rethrowUnusablePki } from './unusable-directory.ts'

export interface DataDirectoryOptions {
  readonly dataDir: string
  /** Directory of keys and certificates. */
  readonly pkiDir: string
  readonly location: StoreLocation
  readonly etcdTls: TlsFiles
  readonly historyMinutes: number
  /** The rate at which the embedded store is read in the background to find damage. 0 for never. */
  readonly scrubBytesPerSecond: number
  /** Whether to upgrade an etcd store without checksums to the newest format. */
  readonly upgradesEtcdFormat: boolean
  /** The configuration file for encryption at rest. Default: encryption.yaml in pkiDir. */
  readonly encryptionProviderConfig: string | undefined
  readonly clock: Clock
  readonly log: Logger
}

export interface DataDirectory {
  readonly store: Store
  readonly encryption: LoadedEncryption
}

const START_BYTES_MIN = 4 * 2 ** 20

const BRIEF_HISTORY_MS = 90_000
const BRIEF_HISTORY_ENTRIES_MAX = 20_000
const BRIEF_HISTORY_BYTES_MAX = 16 * 1024 * 1024

/** The kubeconfig that a server writes when it is ready. */
export const kubeconfigOf = (dataDir: string): string => join(dataDir, 'admin.kubeconfig')

export async function openDataDirectory(options: DataDirectoryOptions): Promise<DataDirectory> {
  const { dataDir, pkiDir, location, log } = options
  const isEmbedded = location.is === 'embedded'
  const throwUnusable = rethrowUnusable({ path: dataDir, purpose: 'data directory', flag: '--data-dir' })
  await ensureDirectory(dataDir).catch(throwUnusable)
  await requireDiskSpace(dataDir, START_BYTES_MIN)
  if (isEmbedded) {
    await checkStoreExists(dataDir)
    await ensureDirectory(storeDirOf(dataDir)).catch(throwUnusable)
    await requireUnusedDirectory(storeDirOf(dataDir)) // before anything else is written to the data directory
  } else warnAboutPlainText(location, log)
  const encryption = await loadEncryption({
    configFile: options.encryptionProviderConfig,
    pkiDir,
    storeDir: isEmbedded ? storeDirOf(dataDir) : undefined,
    log,
  }).catch(rethrowUnusablePki(pkiDir))
  const store = await openStore({
    transformer: encryption.encryption,
    location,
    tlsFiles: options.etcdTls,
    dataDir,
    clock: options.clock,
    scrubBytesPerSecond: options.scrubBytesPerSecond,
    upgradesEtcdFormat: options.upgradesEtcdFormat,
    log,
    history: {
      keepMs: options.historyMinutes * 60_000,
      brief: {
        prefixes: BRIEF_HISTORY_PREFIXES,
        keepMs: BRIEF_HISTORY_MS,
        entriesMax: BRIEF_HISTORY_ENTRIES_MAX,
        bytesMax: BRIEF_HISTORY_BYTES_MAX,
      },
    },
  }).catch(throwUnusable)
  try {
    await checkStoredValues(store, encryption)
  } catch (error) {
    await store.close()
    throw error
  }
  return { store, encryption }
}

/**
 * Throws if a restore is incomplete, or if the store of an earlier server is missing or empty: a new store would hide the loss.
 * The kubeconfig proves that a server was ready here before.
 */
async function checkStoreExists(dataDir: string): Promise<void> {
  const kubeconfig = kubeconfigOf(dataDir)
  const file = join(storeDirOf(dataDir), STORE_FILE)
  const sizeOf = (path: string) =>
    stat(path).then(
      ({ size }) => size,
      () => 0,
    )
  for (const name of [RESTORING_FILE, COPYING_DIR]) {
    const path = join(storeDirOf(dataDir), name)
    if ((await sizeOf(path)) === 0 || (await sizeOf(file)) > 0) continue
    throw new Error(
      `A restore to ${dataDir} was interrupted: run \`stowage restore\` again with the same backups, ` +
        `or delete ${path} to discard the restore.`,
    )
  }
  if ((await sizeOf(kubeconfig)) === 0 || (await sizeOf(file)) > 0) return
  throw new Error(
    `A server has been ready in ${dataDir} before, but its store ${file} is missing or empty. ` +
      `Restore it from a backup, or remove ${kubeconfig} to start with an empty one.`,
  )
}
