// Creates the connection of a program in a pod: the address comes from the environment, the CA certificate and the service
// account token from files. The token file is read repeatedly, because the kubelet renews the token.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { cachedFileReader } from './cached-file-reader.ts'
import type { Connection } from './connection.ts'

const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount'

export interface InClusterOptions {
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  readonly dir?: string
}

export const isInCluster = (env: InClusterOptions['env']): boolean =>
  Boolean(env.KUBERNETES_SERVICE_HOST && env.KUBERNETES_SERVICE_PORT)

export async function inClusterConnection(options: InClusterOptions): Promise<Connection> {
  const { clock, env, dir = SERVICE_ACCOUNT_DIR } = options
  if (!isInCluster(env)) {
    throw new Error(
      'Not running in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set. Use a kubeconfig.',
    )
  }
  const host = env.KUBERNETES_SERVICE_HOST!
  const readToken = cachedFileReader(join(dir, 'token'), clock)
  await readToken()
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT}`,
    ca: await readFile(join(dir, 'ca.crt'), 'utf8'),
    credentials: async () => ({ token: (await readToken()).trim() }),
  }
}
