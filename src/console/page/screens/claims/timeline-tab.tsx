// The timeline of a claim: steps and a Gantt chart, then the newest entries as text.
import type { TimelineResponse } from '../../../protocol.ts'
import { Skeleton } from '../../components/empty.tsx'
import { actorOf, Gantt, toneOfResult } from '../../components/gantt.tsx'
import type { ClaimView } from '../../logic/claim-view.ts'
import { formatLatency } from '../../logic/format.ts'
import { shortRef } from '../../logic/kinds.ts'
import { queryOf, useRequest } from '../../state/use-request.ts'

/** Bounds the shown entries; the newest are shown. */
const ENTRIES_MAX = 300

export function TimelineTab({ view }: { readonly view: ClaimView }) {
  const path = `/data/timeline${queryOf({ kind: 'pvc', namespace: view.namespace, name: view.name, uid: view.uid })}`
  const { value, problem } = useRequest<TimelineResponse>(path, view.claim)
  if (!value) return problem === undefined ? <Skeleton rows={6} /> : <p class="note">{problem}</p>
  const { steps, entries, source, notes } = value
  return (
    <>
      <div class="section">
        <p>{describeSteps(steps)}</p>
      </div>
      {source === 'objects' && (
        <p class="note section">
          Reconstructed from events, conditions and managed fields, because this API server has no journal: times are
          those of the last write, and attempts are missing.
        </p>
      )}
      {notes.map((note) => (
        <p key={note} class="note section">
          {note}
        </p>
      ))}
      <div class="section">
        <Gantt timeline={value} />
      </div>
      <div class="section panel-scroll">
        <table class="entries">
          <thead>
            <tr>
              <th scope="col">Time (UTC)</th>
              <th scope="col" class="number">
                Took
              </th>
              <th scope="col">Who</th>
              <th scope="col">What</th>
            </tr>
          </thead>
          <tbody>
            {entries.slice(-ENTRIES_MAX).map((entry, index) => (
              <tr key={index}>
                <td class="mono" title={entry.time}>
                  {entry.time.slice(11, 23).replace('Z', '')}
                </td>
                <td class="number nowrap">{entry.durationMs === undefined ? '' : formatLatency(entry.durationMs)}</td>
                <td class="who" title={actorOf(entry)}>
                  {actorOf(entry)}
                </td>
                <td class="wrap-anywhere">{describe(entry)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

/** Returns for example `Created → Provisioned +412ms → Bound +18ms`. */
function describeSteps(steps: TimelineResponse['steps']): string {
  return steps
    .map(({ name, time }, index) => {
      const before = steps[index - 1]
      return before ? `${name} +${formatLatency(Date.parse(time) - Date.parse(before.time))}` : name
    })
    .join(' → ')
}

function describe({ type, action, object, result, changes = [], message }: TimelineResponse['entries'][number]) {
  return (
    <>
      <strong>{action}</strong>
      {object?.name !== undefined && <span class="muted"> {shortRef(object.kind ?? '', object.name)}</span>}
      {result !== undefined && type !== 'Event' && <span class={`tone-${toneOfResult(result)}`}> {result}</span>}
      {changes.length > 0 ? ` ${changes.join(', ')}` : message ? ` ${message}` : ''}
    </>
  )
}
