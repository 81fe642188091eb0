// Defines the table columns of events in the core group and in events.k8s.io.
import { ageOf } from '../../columns.ts'
import type { Column } from '../../kind.ts'
import type { Event } from './event-schema.ts'

/** Returns the columns of a kind of event. `toStored` converts an event to the stored form. */
export function eventColumns<T>(toStored: (object: T) => Event): Column<T>[] {
  return COLUMNS.map((column) => ({ ...column, cell: (object, context) => column.cell(toStored(object), context) }))
}

const COLUMNS: readonly Column<Event>[] = [
  {
    name: 'Last Seen',
    type: 'string',
    doc: 'Time since the last occurrence.',
    cell: (event, { nowMs }) =>
      event.series
        ? ageOf(event.series.lastObservedTime, nowMs)
        : ageOf(event.lastTimestamp ?? firstSeen(event), nowMs),
  },
  { name: 'Type', type: 'string', doc: 'Normal or Warning.', cell: (event) => event.type },
  { name: 'Reason', type: 'string', doc: 'Machine-readable reason.', cell: (event) => event.reason },
  { name: 'Object', type: 'string', doc: 'Object that the event is about.', cell: objectCell },
  {
    name: 'Subobject',
    type: 'string',
    wide: true,
    doc: 'Part of the object that the event is about.',
    cell: (event) => event.involvedObject.fieldPath,
  },
  {
    name: 'Source',
    type: 'string',
    wide: true,
    doc: 'Component and instance that reported the event.',
    cell: sourceCell,
  },
  {
    name: 'Message',
    type: 'string',
    doc: 'Human-readable description of the event.',
    cell: (event) => (event.message ?? '').trim(),
  },
  {
    name: 'First Seen',
    type: 'string',
    wide: true,
    doc: 'Time since the first occurrence.',
    cell: (event, { nowMs }) => ageOf(firstSeen(event), nowMs),
  },
  {
    name: 'Count',
    type: 'string',
    wide: true,
    doc: 'Number of occurrences.',
    cell: (event) => (event.series ? (event.series.count ?? 0) : event.count || 1),
  },
  {
    name: 'Name',
    type: 'string',
    format: 'name',
    wide: true,
    doc: 'Name of the event.',
    cell: (event) => event.metadata.name,
  },
]

const firstSeen = (event: Event): string | undefined => event.firstTimestamp ?? event.eventTime

function objectCell({ involvedObject }: Event): string {
  const kind = (involvedObject.kind ?? '').toLowerCase()
  return involvedObject.name ? `${kind}/${involvedObject.name}` : kind
}

function sourceCell(event: Event): string {
  const component = event.source?.component || event.reportingComponent
  const instance = event.source?.host || event.reportingInstance
  return instance ? `${component}, ${instance}` : component
}
