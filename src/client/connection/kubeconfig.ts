// Reads a context of a kubeconfig as a Connection. Relative paths in it are relative to the file. exec-credential.ts runs
// exec plugins.
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { Connection, Credentials } from './connection.ts'
import { type ExecConfig, execCredential } from './exec-credential.ts'
import { rereadFile } from './reread-file.ts'

export interface KubeconfigOptions {
  readonly path: string
  /** Default: the file's current-context. */
  readonly context?: string
  readonly clock: Clock
}

export interface KubeconfigConnection extends Connection {
  /** The namespace of the context, or `default`. */
  readonly namespace: string
}

type Yaml = typeof import('yaml')

export async function kubeconfigConnection({ path, context, clock }: KubeconfigOptions): Promise<KubeconfigConnection> {
  const loaded: Yaml & { readonly default?: Yaml } = await import('yaml')
  const { parse } = loaded.default ?? loaded // in the bundle, the module is its default export
  const config = asRecord(parse(await readFile(path, 'utf8')))
  const contextName = context ?? text(config['current-context'])
  if (!contextName) throw new Error(`${path} has no current-context: set it, or choose a context`)
  const chosen = named(config, 'contexts', 'context', contextName, path)
  const cluster = named(config, 'clusters', 'cluster', text(chosen.cluster), path)
  const user = text(chosen.user) ? named(config, 'users', 'user', text(chosen.user), path) : {}
  const server = text(cluster.server)
  if (!/^https?:\/\//.test(server))
    throw new Error(`${path}: the server of context "${contextName}" must be a URL, not "${server}"`)

  const pem = async (from: Record<string, unknown>, field: string): Promise<string | undefined> => {
    const data = text(from[`${field}-data`])
    if (data) return Buffer.from(data, 'base64').toString('utf8')
    const file = text(from[field])
    return file ? readFile(resolve(dirname(path), file), 'utf8') : undefined
  }
  const ca = await pem(cluster, 'certificate-authority')
  const serverName = text(cluster['tls-server-name'])
  return {
    server: server.replace(/\/+$/, ''),
    namespace: text(chosen.namespace) || 'default',
    ca,
    insecure: cluster['insecure-skip-tls-verify'] === true,
    serverName: serverName || undefined,
    ...(await credentialsOf(user, { path, clock, pem })),
  }
}

interface UserContext {
  readonly path: string
  readonly clock: Clock
  pem(from: Record<string, unknown>, field: string): Promise<string | undefined>
}

/** In order of precedence: token, tokenFile, exec. */
async function credentialsOf(
  user: Record<string, unknown>,
  { path, clock, pem }: UserContext,
): Promise<Pick<Connection, 'credentials' | 'forgetCredentials'>> {
  const cert = await pem(user, 'client-certificate')
  const key = await pem(user, 'client-key')
  const certificate: Credentials = cert && key ? { cert, key } : {}
  const token = text(user.token)
  if (token) return { credentials: async () => ({ ...certificate, token }) }
  if (text(user.tokenFile)) {
    const read = rereadFile(resolve(dirname(path), text(user.tokenFile)), clock)
    return { credentials: async () => ({ ...certificate, token: (await read()).trim() }) }
  }
  if (user.exec) {
    const program = execCredential(user.exec as ExecConfig, { clock, dir: dirname(path) })
    return {
      credentials: async () => ({ ...certificate, ...(await program.get()) }),
      forgetCredentials: () => program.forget(),
    }
  }
  for (const field of ['auth-provider', 'username', 'as']) {
    if (user[field])
      throw new Error(`${path}: user field "${field}" is not supported; use a certificate, a token or exec`)
  }
  return { credentials: async () => certificate }
}

function named(config: Record<string, unknown>, list: string, field: string, name: string, path: string) {
  const entries = Array.isArray(config[list]) ? (config[list] as unknown[]).map(asRecord) : []
  const found = entries.find((entry) => entry.name === name)
  if (!found)
    throw new Error(
      `${path} has no ${field} "${name}"; it has ${entries.map((entry) => `"${text(entry.name)}"`).join(', ') || 'none'}`,
    )
  return asRecord(found[field])
}

const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
