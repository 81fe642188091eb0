// Reads the health, store, nodes, drivers and leader of a running server with the administrator's credentials. If a read
// fails, the result contains a problem; this is not an error.
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { leaseKind } from '../../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { ApiError } from '../../../api/status-error.ts'
import type { Clock } from '../../../base/clock.ts'
import { createTransport } from '../../../client/http/transport.ts'
import { type Client, type Connection, find, httpClient, kubeconfigConnection } from '../../../client/index.ts'
import { CONTROLLERS_LEASE } from '../../../processes/controllers.ts'
import type { ServerRecord } from '../../../processes/server/server-record.ts'

export interface ApiStatus {
  readonly problems: readonly string[]
  readonly storeBytes?: number
  readonly objects?: number
  readonly revision?: number
  readonly leader?: string
  readonly nodes?: readonly { readonly name: string; readonly isReady: boolean; readonly version: string }[]
  readonly drivers?: readonly { readonly name: string; readonly nodes: readonly string[] }[]
}

export interface QueryOptions {
  readonly server: ServerRecord
  readonly kubeconfig: string
  readonly clock: Clock
}

const TIMEOUT_MS = 5_000

export async function queryServer({ server, kubeconfig, clock }: QueryOptions): Promise<ApiStatus> {
  if (server.url === undefined) return { problems: ['starting: the API is not ready yet'] }
  let connection: Connection
  try {
    connection = { ...(await kubeconfigConnection({ path: kubeconfig, clock })), server: server.url }
    await connection.credentials()
  } catch (error) {
    return { problems: [`cannot read the credentials in ${kubeconfig}: ${(error as Error).message}`] }
  }
  const problems: string[] = []
  try {
    const options = { connection, clock, timeoutMs: TIMEOUT_MS, userAgent: 'stowage-status' }
    const transport = createTransport(options)
    const client = httpClient(options)
    try {
      const readiness = await transport.call({ method: 'GET', path: '/readyz?verbose' })
      problems.push(...parseFailedChecks(readiness))
      const metrics = await transport.call({ method: 'GET', path: '/metrics' })
      return {
        problems,
        storeBytes: sampleOf(metrics.text, 'apiserver_storage_size_bytes'),
        objects: sampleOf(metrics.text, 'stowage_store_keys'),
        revision: sampleOf(metrics.text, 'stowage_store_revision'),
        ...(await readObjects(client)),
      }
    } finally {
      transport.close()
      client.close()
    }
  } catch (error) {
    return { problems: [...problems, `the API at ${server.url} ${describeFailure(error as Error)}`] }
  }
}

/** The codes of the client for a request without a response. A server that is overloaded or stops also uses them. */
const UNAVAILABLE_CODES = [503, 504]

const describeFailure = (error: Error): string =>
  error instanceof ApiError && !UNAVAILABLE_CODES.includes(error.code)
    ? `rejected the request: ${error.message}`
    : `is unavailable: ${error.message}`

/** Returns the failed checks of a verbose response, `NAME failed: REASON`, or the status and text if none is listed. */
export function parseFailedChecks({ status, text }: { readonly status: number; readonly text: string }): string[] {
  if (status === 200) return []
  const failedChecks = [...text.matchAll(/^\[-\](.+)$/gm)].map(([, check]) => check!)
  return failedChecks.length > 0 ? failedChecks : [`/readyz responds with ${status}: ${text.trim()}`]
}

/** Returns the value of the first sample of a metric, whatever its labels. */
export function sampleOf(metrics: string, name: string): number | undefined {
  const value = new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(metrics)?.[1]
  return value === undefined ? undefined : Number(value)
}

async function readObjects(client: Client): Promise<Pick<ApiStatus, 'leader' | 'nodes' | 'drivers'>> {
  const [nodes, csiNodes, lease] = await Promise.all([
    client.list(nodeKind),
    client.list(csiNodeKind),
    find(client, leaseKind, { namespace: 'kube-system', name: CONTROLLERS_LEASE }),
  ])
  const nodesByDriver = new Map<string, string[]>()
  for (const { metadata, spec } of csiNodes.items) {
    for (const { name } of spec?.drivers ?? []) {
      nodesByDriver.set(name, [...(nodesByDriver.get(name) ?? []), metadata.name])
    }
  }
  const leader = lease?.spec?.holderIdentity
  return {
    ...(leader ? { leader } : {}),
    nodes: nodes.items.map(({ metadata, status }) => ({
      name: metadata.name,
      isReady: status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false,
      version: status?.nodeInfo?.kubeletVersion ?? '',
    })),
    drivers: [...nodesByDriver].map(([name, nodes]) => ({ name, nodes })),
  }
}
