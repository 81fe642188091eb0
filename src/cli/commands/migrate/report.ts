// Formats the results of `stowage migrate` as text, JSON or YAML.

import { quoteShellWord } from '../../../base/shell-word.ts'
import { refOfKey } from '../../../client/index.ts'
import { type ClaimResult, countResults, isComplete, resultName, toSingleLine } from '../../bulk/index.ts'
import { formatOutput } from '../../output/format-output.ts'
import { formatTable } from '../../output/table.ts'
import { classLabel, type Operation } from './plan.ts'
import type { MigrateRequest } from './run.ts'
import type { Selection } from './select.ts'

interface Migration {
  readonly operation: Operation
  readonly results: readonly ClaimResult[]
  readonly request: MigrateRequest
  /** Undefined for all namespaces. */
  readonly namespace: string | undefined
  /** Whether a claim has the record, so that --undo can move it back. */
  readonly canUndo: boolean
}

export function formatOpening(
  { operation, isResumed }: Selection,
  remainingCount: number,
  { rate }: MigrateRequest,
): string {
  const { id, from, to, isUndo } = operation
  const description = isUndo
    ? `back from ${classLabel(to)} to ${classLabel(from)}`
    : `from ${classLabel(from)} to ${classLabel(to)}`
  const resumeNote = isResumed ? ' Resuming an interrupted run.' : ''
  return `Operation ${id}: moving ${formatClaimCount(remainingCount)} ${description}, ${rate}.${resumeNote}\n`
}

/** Returns the report if no claim has the class to move from. */
export async function formatEmptyReport({ direction, output, isDryRun }: MigrateRequest): Promise<string> {
  if (direction.is === 'undo') return ''
  const { from, to } = direction
  const report = { operation: null, from, to, undo: false, dryRun: isDryRun, claims: [] }
  const text = () =>
    `${from === '' ? 'No claim is without a class' : `No claim has the class ${from}`}: nothing to move.\n`
  return formatOutput(output, report, text)
}

export const formatReport = (migration: Migration): Promise<string> =>
  formatOutput(migration.request.output, reportOf(migration), () => formatText(migration))

function reportOf({ operation, results, request }: Migration): object {
  const { id, from, to, isUndo } = operation
  const claims = results.map((result) => {
    const { namespace = '', name } = refOfKey(result.key)
    return { namespace, name, result: nameOf(result, request), message: result.message }
  })
  return { operation: id, from, to, undo: isUndo, dryRun: request.isDryRun, claims }
}

const nameOf = (result: ClaimResult, { isDryRun }: MigrateRequest): string =>
  resultName(result, { done: 'moved', planned: 'would move', isDryRun })

/** Lists all claims in a dry run, otherwise only those that did not move, because the others were printed as progress. */
function formatText(migration: Migration): string {
  const { results, request } = migration
  const listedResults = results
    .filter(({ is }) => request.isDryRun || (is !== 'done' && is !== 'nothing'))
    .sort((a, b) => Number(b.is === 'failed') - Number(a.is === 'failed'))
  const table = formatTable([
    ['CLAIM', 'RESULT', 'MESSAGE'],
    ...listedResults
      .slice(0, ROWS_MAX)
      .map((result) => [result.key, nameOf(result, request), toSingleLine(result.message)]),
  ])
  const truncation =
    listedResults.length > ROWS_MAX
      ? `… and ${listedResults.length - ROWS_MAX} more; --output json lists all of them\n`
      : ''
  return `${listedResults.length > 0 ? `\n${table}${truncation}\n` : ''}${formatSummary(migration)}`
}

/** Maximum number of rows in the table. Failures are listed first. */
const ROWS_MAX = 100

function formatSummary({ operation, results, request, namespace, canUndo }: Migration): string {
  const { id, from, to, isUndo } = operation
  const failures = countResults(results, 'failed')
  if (request.isDryRun) {
    return `Would move ${formatClaimCount(countResults(results, 'untouched'))}; ${failures} would be refused. Nothing was changed.\n`
  }
  const [startClass, endClass] = isUndo ? [to, from] : [from, to]
  const leftCount = results.filter(({ is, isWithdrawn }) => is === 'nothing' && isWithdrawn).length
  const movedCount = countResults(results, 'done', 'nothing') - leftCount
  const leftNote =
    leftCount > 0
      ? `, ${leftCount} left unchanged, because another client changed ${leftCount === 1 ? 'it' : 'them'}`
      : ''
  const description = `${movedCount} of ${formatClaimCount(results.length)} moved from ${classLabel(startClass)} to ${classLabel(endClass)}${leftNote}`
  const namespaceFlag = namespace === undefined ? '--all-namespaces' : `--namespace ${namespace}`
  const config = request.kubeconfig === undefined ? '' : ` --kubeconfig ${quoteShellWord(request.kubeconfig)}`
  const undoCommand = `stowage migrate --undo --operation ${id} ${namespaceFlag}${config}\n`
  if (isComplete(results)) return `${description}.\n${canUndo ? `To undo: ${undoCommand}` : ''}`
  const pauseNote = failures > request.failuresMax ? `Paused, because more than ${request.failuresMax} failed. ` : ''
  const continuation = `Run the same command again to continue${canUndo ? `, or undo the operation:\n  ${undoCommand}` : '.\n'}`
  return `${description}, ${failures} failed. ${pauseNote}${continuation}`
}

const formatClaimCount = (count: number): string => `${count} claim${count === 1 ? '' : 's'}`
