// Parses --store: the store is embedded in the data directory by default, or it is an etcd that several servers share.
import { join } from 'node:path'
import { checkPort } from '../base/listen-address.ts'
import type { Logger } from '../base/log.ts'
import { UsageError } from '../base/usage-error.ts'

export type StoreLocation = { readonly is: 'embedded' } | EtcdLocation

export interface EtcdLocation {
  readonly is: 'etcd'
  readonly endpoints: readonly string[]
  /** Default: the default prefix of the etcd store. */
  readonly prefix: string | undefined
  readonly isEncrypted: boolean
}

export function parseStore(text: string | undefined): StoreLocation {
  if (text === undefined) return { is: 'embedded' }
  const [, scheme, hosts = '', path] = /^(etcds?):\/\/([^/\s]+)(\/\S*)?$/.exec(text.trim()) ?? []
  const endpoints = hosts.split(',')
  if (!scheme || !endpoints.every((endpoint) => /^(\[[0-9a-fA-F:.]+\]|[^:[\]]+):\d+$/.test(endpoint))) {
    throw new UsageError(
      `--store ${JSON.stringify(text)}: expected etcd://HOST:PORT[,HOST:PORT…][/PREFIX], or etcds:// for TLS`,
    )
  }
  for (const endpoint of endpoints) checkPort('--store', text, endpoint.slice(endpoint.lastIndexOf(':') + 1))
  const prefix = path === undefined || path === '/' ? undefined : path
  return { is: 'etcd', endpoints, prefix, isEncrypted: scheme === 'etcds' }
}

/** Logs a warning if objects, including Secrets, cross a network without TLS. */
export function warnAboutPlainText({ endpoints, isEncrypted }: EtcdLocation, log: Logger): void {
  const remoteEndpoints = isEncrypted ? [] : endpoints.filter((endpoint) => !isLoopback(endpoint))
  if (remoteEndpoints.length === 0) return
  log.warn(
    { endpoints: remoteEndpoints },
    'the connection to etcd is not encrypted; use etcds:// with --etcd-ca, --etcd-cert and --etcd-key',
  )
}

const isLoopback = (endpoint: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|\[::1\]|\[::ffff:127(\.\d{1,3}){3}\]):\d+$/i.test(endpoint)

/** Returns the directory of the embedded store. */
export const storeDirOf = (dataDir: string): string => join(dataDir, 'store')
