// The output of `stowage migrate`: text, and JSON for scripts.
import { refOfKey } from '../../../client/index.ts'
import { type ClaimResult, countOf, oneLine, tableOf } from '../../bulk/index.ts'
import type { MovingClaim } from './migrate-claim.ts'
import { type Operation, shown } from './plan.ts'
import type { MigrateRequest } from './run.ts'

export interface Migration {
  readonly operation: Operation
  readonly works: readonly MovingClaim[]
  readonly results: readonly ClaimResult[]
  readonly request: MigrateRequest
  /** Resumes an interrupted run. */
  readonly goesOn: boolean
  /** A claim carries the record, so that --undo has something to do. */
  readonly hasMoved: boolean
}

export function openingOf({ operation, works, results, request, goesOn }: Migration): string {
  const { id, from, to, isUndo } = operation
  const left = works.length - results.length
  const what = isUndo ? `back from ${shown(to)} to ${shown(from)}` : `from ${shown(from)} to ${shown(to)}`
  const again = goesOn ? ' It was begun before: going on.' : ''
  return `Operation ${id}: moving ${claimsOf(left)} ${what}, ${request.rate}.${again}\n`
}

export function nothingToMove({ direction, output, isDryRun }: MigrateRequest): string {
  if (direction.is === 'undo') return ''
  const { from, to } = direction
  if (output === 'json') return asJson({ operation: null, from, to, undo: false, dryRun: isDryRun, claims: [] })
  return `No claim here has ${from === '' ? 'no class' : `the class ${from}`}: nothing to move.\n`
}

const RESULT_NAMES: Record<ClaimResult['is'], string> = {
  done: 'moved',
  nothing: 'unchanged',
  failed: 'failed',
  unfinished: 'unfinished',
  untouched: 'not begun',
}

export function jsonOf({ operation, results, request }: Migration): string {
  const { id, from, to, isUndo } = operation
  const claims = results.map((result) => {
    const { namespace = '', name } = refOfKey(result.key)
    return { namespace, name, result: nameOf(result, request), message: result.message }
  })
  return asJson({ operation: id, from, to, undo: isUndo, dryRun: request.isDryRun, claims })
}

const asJson = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

function nameOf({ is }: ClaimResult, { isDryRun }: MigrateRequest): string {
  if (isDryRun && is === 'untouched') return 'would move'
  return isDryRun && is === 'failed' ? 'refused' : RESULT_NAMES[is]
}

/** Lists all claims of a dry run, otherwise those that did not move: the others were printed as progress. */
export function textOf(migration: Migration): string {
  const { results, request } = migration
  const listed = results
    .filter(({ is }) => request.isDryRun || (is !== 'done' && is !== 'nothing'))
    .sort((a, b) => Number(b.is === 'failed') - Number(a.is === 'failed'))
  const table = tableOf([
    ['CLAIM', 'RESULT', 'WHY'],
    ...listed.slice(0, ROWS_MAX).map((result) => [result.key, nameOf(result, request), oneLine(result.message)]),
  ])
  const more = listed.length > ROWS_MAX ? `… and ${listed.length - ROWS_MAX} more; --output json has all of them\n` : ''
  return `${listed.length > 0 ? `\n${table}${more}\n` : ''}${sentenceOf(migration)}`
}

/** Rows printed; failures come first. */
const ROWS_MAX = 100

function sentenceOf({ operation, results, request, hasMoved }: Migration): string {
  const { id, from, to, isUndo } = operation
  const failed = countOf(results, 'failed')
  if (request.isDryRun) {
    return `Would move ${claimsOf(countOf(results, 'untouched'))}; ${failed} would be refused. Nothing was changed.\n`
  }
  const good = countOf(results, 'done', 'nothing')
  const [start, end] = isUndo ? [to, from] : [from, to]
  const what = `${good} of ${claimsOf(results.length)} moved from ${shown(start)} to ${shown(end)}`
  const canGoBack = !isUndo && hasMoved
  if (good === results.length) {
    return `${what}.\n${canGoBack ? `To go back: stowage migrate --undo --operation ${id}\n` : ''}`
  }
  const isPaused = failed > request.failuresMax
  const why = isPaused ? `Paused, because more than ${request.failuresMax} failed. ` : ''
  const again = canGoBack
    ? `Run the same command again to go on, or go back:\n  stowage migrate --undo --operation ${id}\n`
    : 'Run the same command again to go on.\n'
  return `${what}, ${failed} failed. ${why}${again}`
}

const claimsOf = (count: number): string => `${count} claim${count === 1 ? '' : 's'}`
