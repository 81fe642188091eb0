// The output of `stowage migrate`: text, and JSON for scripts.
import { refOfKey } from '../../../client/index.ts'
import { type ClaimResult, countOf, isComplete, jsonText, oneLine, resultName, tableOf } from '../../bulk/index.ts'
import { type Operation, shown } from './plan.ts'
import type { MigrateRequest } from './run.ts'
import type { Choice } from './select.ts'

interface Migration {
  readonly operation: Operation
  readonly results: readonly ClaimResult[]
  readonly request: MigrateRequest
  /** A claim carries the record, so that --undo can revert it. */
  readonly canUndo: boolean
}

export function openingOf({ operation, isResumed }: Choice, claimsLeft: number, { rate }: MigrateRequest): string {
  const { id, from, to, isUndo } = operation
  const what = isUndo ? `back from ${shown(to)} to ${shown(from)}` : `from ${shown(from)} to ${shown(to)}`
  const resuming = isResumed ? ' Resuming an interrupted run.' : ''
  return `Operation ${id}: moving ${claimsOf(claimsLeft)} ${what}, ${rate}.${resuming}\n`
}

/** No claim has the class that claims are to be moved from. */
export function reportOfNothing({ direction, output, isDryRun }: MigrateRequest): string {
  if (direction.is === 'undo') return ''
  const { from, to } = direction
  if (output === 'json') return jsonText({ operation: null, from, to, undo: false, dryRun: isDryRun, claims: [] })
  return `${from === '' ? 'No claim is without a class' : `No claim has the class ${from}`}: nothing to move.\n`
}

export const reportOf = (migration: Migration): string =>
  migration.request.output === 'json' ? jsonOf(migration) : textOf(migration)

function jsonOf({ operation, results, request }: Migration): string {
  const { id, from, to, isUndo } = operation
  const claims = results.map((result) => {
    const { namespace = '', name } = refOfKey(result.key)
    return { namespace, name, result: nameOf(result, request), message: result.message }
  })
  return jsonText({ operation: id, from, to, undo: isUndo, dryRun: request.isDryRun, claims })
}

const nameOf = (result: ClaimResult, { isDryRun }: MigrateRequest): string =>
  resultName(result, { done: 'moved', planned: 'would move', isDryRun })

/** Lists all claims of a dry run, otherwise those that did not move: the others were printed as progress. */
function textOf(migration: Migration): string {
  const { results, request } = migration
  const listed = results
    .filter(({ is }) => request.isDryRun || (is !== 'done' && is !== 'nothing'))
    .sort((a, b) => Number(b.is === 'failed') - Number(a.is === 'failed'))
  const table = tableOf([
    ['CLAIM', 'RESULT', 'WHY'],
    ...listed.slice(0, ROWS_MAX).map((result) => [result.key, nameOf(result, request), oneLine(result.message)]),
  ])
  const more =
    listed.length > ROWS_MAX ? `… and ${listed.length - ROWS_MAX} more; --output json lists all of them\n` : ''
  return `${listed.length > 0 ? `\n${table}${more}\n` : ''}${summaryOf(migration)}`
}

/** Rows printed; failures come first. */
const ROWS_MAX = 100

function summaryOf({ operation, results, request, canUndo }: Migration): string {
  const { id, from, to, isUndo } = operation
  const failed = countOf(results, 'failed')
  if (request.isDryRun) {
    return `Would move ${claimsOf(countOf(results, 'untouched'))}; ${failed} would be refused. Nothing was changed.\n`
  }
  const [start, end] = isUndo ? [to, from] : [from, to]
  const done = countOf(results, 'done', 'nothing')
  const what = `${done} of ${claimsOf(results.length)} moved from ${shown(start)} to ${shown(end)}`
  const undo = `stowage migrate --undo --operation ${id}\n`
  if (isComplete(results)) return `${what}.\n${canUndo ? `To undo: ${undo}` : ''}`
  const paused = failed > request.failuresMax ? `Paused, because more than ${request.failuresMax} failed. ` : ''
  const next = `Run the same command again to continue${canUndo ? `, or undo the operation:\n  ${undo}` : '.\n'}`
  return `${what}, ${failed} failed. ${paused}${next}`
}

const claimsOf = (count: number): string => `${count} claim${count === 1 ? '' : 's'}`
