// Loads the client configuration of a component: from a kubeconfig, which its flag or $KUBECONFIG names, or from its pod.
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { delimiter } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/usage-error.ts'
import { type Connection, inClusterConnection, isInCluster, kubeconfigConnection } from '../index.ts'
import type { KubeconfigConnection, KubeconfigOptions } from './kubeconfig.ts'

export interface ClientConfig {
  readonly connection: Connection
  /** The namespace of the kubeconfig context or of the pod. */
  readonly namespace: string
  /** The path of the kubeconfig. Absent if the configuration is that of the pod. */
  readonly path?: string
}

const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'

export interface ClientConfigOptions {
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  /** The context of the kubeconfig. Default: its current context. */
  readonly context?: string
}

export async function loadClientConfig(
  kubeconfig: string | undefined,
  { clock, env, context }: ClientConfigOptions,
): Promise<ClientConfig> {
  const path = kubeconfig ?? env.KUBECONFIG?.split(delimiter).find(Boolean)
  if (path) {
    const connection = await readKubeconfig({ path, clock, context }).catch((error) => {
      throw new UsageError(`Cannot use the kubeconfig ${path}: ${(error as Error).message}`)
    })
    return { connection, namespace: connection.namespace, path }
  }
  if (!isInCluster(env)) {
    throw new UsageError('No API server: set --kubeconfig or $KUBECONFIG, or run in a cluster.')
  }
  return { connection: await inClusterConnection({ clock, env }), namespace: await readPodNamespace(env) }
}

async function readKubeconfig(options: KubeconfigOptions): Promise<KubeconfigConnection> {
  const connection = await kubeconfigConnection(options)
  if (connection.ca !== undefined) checkCertificate(connection.ca)
  return connection
}

function checkCertificate(pem: string): void {
  try {
    new X509Certificate(pem)
  } catch {
    throw new Error('its certificate-authority is not a PEM certificate')
  }
}

/** Returns $POD_NAMESPACE, or the namespace of the service account, or `default`. */
export async function readPodNamespace(env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const namespace = env.POD_NAMESPACE || (await readFile(NAMESPACE_FILE, 'utf8').catch(() => ''))
  return namespace.trim() || 'default'
}
