// Reads the measured usage of mounted volumes: from the metrics of a Stowage server, which cover the nodes in its process and
// the reports of other nodes, and on other servers from the kubelets through nodes/proxy. A failed read is a problem in the
// result, not an error.
import { operationKind } from '../api/kinds/operation/operation.ts'
import { ApiError } from '../api/status-error.ts'
import type { HttpResponse, Transport } from '../client/http/transport.ts'
import type { Client, ObjectKey } from '../client/index.ts'
import { mapConcurrently } from '../client/map-concurrently.ts'
import { parseMetrics, parseSummary, type UsageByClaim, type VolumeUsage } from './volume-usage.ts'

export interface UsageReport {
  readonly byClaim: UsageByClaim
  /** Why nothing is known about the volumes on a node. */
  readonly nodeProblems: ReadonlyMap<string, string>
  /** Why nothing is known about any volume. */
  readonly problem?: string
  /** The rule that reading the usage requires and the user lacks: `get nodes/proxy` or `get the path /metrics`. */
  readonly missingRule?: string
}

export interface UsageDeps {
  readonly client: Pick<Client, 'serves'>
  readonly transport: Pick<Transport, 'call'>
  readonly signal: AbortSignal
  /** Counts the kubelets that were read, successfully or not. */
  readonly progress: { add(count: number): void }
}

/** Reads the usage of the volumes on these nodes. */
export async function readUsage(nodes: readonly string[], deps: UsageDeps): Promise<UsageReport> {
  try {
    return (await deps.client.serves(operationKind)) ? await readServerMetrics(deps) : await readKubelets(nodes, deps)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { ...NOTHING, problem: error.message }
  }
}

const NOTHING: UsageReport = { byClaim: new Map(), nodeProblems: new Map() }

async function readServerMetrics({ transport, signal }: UsageDeps): Promise<UsageReport> {
  const response = await transport.call({ method: 'GET', path: '/metrics', signal })
  if (response.status === 200) return { ...NOTHING, byClaim: parseMetrics(response.text) }
  if (response.status === 403) return { ...NOTHING, missingRule: 'get the path /metrics' }
  return { ...NOTHING, problem: `the API server returned ${response.status} for /metrics: ${messageOf(response.text)}` }
}

const CONCURRENT_NODES = 8

async function readKubelets(nodes: readonly string[], deps: UsageDeps): Promise<UsageReport> {
  const byClaim = new Map<ObjectKey, VolumeUsage>()
  const nodeProblems = new Map<string, string>()
  let isForbidden = false
  await mapConcurrently(nodes, CONCURRENT_NODES, async (node) => {
    if (isForbidden) return // without the permission, requests to other nodes fail too
    const result = await readKubelet(node, deps)
    deps.progress.add(1)
    if (result.is === 'forbidden') isForbidden = true
    else if (result.is === 'failed') nodeProblems.set(node, result.message)
    else for (const [key, usage] of result.usage) byClaim.set(key, usage)
  })
  return { byClaim, nodeProblems, ...(isForbidden ? { missingRule: 'get nodes/proxy' } : {}) }
}

type KubeletResult =
  | { readonly is: 'read'; readonly usage: UsageByClaim }
  | { readonly is: 'forbidden' }
  | { readonly is: 'failed'; readonly message: string }

async function readKubelet(node: string, { transport, signal }: UsageDeps): Promise<KubeletResult> {
  const path = `/api/v1/nodes/${encodeURIComponent(node)}/proxy/stats/summary`
  try {
    const response = await transport.call({ method: 'GET', path, signal })
    if (response.status === 200) return { is: 'read', usage: parseSummary(response.text) }
    return response.status === 403 ? { is: 'forbidden' } : { is: 'failed', message: describeFailure(response) }
  } catch (error) {
    if (error instanceof SyntaxError)
      return { is: 'failed', message: `the response of its kubelet is not valid: ${error.message}` }
    if (!(error instanceof ApiError)) throw error
    return { is: 'failed', message: `the statistics of its kubelet cannot be read: ${error.message}` }
  }
}

const describeFailure = ({ status, text }: HttpResponse): string =>
  `the API server could not read the statistics of its kubelet (${status}): ${messageOf(text)}`

const MESSAGE_LENGTH_MAX = 200

/** Returns the message of a Status, or the beginning of another body. */
function messageOf(text: string): string {
  try {
    const { message } = JSON.parse(text) as { readonly message?: string }
    return (message ?? text).slice(0, MESSAGE_LENGTH_MAX)
  } catch {
    return text.slice(0, MESSAGE_LENGTH_MAX)
  }
}
