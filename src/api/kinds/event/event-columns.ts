// How events are listed, in either face: when last, what, about whom, in which words.
import { ageOf } from '../../columns.ts'
import type { Column } from '../../kind.ts'
import type { Event } from './event-schema.ts'

/** `toStored` turns a row's object into the stored face. */
export function eventColumns<T>(toStored: (object: T) => Event): Column<T>[] {
  return COLUMNS.map((column) => ({ ...column, cell: (object, context) => column.cell(toStored(object), context) }))
}

const COLUMNS: readonly Column<Event>[] = [
  {
    name: 'Last Seen',
    type: 'string',
    doc: 'Time since it last happened.',
    cell: (event, { nowMs }) =>
      event.series
        ? ageOf(event.series.lastObservedTime, nowMs)
        : ageOf(event.lastTimestamp ?? firstSeen(event), nowMs),
  },
  { name: 'Type', type: 'string', doc: 'Normal or Warning.', cell: (event) => event.type ?? '' },
  { name: 'Reason', type: 'string', doc: 'What happened, in one word.', cell: (event) => event.reason ?? '' },
  { name: 'Object', type: 'string', doc: 'What it happened to.', cell: objectCell },
  {
    name: 'Subobject',
    type: 'string',
    wide: true,
    doc: 'Which part of the object.',
    cell: (event) => event.involvedObject.fieldPath ?? '',
  },
  { name: 'Source', type: 'string', wide: true, doc: 'Who reported it, and from where.', cell: sourceCell },
  {
    name: 'Message',
    type: 'string',
    doc: 'What happened, in a sentence.',
    cell: (event) => (event.message ?? '').trim(),
  },
  {
    name: 'First Seen',
    type: 'string',
    wide: true,
    doc: 'Time since it first happened.',
    cell: (event, { nowMs }) => ageOf(firstSeen(event), nowMs),
  },
  {
    name: 'Count',
    type: 'string',
    wide: true,
    doc: 'How often it happened.',
    cell: (event) => (event.series ? (event.series.count ?? 0) : event.count || 1),
  },
  {
    name: 'Name',
    type: 'string',
    format: 'name',
    wide: true,
    doc: 'Name of the event.',
    cell: (event) => event.metadata.name ?? '',
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
