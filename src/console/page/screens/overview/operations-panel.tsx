// Operations by phase, and the most frequent reasons of those that are being retried.
import { ListError } from '../../components/empty.tsx'
import { Figure, Panel } from '../../components/panel.tsx'
import { formatCount } from '../../logic/format.ts'
import { linkTo } from '../../logic/url.ts'
import { operations } from '../../state/collections.ts'

const REASONS_MAX = 3

export function OperationsPanel() {
  void operations.version.value
  const state = operations.state.value
  const rows = [...operations.rows.values()]
  const countOfPhase = (phase: string) => rows.filter((row) => row.phase === phase).length
  const reasons = new Map<string, number>()
  for (const { phase, reason, lastResponse } of rows) {
    if (phase !== 'Retrying') continue
    const text = lastResponse ?? reason
    reasons.set(text, (reasons.get(text) ?? 0) + 1)
  }
  const topReasons = [...reasons].sort(([, a], [, b]) => b - a).slice(0, REASONS_MAX)
  return (
    <Panel title="Operations" span={5} more={<a href={linkTo('operations')}>All operations</a>}>
      {state.is === 'failed' ? (
        <ListError what="Operations" state={state} />
      ) : (
        <>
          <div class="figures">
            <Figure
              value={formatCount(countOfPhase('Running'))}
              label="running"
              tone="busy"
              href={linkTo('operations', { phase: 'Running' })}
            />
            <Figure
              value={formatCount(countOfPhase('Retrying'))}
              label="failing, being retried"
              tone={countOfPhase('Retrying') > 0 ? 'bad' : 'ok'}
              href={linkTo('operations', { phase: 'Retrying' })}
            />
            <Figure
              value={formatCount(countOfPhase('Waiting'))}
              label="waiting"
              tone="wait"
              href={linkTo('operations', { phase: 'Waiting' })}
            />
          </div>
          {topReasons.length > 0 && (
            <ul>
              {topReasons.map(([reason, count]) => (
                <li key={reason}>
                  <a href={linkTo('operations', { phase: 'Retrying', q: reason.split(': ').at(-1) })}>{reason}</a>{' '}
                  <span class="muted">{formatCount(count)}</span>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </Panel>
  )
}
