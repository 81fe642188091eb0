// Validates events of both API groups (event.ts, events-event.ts) in their stored form. New-style events, which have an
// eventTime, must have a reporter, an action and a reason; old-style events need not.
import type { FieldErrors } from '../../field-errors.ts'
import { qualifiedNameProblems } from '../../names.ts'
import { isSameValue, validateImmutableField } from '../shared/changed-fields.ts'
import { type Event, event } from './event-schema.ts'

/** Time from the last write of an event to its deletion. */
export const EVENT_LIFETIME_MS = 3_600_000

const SHORT_TEXT_BYTES_MAX = 128 // reportingInstance, action, reason
const MESSAGE_BYTES_MAX = 1_024

/** Validates any event. `reporterField` is the name of the reporting component in the API group of the request. */
export function validateEvent(event: Event, reporterField: string, errors: FieldErrors): void {
  validateNamespace(event, errors)
  if (event.eventTime === undefined) return
  if (event.reportingComponent === '') errors.required(reporterField)
  errors.invalidAll(reporterField, event.reportingComponent, qualifiedNameProblems(event.reportingComponent))
  validateShortText('reportingInstance', event.reportingInstance, errors)
  validateShortText('action', event.action ?? '', errors)
  validateShortText('reason', event.reason ?? '', errors)
  validateLength('message', event.message ?? '', MESSAGE_BYTES_MAX, errors)
}

/**
 * Validates an event's namespace. An old-style event is in the namespace of its object, or in `default` if the object
 * is cluster-scoped. A new-style event about a cluster-scoped object is in `default` or kube-system.
 */
function validateNamespace({ metadata, involvedObject, eventTime }: Event, errors: FieldErrors): void {
  const objectNamespace = involvedObject.namespace ?? ''
  const eventNamespace = metadata.namespace ?? ''
  const isOldStyle = eventTime === undefined
  const isValid = isOldStyle
    ? eventNamespace === objectNamespace || (objectNamespace === '' && eventNamespace === 'default')
    : objectNamespace !== '' || eventNamespace === 'default' || eventNamespace === 'kube-system'
  if (!isValid) errors.invalid('involvedObject.namespace', objectNamespace, 'does not match event.namespace')
}

function validateShortText(field: string, text: string, errors: FieldErrors): void {
  if (text === '') errors.required(field)
  validateLength(field, text, SHORT_TEXT_BYTES_MAX, errors)
}

function validateLength(field: string, text: string, bytesMax: number, errors: FieldErrors): void {
  if (Buffer.byteLength(text) > bytesMax) errors.invalid(field, '', `can have at most ${bytesMax} characters`)
}

/** Validates an event that is created through events.k8s.io, which must not have deprecated fields. */
export function validateNewStyle(event: Event, errors: FieldErrors): void {
  validateSeries(event, errors)
  if (event.eventTime === undefined) errors.required('eventTime')
  if (event.type !== 'Normal' && event.type !== 'Warning') {
    errors.invalid('type', '', `has invalid value: ${event.type ?? ''}`)
  }
  if (event.firstTimestamp !== undefined) errors.invalid('firstTimestamp', '', 'needs to be unset')
  if (event.lastTimestamp !== undefined) errors.invalid('lastTimestamp', '', 'needs to be unset')
  if (event.count) errors.invalid('count', '', 'needs to be unset')
  if (event.source?.component || event.source?.host) errors.invalid('source', '', 'needs to be unset')
}

/** Validates an update through events.k8s.io, which may only change the series. */
export function validateNewStyleUpdate(next: Event, old: Event, errors: FieldErrors): void {
  if (!isSameValue(event.fields.series.type, old.series, next.series)) validateSeries(next, errors)
  for (const field of IMMUTABLE_FIELDS) {
    const reportedField = field === 'reportingComponent' ? 'reportingController' : field
    const { type } = event.fields[field]
    validateImmutableField({ field: reportedField, type, oldValue: old[field], newValue: next[field] }, errors)
  }
}

const IMMUTABLE_FIELDS = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingComponent',
  'reportingInstance',
] as const satisfies readonly (keyof Event)[]

function validateSeries({ series }: Event, errors: FieldErrors): void {
  if (!series) return
  if ((series.count ?? 0) < 2) errors.invalid('series.count', '', 'should be at least 2')
  if (series.lastObservedTime === undefined) errors.required('series.lastObservedTime')
}
