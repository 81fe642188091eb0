// Shows the effect of a run on each claim, like the output of the command with --dry-run.
import { pluralize } from '../../logic/format.ts'

/** The report of grow has sizes; the report of migrate has none. */
export interface PreviewReport {
  readonly claims: readonly {
    readonly namespace: string
    readonly name: string
    readonly from?: string
    readonly to?: string | null
    readonly result: string
    readonly message: string
  }[]
}

/** Bounds the shown claims; those that would be refused come first. */
const ROWS_MAX = 50

export function Preview({ report: { claims } }: { readonly report: PreviewReport }) {
  const refused = claims.filter(({ result }) => result === 'refused')
  const rows = [...refused, ...claims.filter(({ result }) => result !== 'refused')].slice(0, ROWS_MAX)
  if (claims.length === 0) return <p class="muted">No claim matches.</p>
  return (
    <>
      <p>
        {pluralize(claims.length, 'claim')}, {refused.length} would be refused.
      </p>
      <div class="panel-scroll">
        <table class="entries">
          <thead>
            <tr>
              <th scope="col">Claim</th>
              <th scope="col">Change</th>
              <th scope="col">Result</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ namespace, name, from, to, result, message }) => (
              <tr key={`${namespace}/${name}`}>
                <td class="wrap-anywhere">
                  {namespace}/{name}
                </td>
                <td class="nowrap">{from === undefined ? '' : `${from} → ${to ?? '–'}`}</td>
                <td class={`wrap-anywhere${result === 'refused' ? ' tone-bad' : ''}`}>
                  {result}
                  {message && message !== result ? `: ${message}` : ''}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {claims.length > rows.length && <p class="muted">… and {claims.length - rows.length} more</p>}
    </>
  )
}
