// Opens the store at a location: the embedded one in the data directory, or etcd.
import { readFile } from 'node:fs/promises'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { UsageError } from '../base/usage-error.ts'
import {
  type DamagedRecordError,
  type EtcdTls,
  type HistoryOptions,
  type MigrationProgress,
  openEtcdStore,
  openLmdbStore,
  type Store,
  type ValueTransformer,
} from '../store/index.ts'
import { type EtcdLocation, type StoreLocation, storeDirOf } from './store-location.ts'

/** Paths of PEM files, for `etcds://`. */
export interface TlsFiles {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

export interface OpenStoreOptions {
  readonly location: StoreLocation
  readonly tlsFiles: TlsFiles
  readonly dataDir: string
  readonly clock: Clock
  readonly history: HistoryOptions
  /** Encrypts values. */
  readonly transformer: ValueTransformer
  /** The rate at which an embedded store is read in the background to find damage. 0 for never. */
  readonly scrubBytesPerSecond: number
  /** Whether to upgrade an etcd store without checksums to the newest format. */
  readonly upgradesEtcdFormat: boolean
  readonly log: Logger
}

export async function openStore(options: OpenStoreOptions): Promise<Store> {
  const { location, tlsFiles, dataDir, scrubBytesPerSecond, upgradesEtcdFormat, log, ...common } = options
  const onDamage = ({ key, revision, reason }: DamagedRecordError) =>
    log.error(
      { key, revision, reason },
      'a stored record is damaged; docs/how-to/operations.md describes how to repair it',
    )
  if (location.is === 'embedded') {
    const onMigration = ({ from, to, recordsDone, recordsTotal }: MigrationProgress) =>
      log.info({ from, to, recordsDone, recordsTotal }, 'migrating the store to a new format')
    return openLmdbStore({ dir: storeDirOf(dataDir), scrubBytesPerSecond, onDamage, onMigration, ...common })
  }
  const { endpoints, prefix, isEncrypted } = location
  const tls = isEncrypted ? await readTls(tlsFiles) : undefined
  return openEtcdStore({ endpoints, prefix, tls, upgradesFormat: upgradesEtcdFormat, onDamage, ...common }).catch(
    (error) => {
      throw new Error(explainEtcdError(location, error), { cause: error })
    },
  )
}

/** Returns a message with the endpoints, and an explanation of common connection errors. */
export function explainEtcdError({ endpoints, isEncrypted }: EtcdLocation, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const hosts = endpoints.join(', ')
  const problems: readonly [RegExp, string][] = [
    [/ECONNREFUSED/, 'the connection was refused. Is etcd running there?'],
    [/ENOTFOUND|EAI_AGAIN|Name resolution failed/, 'the host name cannot be resolved.'],
    [/wrong version number|packet length too long/i, 'etcd does not use TLS there. Use etcd:// instead of etcds://.'],
    [
      /certificate|self[- ]signed|SSL|TLS/i,
      `the TLS connection failed (${message}). Check --etcd-ca, --etcd-cert and --etcd-key.`,
    ],
    [
      /ECONNRESET|socket hang up|Connection dropped/,
      `the connection was closed.${isEncrypted ? '' : ' Does etcd need TLS (etcds://)?'}`,
    ],
  ]
  const problem = problems.find(([pattern]) => pattern.test(message))
  return problem
    ? `Cannot use etcd at ${hosts} (--store): ${problem[1]}`
    : `Cannot use etcd at ${hosts} (--store): ${message}`
}

async function readTls({ ca, cert, key }: TlsFiles): Promise<EtcdTls> {
  if ((cert === undefined) !== (key === undefined)) throw new UsageError('Set --etcd-cert and --etcd-key together.')
  const readPem = (flag: string, path: string | undefined) =>
    path === undefined
      ? undefined
      : readFile(path, 'utf8').catch((error: Error) => {
          throw new UsageError(`${flag} ${path} cannot be read: ${error.message}`)
        })
  const [caText, certText, keyText] = await Promise.all([
    readPem('--etcd-ca', ca),
    readPem('--etcd-cert', cert),
    readPem('--etcd-key', key),
  ])
  return { ca: caText, cert: certText, key: keyText }
}
