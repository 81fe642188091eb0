// Formats a simulation's result as text: whether everything fits, then where pods and volumes go, what does not fit and why, and
// what is left.
import type { SimulationResult } from '../../../diagnosis/index.ts'
import { formatTable } from '../../output/table.ts'
import { formatCount } from '../../output/units.ts'
import { formatTree } from '../why/format-tree.ts'

/** The maximum number of rows per table. JSON and YAML have all of them. */
const ROWS_MAX = 20

export function formatResult(result: SimulationResult, options: { readonly hasColors: boolean }): string {
  const sections = [
    formatSummary(result),
    formatPlaced(result),
    formatRejected(result, options),
    formatNodes(result),
    formatClasses(result),
    formatQuotas(result),
    result.notes.map((note) => `Note: ${note}\n`).join(''),
  ]
  return sections.filter((section) => section !== '').join('\n')
}

function formatSummary({ fits, placed, rejected, nodeGroup }: SimulationResult): string {
  const rejectedPods = rejected.filter(({ kind }) => kind === 'Pod').length
  const rejectedClaims = rejected.length - rejectedPods
  const summary = fits
    ? `Everything fits: ${formatCount(placed.length, 'pod')} placed.`
    : `${formatCount(placed.length, 'pod')} placed, ${formatCount(rejectedPods, 'pod')} not placed` +
      `${rejectedClaims > 0 ? `, ${formatCount(rejectedClaims, 'claim')} rejected` : ''}.`
  return `${summary}\n${nodeGroup ? formatNodeGroup(nodeGroup, fits) : ''}`
}

function formatNodeGroup(
  { name, nodes, isSearched }: NonNullable<SimulationResult['nodeGroup']>,
  fits: boolean,
): string {
  if (!isSearched) return `${formatCount(nodes, 'node')} of the group ${name} added.\n`
  if (nodes === 0)
    return fits ? `No node of the group ${name} is needed.\n` : `Nodes of the group ${name} do not help.\n`
  return `${formatCount(nodes, 'node')} of the group ${name} needed${fits ? '' : '; more would not help'}.\n`
}

function formatPlaced({ placed }: SimulationResult): string {
  const rows = placed.map(({ namespace, name, node, volumes }) => [
    `${namespace}/${name}`,
    node,
    volumes
      .map(({ claim, size, class: className, volume }) =>
        volume === undefined ? `${claim}: new, ${size} of ${className}` : `${claim}: ${volume}`,
      )
      .join('; '),
  ])
  return formatRows(['POD', 'NODE', 'VOLUMES'], rows)
}

function formatRejected({ rejected }: SimulationResult, options: { readonly hasColors: boolean }): string {
  const diagnosed = rejected.flatMap(({ diagnosis }) => diagnosis ?? [])
  const others = rejected.length - diagnosed.length
  const trees = diagnosed.slice(0, ROWS_MAX).map((diagnosis) => formatTree(diagnosis, options))
  const omittedCount = diagnosed.length - trees.length + others
  return `${trees.join('')}${omittedCount > 0 ? `… and ${omittedCount} more that do not fit, with -o json\n` : ''}`
}

function formatNodes({ nodes, placed }: SimulationResult): string {
  const used = new Set(placed.map(({ node }) => node))
  const sortedNodes = [...nodes].sort((a, b) => Number(used.has(b.name)) - Number(used.has(a.name)))
  const rows = sortedNodes.map(({ name, isNew, pods, left }) => [
    `${name}${isNew ? ' (new)' : ''}`,
    String(pods),
    left.cpu ?? '-',
    left.memory ?? '-',
    left.pods ?? '-',
  ])
  return formatRows(['NODE', 'PODS', 'CPU LEFT', 'MEMORY LEFT', 'PODS LEFT'], rows)
}

function formatClasses({ classes }: SimulationResult): string {
  const rows = classes.map(({ name, free, largestFree, segments }) => [
    name,
    String(segments.length),
    free,
    largestFree,
  ])
  return formatRows(['CLASS', 'SEGMENTS', 'SPACE LEFT', 'LARGEST'], rows)
}

function formatQuotas({ quotas }: SimulationResult): string {
  const rows = quotas.flatMap(({ namespace, name, hard, used }) =>
    Object.entries(hard).map(([key, limit]) => [`${namespace}/${name}`, key, used[key] ?? '-', limit]),
  )
  return formatRows(['QUOTA', 'RESOURCE', 'USED', 'LIMIT'], rows)
}

/** Returns an empty string if there are no rows. */
function formatRows(header: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const omittedCount = Math.max(0, rows.length - ROWS_MAX)
  const table = formatTable([header, ...rows.slice(0, ROWS_MAX)])
  return `${table}${omittedCount > 0 ? `… and ${omittedCount} more, with -o json\n` : ''}`
}
