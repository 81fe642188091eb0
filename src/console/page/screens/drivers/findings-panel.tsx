// Shows the findings of `stowage doctor`, problems first.
import type { FindingStatus } from '../../../protocol.ts'
import { Panel } from '../../components/panel.tsx'
import { StatusIcon } from '../../components/status.tsx'
import type { Tone } from '../../logic/claim-status.ts'
import { pluralize } from '../../logic/format.ts'
import { findings } from '../../state/data.ts'
import { usePolled } from '../../state/polled.ts'

const TONES: Readonly<Record<FindingStatus, Tone>> = { ok: 'ok', warning: 'warn', error: 'bad', unknown: 'wait' }
const ORDER: readonly FindingStatus[] = ['error', 'warning', 'unknown', 'ok']

export function FindingsPanel() {
  const { value, problem } = usePolled(findings)
  const list = (value?.checks ?? []).flatMap(({ id, title, findings: items }) =>
    items.map((item) => ({ id, title, ...item })),
  )
  list.sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status))
  return (
    <Panel
      title="Findings of doctor"
      note={
        value &&
        `${pluralize(value.counts.error, 'error')}, ${pluralize(value.counts.warning, 'warning')}, ${value.counts.ok} ok, ${value.counts.unknown} not checked`
      }
    >
      {!value && <p class="muted">{problem ?? 'The cluster is being checked.'}</p>}
      <ul class="attention">
        {list.map(({ id, title, status, object, message, remedy }, index) => (
          <li key={`${id} ${index}`}>
            <StatusIcon tone={TONES[status]} />
            <div class="wrap-anywhere">
              <span class="sr-only">{status}: </span>
              <strong>{object ?? title}</strong> {message}
              {remedy !== undefined && <p class="muted">{remedy}</p>}
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
