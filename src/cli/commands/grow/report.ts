// Formats the results of `stowage grow` as text, JSON or YAML.

import { quoteShellWord } from '../../../base/shell-word.ts'
import { refOfKey } from '../../../client/index.ts'
import { type ClaimResult, countResults, isComplete, resultName } from '../../bulk/index.ts'
import { formatOutput } from '../../output/format-output.ts'
import { formatTable } from '../../output/table.ts'
import type { GrowTask } from './grow-claim.ts'
import type { GrowRequest } from './run.ts'

export function formatReport(
  tasks: readonly GrowTask[],
  results: readonly ClaimResult[],
  request: GrowRequest & { readonly namespace: string },
): Promise<string> {
  const { isDryRun, output } = request
  const rows = tasks.map((task, index) => buildRow(task, results[index]!, isDryRun))
  const raisedRequests = () => (isDryRun ? '' : formatRaisedRequests(results, request))
  const text = () => `${formatText(rows, results, isDryRun)}${raisedRequests()}`
  return formatOutput(output, { dryRun: isDryRun, claims: rows }, text)
}

/**
 * Returns a note about failed claims whose requests stay raised, because the cluster continues and quotas are charged for them.
 * The request of a claim that failed before the start, for example because of a quota, was not raised.
 */
function formatRaisedRequests(
  results: readonly ClaimResult[],
  { names, selector, namespace, kubeconfig }: GrowRequest & { readonly namespace: string },
): string {
  const raisedNames = results
    .filter(({ is, isStarted, isWithdrawn }) => is === 'failed' && isStarted && !isWithdrawn)
    .map(({ key }) => refOfKey(key).name)
  if (raisedNames.length === 0) return ''
  const selection =
    selector !== undefined && names.length === 0 ? `--selector ${quoteShellWord(selector)}` : raisedNames.join(' ')
  const config = kubeconfig === undefined ? '' : ` --kubeconfig ${quoteShellWord(kubeconfig)}`
  return (
    `${raisedNames.length === 1 ? `The request of ${raisedNames[0]} stays raised` : `The requests of ${raisedNames.length} claims stay raised`}: the cluster continues to try. ` +
    `To lower ${raisedNames.length === 1 ? 'it' : 'them'} again:\n  stowage grow --undo ${selection} --namespace ${namespace}${config}\n`
  )
}

function buildRow({ plan }: GrowTask, claimResult: ClaimResult, isDryRun: boolean) {
  const { key, message } = claimResult
  const { namespace = '', name } = refOfKey(key)
  const to = 'to' in plan ? plan.to : null
  const result = resultName(claimResult, { done: 'grown', planned: message, isDryRun })
  return { namespace, name, from: plan.from, to, result, message }
}

function formatText(
  rows: readonly ReturnType<typeof buildRow>[],
  results: readonly ClaimResult[],
  isDryRun: boolean,
): string {
  const hasReasons = isDryRun || !isComplete(results)
  const table = formatTable([
    ['CLAIM', 'FROM', 'TO', 'RESULT', ...(hasReasons ? ['MESSAGE'] : [])],
    ...rows.map(({ name, from, to, result, message }) => [
      name,
      from,
      to ?? '-',
      result,
      ...(hasReasons ? [result === message ? '' : message] : []),
    ]),
  ])
  return `\n${table}${isDryRun ? '' : `\n${formatSummary(results)}\n`}`
}

function formatSummary(results: readonly ClaimResult[]): string {
  const count = results.length
  if (isComplete(results)) return `${count === 1 ? 'The claim has' : `All ${count} claims have`} the requested size.`
  const completedCount = countResults(results, 'done', 'nothing')
  const failedCount = countResults(results, 'failed')
  return `${completedCount} of ${count} claims have the requested size, ${failedCount} failed. Run the same command again to continue.`
}
