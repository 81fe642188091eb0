// Runs `stowage retry`: annotates the object with a request to retry, and prints the operations of the object if the
// API server lists operations and the user may read them.
import { CLUSTER_OPERATIONS_NAMESPACE, operationKind } from '../../../api/kinds/operation/operation.ts'
import type { Operation } from '../../../api/kinds/operation/operation-schema.ts'
import { ApiError, isNotFound } from '../../../api/status-error.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { type Client, httpClient } from '../../../client/index.ts'
import { findSimilarNames } from '../../../diagnosis/index.ts'
import { RETRY_ANNOTATION } from '../../../runtime/operations/retry-request.ts'
import type { BulkDeps } from '../../bulk/index.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { type NamedObject, parseObject } from './object-kinds.ts'

export interface RetryFlags {
  readonly kubeconfig?: string
  readonly namespace?: string
  readonly dryRun?: boolean
  readonly output: OutputFormat
}

export interface RetryRequest extends NamedObject {
  readonly kubeconfig?: string
  /** Default: the kubeconfig's namespace. */
  readonly namespace?: string
  readonly isDryRun: boolean
  readonly output: OutputFormat
}

/** Throws UsageError if the object is not KIND/NAME. */
export const readRetryRequest = (object: string, flags: RetryFlags): RetryRequest => ({
  ...parseObject(object),
  kubeconfig: flags.kubeconfig,
  namespace: flags.namespace,
  isDryRun: flags.dryRun ?? false,
  output: flags.output,
})

export async function runRetry(request: RetryRequest, deps: BulkDeps): Promise<void> {
  const { connection, namespace } = await loadClientConfig(request.kubeconfig, deps)
  const client = httpClient({ connection, clock: deps.clock, userAgent: 'stowage-retry' })
  try {
    await requestRetry(client, { ...request, namespace: request.namespace ?? namespace }, deps)
  } finally {
    client.close()
  }
}

export async function requestRetry(
  client: Client,
  request: RetryRequest,
  deps: Pick<BulkDeps, 'clock' | 'signal' | 'write'>,
): Promise<void> {
  const { kind, name } = request
  const result = await annotateForRetry(client, request, deps)
  const label = `${kind.singular}/${name}${result.namespace ? ` in namespace ${result.namespace}` : ''}`
  deps.write(await formatOutput(request.output, result, () => formatText(label, result)))
}

export interface RetryResult {
  readonly kind: string
  readonly namespace: string | undefined
  readonly name: string
  readonly requestedAt: string
  readonly isDryRun: boolean
  /** Undefined if the operations cannot be read, for example because the server does not serve them. */
  readonly operations: readonly Operation[] | undefined
}

/** Throws an Error that names the object and objects with similar names if the object does not exist, otherwise an ApiError. */
export async function annotateForRetry(
  client: Client,
  { kind, name, namespace: givenNamespace, isDryRun }: Omit<RetryRequest, 'output'>,
  { clock, signal }: Pick<BulkDeps, 'clock' | 'signal'>,
): Promise<RetryResult> {
  const namespace = kind.namespaced ? givenNamespace : undefined
  const operations = await readOperations(client, { kind: kind.kind, name, namespace }, signal)
  const requestedAt = new Date(clock.nowMs()).toISOString()
  const body = { metadata: { annotations: { [RETRY_ANNOTATION]: requestedAt } } }
  try {
    await client.patch(kind, { name, namespace }, { type: 'merge', body }, { dryRun: isDryRun, signal })
  } catch (error) {
    throw isNotFound(error) ? await notFoundError(client, { kind, name, namespace }, signal) : error
  }
  return { kind: kind.kind, namespace, name, requestedAt, isDryRun, operations }
}

/** Returns undefined if the request fails, for example because the server does not serve operations. */
async function readOperations(
  client: Client,
  { kind, name, namespace }: { readonly kind: string; readonly name: string; readonly namespace: string | undefined },
  signal: AbortSignal,
): Promise<readonly Operation[] | undefined> {
  try {
    const { items } = await client.list(operationKind, {
      namespace: namespace ?? CLUSTER_OPERATIONS_NAMESPACE,
      fieldSelector: `object.kind=${kind},object.name=${name}`,
      signal,
    })
    return items
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

function formatText(
  label: string,
  { isDryRun, operations }: { readonly isDryRun: boolean; readonly operations: readonly Operation[] | undefined },
): string {
  const lines = [isDryRun ? `${label}: a retry would be requested (dry run)` : `${label}: retry requested`]
  if (operations?.length === 0) lines.push('  No operation of this object is in progress or waiting.')
  for (const { operation, component, phase, reason, message } of operations ?? []) {
    const state = reason ? `${phase}, ${reason}` : phase
    lines.push(`  ${operation} by ${component} (${state})${message ? `: ${message}` : ''}`)
  }
  return `${lines.join('\n')}\n`
}

async function notFoundError(
  client: Client,
  { kind, name, namespace }: NamedObject & { readonly namespace: string | undefined },
  signal: AbortSignal,
): Promise<Error> {
  const where = namespace ? ` in namespace ${JSON.stringify(namespace)}` : ''
  const names = await client.list(kind, { namespace, signal }).then(
    ({ items }) => items.map(({ metadata }) => metadata.name),
    () => [],
  )
  const similar = findSimilarNames(name, names)
  const hint = similar.length > 0 ? ` Similar names: ${similar.join(', ')}.` : ''
  return new Error(`There is no ${kind.singular} ${JSON.stringify(name)}${where}.${hint}`)
}
