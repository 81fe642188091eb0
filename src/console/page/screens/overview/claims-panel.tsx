// Claims by status, as figures and as a proportional bar.

import { ListError } from '../../components/empty.tsx'
import { Figure, Panel } from '../../components/panel.tsx'
import { ScopeChoice } from '../../components/scope-choice.tsx'
import type { Tone } from '../../logic/claim-status.ts'
import { formatCount, pluralize } from '../../logic/format.ts'
import { linkTo } from '../../logic/url.ts'
import { claimTallies, claimViewsVersion } from '../../state/claim-table.ts'
import { claims } from '../../state/collections.ts'

const TONES: readonly { readonly tone: Tone; readonly label: string }[] = [
  { tone: 'ok', label: 'as desired' },
  { tone: 'busy', label: 'in progress' },
  { tone: 'wait', label: 'waiting' },
  { tone: 'warn', label: 'to look at' },
  { tone: 'bad', label: 'failed' },
]

export function ClaimsPanel() {
  void claimViewsVersion.value
  const state = claims.state.value
  const statuses = [...claimTallies.status.counts].sort(([, a], [, b]) => b - a)
  const shares = TONES.map(({ tone, label }) => ({ tone, label, count: claimTallies.tone.count(tone) }))
  const total = shares.reduce((sum, { count }) => sum + count, 0)
  const problems = claimTallies.tone.count('bad') + claimTallies.tone.count('warn')
  return (
    <Panel title="Claims" span={7} more={<a href={linkTo('claims')}>All claims</a>}>
      {state.is === 'failed' && (
        <>
          <ListError what="Claims" state={state} />
          <ScopeChoice />
        </>
      )}
      {total === 0 && state.is === 'synced' && (
        <p class="muted">There are no claims yet. A claim requests a volume of a class; create one with kubectl.</p>
      )}
      <div class="figures">
        {statuses.map(([word, count]) => (
          <Figure key={word} value={formatCount(count)} label={word} href={linkTo('claims', { status: word })} />
        ))}
        {total > 0 && (
          <Figure
            value={formatCount(problems)}
            label="with problems"
            tone={problems > 0 ? 'bad' : 'ok'}
            href={linkTo('claims', { problems: '1' })}
          />
        )}
      </div>
      {total > 0 && (
        <div
          class="stack"
          role="img"
          aria-label={shares.map(({ label, count }) => `${formatCount(count)} ${label}`).join(', ')}
        >
          {shares
            .filter(({ count }) => count > 0)
            .map(({ tone, label, count }) => (
              <span
                key={tone}
                class={`fill-${tone}`}
                style={{ flexGrow: count }}
                title={`${pluralize(count, 'claim')} ${label}`}
              />
            ))}
        </div>
      )}
    </Panel>
  )
}
