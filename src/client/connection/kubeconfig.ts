// Creates a Connection from a context of a kubeconfig. Paths in the kubeconfig are relative to its directory.
// exec-credential.ts runs exec plugins.
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { loadYaml, type Yaml } from '../../api/load-yaml.ts'
import type { Clock } from '../../base/clock.ts'
import { cachedFileReader } from './cached-file-reader.ts'
import type { Connection, Credentials } from './connection.ts'
import { createExecCredentials, type ExecConfig } from './exec-credential.ts'

export interface KubeconfigOptions {
  readonly path: string
  /** Default: the current-context of the kubeconfig. */
  readonly context?: string
  readonly clock: Clock
}

export interface KubeconfigConnection extends Connection {
  /** The namespace of the context, or `default`. */
  readonly namespace: string
}

export async function kubeconfigConnection({ path, context, clock }: KubeconfigOptions): Promise<KubeconfigConnection> {
  const { parse } = await loadYaml()
  const config = asRecord(parseConfig(await readFile(path, 'utf8'), parse))
  if (!('clusters' in config || 'contexts' in config || 'current-context' in config)) {
    throw new Error('it is not a kubeconfig: it has no clusters, contexts or current-context')
  }
  const contextName = context ?? asString(config['current-context'])
  if (!contextName) throw new Error(`${path} has no current-context: set one, or select a context`)
  const file = { config, path }
  const selectedContext = findEntry(file, 'context', contextName)
  const cluster = findEntry(file, 'cluster', asString(selectedContext.cluster))
  const user = asString(selectedContext.user) ? findEntry(file, 'user', asString(selectedContext.user)) : {}
  const server = asString(cluster.server)
  if (!/^https?:\/\//.test(server))
    throw new Error(`${path}: the server of context "${contextName}" must be a URL, not "${server}"`)

  const readPem = async (record: Record<string, unknown>, field: string): Promise<string | undefined> => {
    const data = asString(record[`${field}-data`])
    if (data) return Buffer.from(data, 'base64').toString('utf8')
    const pemPath = asString(record[field])
    return pemPath ? readFile(resolve(dirname(path), pemPath), 'utf8') : undefined
  }
  const ca = await readPem(cluster, 'certificate-authority')
  const serverName = asString(cluster['tls-server-name'])
  return {
    server: server.replace(/\/+$/, ''),
    namespace: asString(selectedContext.namespace) || 'default',
    ca,
    insecure: cluster['insecure-skip-tls-verify'] === true,
    serverName: serverName || undefined,
    ...(await loadCredentials(user, { path, clock, readPem })),
  }
}

function parseConfig(text: string, parse: Yaml['parse']): unknown {
  try {
    return parse(text)
  } catch {
    throw new Error('it is not a kubeconfig: its content is not YAML')
  }
}

interface UserContext {
  readonly path: string
  readonly clock: Clock
  readPem(record: Record<string, unknown>, field: string): Promise<string | undefined>
}

/** Returns the user's certificate, if any, with a token or the credentials of exec. The precedence is token, tokenFile, exec. */
async function loadCredentials(
  user: Record<string, unknown>,
  { path, clock, readPem }: UserContext,
): Promise<Pick<Connection, 'credentials' | 'invalidateCredentials'>> {
  const cert = await readPem(user, 'client-certificate')
  const key = await readPem(user, 'client-key')
  const certificate: Credentials = cert && key ? { cert, key } : {}
  const token = asString(user.token)
  if (token) return { credentials: async () => ({ ...certificate, token }) }
  if (asString(user.tokenFile)) {
    const readToken = cachedFileReader(resolve(dirname(path), asString(user.tokenFile)), clock)
    return { credentials: async () => ({ ...certificate, token: (await readToken()).trim() }) }
  }
  if (user.exec) {
    const plugin = createExecCredentials(user.exec as ExecConfig, { clock, dir: dirname(path) })
    return {
      credentials: async () => ({ ...certificate, ...(await plugin.get()) }),
      invalidateCredentials: () => plugin.invalidate(),
    }
  }
  for (const field of ['auth-provider', 'username', 'as']) {
    if (user[field])
      throw new Error(`${path}: user field "${field}" is not supported; use a certificate, a token or exec`)
  }
  return { credentials: async () => certificate }
}

interface KubeconfigFile {
  readonly config: Record<string, unknown>
  readonly path: string
}

/** Returns the context, cluster or user with this name. Throws if there is none. */
function findEntry({ config, path }: KubeconfigFile, type: 'context' | 'cluster' | 'user', name: string) {
  const list = config[`${type}s`]
  const entries = Array.isArray(list) ? list.map(asRecord) : []
  const match = entries.find((entry) => entry.name === name)
  if (!match)
    throw new Error(
      `${path} has no ${type} "${name}"; it has ${entries.map((entry) => `"${asString(entry.name)}"`).join(', ') || 'none'}`,
    )
  return asRecord(match[type])
}

const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

const asString = (value: unknown): string => (typeof value === 'string' ? value : '')
