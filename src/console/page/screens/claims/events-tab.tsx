// The events of a claim and its related objects (volume, attachments, pods) in one list, newest first.
import { useEffect, useMemo } from 'preact/hooks'
import { Age } from '../../components/age.tsx'
import { Empty, ListError } from '../../components/empty.tsx'
import { StatusIcon } from '../../components/status.tsx'
import type { ClaimView } from '../../logic/claim-view.ts'
import type { EventRow } from '../../rows/cluster.ts'
import { eventsOf } from '../../state/collections.ts'
import { useRelatedObjects } from './related-objects.ts'

/** Bounds the related objects whose events are watched: a claim may be used by hundreds of pods. */
const RELATIVES_MAX = 12

export function EventsTab({ view }: { readonly view: ClaimView }) {
  const { volume, attachments } = useRelatedObjects(view)
  const sources = [
    { namespace: view.namespace, uid: view.uid },
    ...(volume ? [{ namespace: 'default', uid: volume.uid }] : []),
    ...attachments.map(({ uid }) => ({ namespace: 'default', uid })),
    ...view.pods.map(({ uid }) => ({ namespace: view.namespace, uid })),
  ].slice(0, RELATIVES_MAX)
  const key = sources.map(({ uid }) => uid).join(' ')
  const collections = useMemo(() => sources.map(({ namespace, uid }) => eventsOf(namespace, uid)), [key])
  useEffect(() => {
    const releases = collections.map((collection) => collection.use())
    return () => {
      for (const release of releases) release()
    }
  }, [collections])
  for (const { version } of collections) void version.value
  const failed = collections.find(({ state }) => state.value.is === 'failed')
  const events = collections.flatMap(({ rows }) => [...rows.values()]).sort((a, b) => b.lastMs - a.lastMs)
  if (failed && events.length === 0) return <ListError what="Events" state={failed.state.value} />
  if (events.length === 0)
    return (
      <Empty title="There are no events.">
        <p>The API server keeps events for one hour by default. The timeline shows older changes.</p>
      </Empty>
    )
  return (
    <div class="panel-scroll">
      <table class="entries">
        <thead>
          <tr>
            <th scope="col">Seen</th>
            <th scope="col">Object</th>
            <th scope="col">Event</th>
          </tr>
        </thead>
        <tbody>
          {events.map((event) => (
            <EventLine key={event.uid} event={event} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

const EventLine = ({ event }: { readonly event: EventRow }) => (
  <tr>
    <td>
      <Age timeMs={event.lastMs} />
      {event.count > 1 && <span class="muted"> ×{event.count}</span>}
    </td>
    <td class="who" title={event.object}>
      {event.object}
    </td>
    <td class="wrap-anywhere">
      <span class={`status tone-${event.isWarning ? 'warn' : 'wait'}`}>
        <StatusIcon tone={event.isWarning ? 'warn' : 'ok'} />
        {event.reason}
      </span>{' '}
      {event.message} <span class="muted">{event.component}</span>
    </td>
  </tr>
)
