// Runs `stowage df`: reads claims, volumes, pods and their measured usage, and prints a row per claim or group,
// or what automatic growth would do.
import { setMaxListeners } from 'node:events'
import type { Clock } from '../../../base/clock.ts'
import { loadClientConfig } from '../../../client/connection/client-config.ts'
import { createTransport, type Transport } from '../../../client/http/transport.ts'
import { type Client, httpClient } from '../../../client/index.ts'
import { readUsage } from '../../../volumes/read-usage.ts'
import type { BulkDeps } from '../../bulk/deps.ts'
import { formatOutput, type OutputFormat } from '../../output/format-output.ts'
import { createWorkProgress, type ProgressOutput, standardError } from '../../output/work-progress.ts'
import { readLists } from '../../space/read-lists.ts'
import { NAMESPACE_LISTS, SPACE_KINDS, type SpaceLists } from './cluster-lists.ts'
import { formatClaims, formatGroups } from './format-rows.ts'
import { findPools } from './pools.ts'
import { type SortKey, sortRows } from './sort-rows.ts'
import { createEntries, nodesOfPods, type SpaceEntry } from './space-entries.ts'
import { type Grouping, groupEntries, type SpaceGroup } from './space-groups.ts'
import { formatGrowth, planGrowth } from './would-grow.ts'

export interface DfRequest {
  readonly kubeconfig?: string
  readonly namespace?: string
  readonly allNamespaces?: boolean
  readonly by: 'claim' | Grouping
  readonly sort: SortKey
  /** Whether to print what automatic growth would do, instead of the amounts. */
  readonly wouldGrow?: boolean
  readonly output: OutputFormat
}

export interface DfDeps extends BulkDeps {
  readonly hasColors: boolean
}

export interface SpaceReport {
  readonly by: DfRequest['by']
  readonly items: readonly SpaceEntry[] | readonly SpaceGroup[]
  /** The rules that the user lacks. Without them, some amounts are unknown. */
  readonly missingRules: readonly string[]
}

const TIMEOUT_MS = 10_000
const USER_AGENT = 'stowage-df'

export async function runDf(request: DfRequest, deps: DfDeps): Promise<void> {
  const { clock, signal, terminal, hasColors } = deps
  setMaxListeners(0, signal) // every list adds a listener
  const config = await loadClientConfig(request.kubeconfig, deps)
  const options = { connection: config.connection, clock, timeoutMs: TIMEOUT_MS, userAgent: USER_AGENT }
  const namespace = request.allNamespaces ? undefined : (request.namespace ?? config.namespace)
  const connection = { client: httpClient(options), transport: createTransport(options) }
  try {
    const reportDeps = { clock, signal, ...connection, output: standardError() }
    if (request.wouldGrow) {
      const { lists, usage, rules } = await readSpace(namespace, reportDeps)
      const items = planGrowth(lists, usage, clock.nowMs())
      return deps.write(
        await formatOutput(request.output, { items, missingRules: rules }, () => formatGrowth(items, hasColors)),
      )
    }
    const report = await createSpaceReport({ ...request, namespace }, reportDeps)
    const style = { hasColors, hasBars: terminal !== undefined }
    deps.write(await formatOutput(request.output, report, () => formatReport(report, namespace, style)))
  } finally {
    connection.client.close()
    connection.transport.close()
  }
}

export interface ReportDeps {
  readonly client: Pick<Client, 'list' | 'serves'>
  readonly transport: Pick<Transport, 'call'>
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Where the progress is shown. */
  readonly output: ProgressOutput
}

/** Throws an error that names the rule if the user may not list claims: without them there is nothing to report. */
export async function createSpaceReport(
  { by, sort, namespace }: Pick<DfRequest, 'by' | 'sort'> & { readonly namespace: string | undefined },
  deps: ReportDeps,
): Promise<SpaceReport> {
  const { lists, usage, hasPods, rules } = await readSpace(namespace, deps)
  const pools = findPools(lists)
  const entries = createEntries({ lists, pools, usage, hasPods, namespace })
  const items =
    by === 'claim'
      ? sortRows(
          entries.filter(({ claim }) => claim !== undefined),
          sort,
        )
      : sortRows(groupEntries(entries, by, { pools, quotas: lists.quotas }), sort)
  return { by, items, missingRules: rules }
}

/** Reads the lists and the usage of the volumes in a namespace, or in all namespaces. */
async function readSpace(namespace: string | undefined, { client, transport, clock, signal, output }: ReportDeps) {
  const { lists, missingRules } = await readLists(SPACE_KINDS, {
    client,
    namespace,
    namespaceLists: NAMESPACE_LISTS,
    signal,
  })
  const missingRule = missingRules.find(({ list }) => list === 'claims')
  if (missingRule) {
    const hint = namespace === undefined ? '; choose a namespace that you may read: --namespace NAME' : ''
    throw new Error(`Claims cannot be read: you need permission to ${missingRule.rule}${hint}`)
  }
  const hasPods = !missingRules.some(({ list }) => list === 'pods')
  const nodes = selectNodes(lists, hasPods)
  const progress = createWorkProgress({ title: 'Querying nodes', unit: 'nodes', total: nodes.length, clock, output })
  const usage = await readUsage(nodes, { client, transport, signal, progress }).finally(progress.finish)
  const rules = [...missingRules.map(({ rule }) => rule), ...(usage.missingRule ? [usage.missingRule] : [])]
  return { lists, usage, hasPods, rules }
}

/** Returns the nodes that may have a volume mounted. */
function selectNodes({ claims, pods, nodes }: SpaceLists, hasPods: boolean): readonly string[] {
  if (!hasPods) return nodes.map(({ metadata }) => metadata.name)
  const nodesByClaim = nodesOfPods(pods)
  const names = claims.flatMap(({ metadata }) => nodesByClaim.get(`${metadata.namespace}/${metadata.name}`) ?? [])
  return [...new Set(names)].sort()
}

function formatReport(
  { by, items, missingRules }: SpaceReport,
  namespace: string | undefined,
  style: { readonly hasColors: boolean; readonly hasBars: boolean },
): string {
  const place = namespace === undefined ? 'any namespace' : `the namespace ${namespace}`
  if (items.length === 0) return `There are no claims in ${place}.\n`
  const table =
    by === 'claim'
      ? formatClaims(items as readonly SpaceEntry[], style)
      : formatGroups(items as readonly SpaceGroup[], by, style)
  const rules = missingRules.map((rule) => `  ${rule}\n`).join('')
  return `${table}${rules === '' ? '' : `\nTo show more, you need permission to:\n${rules}`}`
}
