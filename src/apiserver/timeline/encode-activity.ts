// Encodes an attempt or a driver call as a line of the journal.
//   attempt   ["UID",TEMPLATE,"START",DURATION,"NAMESPACE","NAME",ATTEMPT]   without a uid: ["NAME",TEMPLATE,"START",DURATION,"NAMESPACE",0,ATTEMPT]
//   call      ["VOLUME",TEMPLATE,"START",DURATION]
// decode-records.ts decodes it.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import { type ActivityRecord, quoteText } from './journal-record.ts'
import type { Template, TemplateParts, Templates } from './templates.ts'

interface EncodedActivity {
  /** Undefined if `head` is the whole record. */
  readonly template: Template | undefined
  /** The line without the number of the template, which is between these two parts. */
  readonly head: string
  readonly tail: string
}

const parts: (string | undefined)[] = []

/** The start needs no escaping: it is a MicroTime of this process, or one that was decoded. */

export function encodeActivity({ process, activity }: ActivityRecord, templates: Templates): EncodedActivity {
  const { start, durationMs, result, reason, message, object, component, operation, attempt } = activity
  const { driver, method, volume } = activity
  parts.length = 0
  if (object) {
    const { kind, apiVersion, namespace = '', name, uid } = object
    if (!name || attempt === undefined || volume !== undefined || hasOtherFields(object))
      return encodeWhole(process, activity)
    parts.push('attempt', process, component, operation, result, reason, message, kind, apiVersion)
    return {
      template: templates.find(parts, jsonOfAttempt),
      head: `[${quoteText(uid ?? name)},`,
      tail: `,"${start}",${durationMs},${quoteText(namespace)},${uid === undefined ? 0 : quoteText(name)},${attempt}]`,
    }
  }
  if (volume === undefined || component !== undefined) return encodeWhole(process, activity)
  parts.push('call', process, driver, method, result, reason, message)
  return {
    template: templates.find(parts, jsonOfCall),
    head: `[${quoteText(volume)},`,
    tail: `,"${start}",${durationMs}]`,
  }
}

const hasOtherFields = ({ resourceVersion, fieldPath }: NonNullable<Activity['object']>): boolean =>
  resourceVersion !== undefined || fieldPath !== undefined

/** Encodes an activity with unusual fields, as only a remote process can report, without a template. */
const encodeWhole = (process: string, activity: Activity): EncodedActivity => ({
  template: undefined,
  head: JSON.stringify({ process, activity }),
  tail: '',
})

function jsonOfAttempt([
  ,
  process,
  component,
  operation,
  result,
  reason,
  message,
  kind,
  apiVersion,
]: TemplateParts): string {
  return JSON.stringify({
    process,
    activity: { component, operation, result, reason, message, object: { apiVersion, kind } },
  })
}

function jsonOfCall([, process, driver, method, result, reason, message]: TemplateParts): string {
  return JSON.stringify({ process, activity: { driver, method, result, reason, message } })
}
