// The output of `stowage grow`: text, and JSON for scripts.
import { refOfKey } from '../../../client/index.ts'
import { type ClaimResult, countOf, isComplete, jsonText, resultName, tableOf } from '../../bulk/index.ts'
import type { GrowingClaim } from './grow-claim.ts'
import type { GrowRequest } from './run.ts'

export function reportOf(
  works: readonly GrowingClaim[],
  results: readonly ClaimResult[],
  { isDryRun, output }: GrowRequest,
): string {
  const rows = works.map((work, index) => rowOf(work, results[index]!, isDryRun))
  return output === 'json' ? jsonText({ dryRun: isDryRun, claims: rows }) : textOf(rows, results, isDryRun)
}

function rowOf({ plan }: GrowingClaim, claimResult: ClaimResult, isDryRun: boolean) {
  const { key, message } = claimResult
  const { namespace = '', name } = refOfKey(key)
  const to = 'to' in plan ? plan.to : null
  const result = resultName(claimResult, { done: 'grown', planned: message, isDryRun })
  return { namespace, name, from: plan.from, to, result, message }
}

function textOf(rows: readonly ReturnType<typeof rowOf>[], results: readonly ClaimResult[], isDryRun: boolean): string {
  const hasReasons = isDryRun || !isComplete(results)
  const table = tableOf([
    ['CLAIM', 'FROM', 'TO', 'RESULT', ...(hasReasons ? ['WHY'] : [])],
    ...rows.map(({ name, from, to, result, message }) => [
      name,
      from,
      to ?? '-',
      result,
      ...(hasReasons ? [result === message ? '' : message] : []),
    ]),
  ])
  return `\n${table}${isDryRun ? '' : `\n${summaryOf(results)}\n`}`
}

function summaryOf(results: readonly ClaimResult[]): string {
  const count = results.length
  if (isComplete(results)) return `${count === 1 ? 'The claim has' : `All ${count} claims have`} the requested size.`
  const done = countOf(results, 'done', 'nothing')
  const failed = countOf(results, 'failed')
  return `${done} of ${count} claims have the requested size, ${failed} failed. Run the same command again to continue.`
}
