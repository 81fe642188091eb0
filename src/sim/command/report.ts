// Adds up the results of seeds and formats them: a table of operations and faults by kind, and the violations.

import type { SimulationRun, Violation } from '../engine/run-plan.ts'
import { pluralize } from '../trace/pluralize.ts'

/** The part of a run that is retained when many seeds are run. */
export interface SeedResult {
  readonly seed: number
  readonly virtualMs: number
  readonly operations: Readonly<Record<string, number>>
  readonly faults: Readonly<Record<string, number>>
  readonly violations: readonly Violation[]
}

export interface Totals {
  seeds: number
  virtualMs: number
  readonly operations: Record<string, number>
  readonly faults: Record<string, number>
  /** The smallest value of any seed. */
  readonly minimum: { virtualMs: number; operations: number; faults: number }
  readonly failures: SeedResult[]
}

/** Later violations of one seed mostly follow from the first ones. */
const VIOLATIONS_MAX = 5
const SHOWN_FAILURES_MAX = 40

export function toSeedResult(seed: number, { virtualMs, operations, faults, violations }: SimulationRun): SeedResult {
  return { seed, virtualMs, operations, faults, violations: violations.slice(0, VIOLATIONS_MAX) }
}

export function createTotals(): Totals {
  const minimum = { virtualMs: Infinity, operations: Infinity, faults: Infinity }
  return { seeds: 0, virtualMs: 0, operations: {}, faults: {}, minimum, failures: [] }
}

export function addResult(totals: Totals, result: SeedResult): void {
  totals.seeds++
  totals.virtualMs += result.virtualMs
  for (const column of ['operations', 'faults'] as const) {
    for (const [kind, count] of Object.entries(result[column]))
      totals[column][kind] = (totals[column][kind] ?? 0) + count
    totals.minimum[column] = Math.min(totals.minimum[column], countOf[column](result))
  }
  totals.minimum.virtualMs = Math.min(totals.minimum.virtualMs, result.virtualMs)
  if (result.violations.length > 0) totals.failures.push(result)
}

export function formatReport(totals: Totals, { realMs }: { readonly realMs: number }): string {
  const { seeds, virtualMs, operations, faults, minimum, failures } = totals
  if (seeds === 0) return 'No seed was run.\n'
  const seedsPerSecond = (seeds / Math.max(realMs / 1000, 0.001)).toFixed(2)
  const sortedFailures = failures.toSorted((a, b) => a.seed - b.seed)
  const lines = [
    alignColumns([['operation', 'count', 'outcomes'], ...listOperationRows(operations)]),
    '',
    alignColumns([['fault', 'count'], ...sortByCount(faults).map(([kind, count]) => [kind, formatCount(count)])]),
    '',
    alignColumns([
      ['', 'total', 'minimum per seed'],
      ['seeds', formatCount(seeds), ''],
      ['virtual hours', formatHours(virtualMs), formatHours(minimum.virtualMs)],
      ['operations', formatCount(countOf.operations(totals)), formatCount(minimum.operations)],
      ['faults', formatCount(countOf.faults(totals)), formatCount(minimum.faults)],
      ['real seconds', (realMs / 1000).toFixed(0), `${seedsPerSecond} seeds/s`],
      ['seeds with violations', formatCount(failures.length), ''],
    ]),
    ...(failures.length > 0
      ? [
          '',
          ...[...groupByRule(failures)].map(([rule, results]) => `${rule}: ${pluralize(results.length, 'seed')}`),
          '',
        ]
      : []),
    ...sortedFailures.slice(0, SHOWN_FAILURES_MAX).map(describeFailure),
  ]
  if (failures.length > SHOWN_FAILURES_MAX) lines.push(`… and ${failures.length - SHOWN_FAILURES_MAX} more seeds.`)
  return `${lines.join('\n')}\n`
}

/** Every operation is counted as `sent` and, if it received a response, also with its outcome. */
const SENT_SUFFIX = ': sent'

const countOf = {
  operations: ({ operations }: Pick<SeedResult, 'operations'>): number =>
    sumOf(Object.fromEntries(Object.entries(operations).filter(([key]) => key.endsWith(SENT_SUFFIX)))),
  faults: ({ faults }: Pick<SeedResult, 'faults'>): number => sumOf(faults),
} as const

/** Returns one row per operation, with all its outcomes: `create claim: done` and `create claim: refused 422` share a row. */
function listOperationRows(operations: Readonly<Record<string, number>>): string[][] {
  const requestedEntries = Object.entries(operations).filter(([key]) => key.endsWith(SENT_SUFFIX))
  return requestedEntries
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, count]) => {
      const kind = key.slice(0, -SENT_SUFFIX.length)
      return [kind, formatCount(count), formatOutcomes(groupOutcomes(kind, count, operations))]
    })
}

function groupOutcomes(
  kind: string,
  requestedCount: number,
  operations: Readonly<Record<string, number>>,
): Record<string, number> {
  const outcomes: Record<string, number> = {}
  for (const [key, count] of Object.entries(operations))
    if (key.startsWith(`${kind}: `) && !key.endsWith(SENT_SUFFIX)) outcomes[key.slice(kind.length + 2)] = count
  const unansweredCount = requestedCount - sumOf(outcomes)
  return unansweredCount > 0 ? { ...outcomes, 'no response': unansweredCount } : outcomes
}

const formatOutcomes = (outcomes: Readonly<Record<string, number>>): string =>
  sortByCount(outcomes)
    .map(([outcome, count]) => `${outcome} ${formatCount(count)}`)
    .join(', ')

/** Returns the failures by the rule violated first, ordered by seed. */
export function groupByRule(failures: readonly SeedResult[]): Map<string, SeedResult[]> {
  const rules = new Map<string, SeedResult[]>()
  for (const failure of failures.toSorted((a, b) => a.seed - b.seed)) {
    const { rule } = failure.violations[0]!
    rules.set(rule, [...(rules.get(rule) ?? []), failure])
  }
  return rules
}

function describeFailure({ seed, violations }: SeedResult): string {
  const [firstLine] = violations[0]!.text.split('\n')
  const otherViolations = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ''
  return `seed ${seed}  ${violations[0]!.rule}: ${firstLine}${otherViolations}`
}

const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)

const sortByCount = (counts: Readonly<Record<string, number>>): [string, number][] =>
  Object.entries(counts).sort(([, a], [, b]) => b - a)

const formatCount = (count: number): string => count.toLocaleString('en-US')
const formatHours = (ms: number): string => (ms / 3_600_000).toLocaleString('en-US', { maximumFractionDigits: 1 })

/** Aligns columns to the left, and the second column, which has numbers, to the right. */
function alignColumns(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const cellText = (cell: string, column: number) =>
    column === 1 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)
  return rows.map((row) => row.map(cellText).join('  ').trimEnd()).join('\n')
}
