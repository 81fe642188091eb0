// Parses --store and opens the store: the embedded one in the data directory by default, or etcd for several servers.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { UsageError } from '../base/usage-error.ts'
import { type EtcdTls, type HistoryOptions, openEtcdStore, openLmdbStore, type Store } from '../store/index.ts'

export type StoreLocation = { readonly is: 'embedded' } | EtcdLocation

export interface EtcdLocation {
  readonly is: 'etcd'
  readonly endpoints: readonly string[]
  /** Undefined for the default prefix of the store. */
  readonly prefix: string | undefined
  readonly isEncrypted: boolean
}

/** Paths of PEM files, for `etcds://`. */
export interface TlsFiles {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

export function parseStore(text: string | undefined): StoreLocation {
  if (text === undefined) return { is: 'embedded' }
  const [, scheme, hosts = '', path] = /^(etcds?):\/\/([^/\s]+)(\/\S*)?$/.exec(text.trim()) ?? []
  const endpoints = hosts.split(',')
  if (!scheme || !endpoints.every((endpoint) => /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+):\d{1,5}$/.test(endpoint))) {
    throw new UsageError(
      `--store ${JSON.stringify(text)}: expected etcd://HOST:PORT[,HOST:PORT…][/PREFIX], or etcds:// for TLS`,
    )
  }
  const prefix = path === undefined || path === '/' ? undefined : path
  return { is: 'etcd', endpoints, prefix, isEncrypted: scheme === 'etcds' }
}

export interface OpenStoreOptions {
  readonly location: StoreLocation
  readonly tlsFiles: TlsFiles
  readonly dataDir: string
  readonly clock: Clock
  readonly history: HistoryOptions
}

export async function openStore({ location, tlsFiles, dataDir, clock, history }: OpenStoreOptions): Promise<Store> {
  if (location.is === 'embedded') return openLmdbStore({ dir: join(dataDir, 'store'), clock, history })
  const tls = location.isEncrypted ? await readTls(tlsFiles) : undefined
  return openEtcdStore({ endpoints: location.endpoints, prefix: location.prefix, tls, clock, history })
}

async function readTls({ ca, cert, key }: TlsFiles): Promise<EtcdTls> {
  if ((cert === undefined) !== (key === undefined)) throw new UsageError('Set --etcd-cert and --etcd-key together.')
  const read = (path: string | undefined) => (path === undefined ? undefined : readFile(path, 'utf8'))
  const [caText, certText, keyText] = await Promise.all([read(ca), read(cert), read(key)])
  return { ca: caText, cert: certText, key: keyText }
}
