// Encodes an attempt or a driver call as a line of the journal.
//   attempt   ["UID",TEMPLATE,START,DURATION,NAMESPACE,"NAME",ATTEMPT]   without a uid: ["NAME",TEMPLATE,START,DURATION,NAMESPACE,0,ATTEMPT]
//   call      ["VOLUME",TEMPLATE,START,DURATION]
// START is a text if its milliseconds are not known. chunk-encoder.ts describes TEMPLATE and NAMESPACE, and decode-records.ts decodes it.
import { bytesOfText } from '../../base/unpooled-bytes.ts'
import type { ChunkEncoder } from './chunk-encoder.ts'
import type { ActivityRecord } from './journal-record.ts'
import { type TemplatePart, TemplateParts } from './templates.ts'

/** The parts of the activity that is being encoded. */
const parts = new TemplateParts()

/** The start needs no escaping: it is a MicroTime of this process, or one that was decoded. */
export function encodeActivity(encoder: ChunkEncoder, record: ActivityRecord): void {
  const { process, activity, startMs } = record
  const { object, volume } = activity
  if (object ? !isAttempt(activity) : volume === undefined || activity.component !== undefined) {
    // An activity with unusual fields, as only a remote process can report, has no template.
    encoder.lines.bytes(bytesOfText(`${JSON.stringify({ process, activity })}\n`))
    return
  }
  parts.count = 0
  parts.add(object ? 'attempt' : 'call')
  parts.add(process)
  parts.add(object ? activity.component : activity.driver)
  parts.add(object ? activity.operation : activity.method)
  parts.add(activity.result)
  parts.add(activity.reason)
  parts.add(activity.message)
  if (object) {
    parts.add(object.kind)
    parts.add(object.apiVersion)
    encoder.defineNamespace(object.namespace ?? '')
  }
  const number = encoder.numberOf(parts, object ? jsonOfAttempt : jsonOfCall)
  const { lines } = encoder
  const owner = object ? (object.uid ?? object.name!) : volume!
  if (startMs === undefined) {
    lines.ascii('[')
    lines.quoted(owner)
    lines.ascii(',')
    lines.integer(number)
    lines.ascii(',"')
    lines.ascii(activity.start)
    lines.ascii('"')
  } else lines.start(owner, number, encoder.timeOf(startMs))
  lines.ascii(',')
  lines.number(activity.durationMs)
  if (object) {
    encoder.addNamespace(object.namespace ?? '')
    if (object.uid === undefined) lines.ascii(',0,')
    else {
      lines.ascii(',')
      lines.quoted(object.name!)
      lines.ascii(',')
    }
    lines.number(activity.attempt!)
  }
  lines.ascii(']\n')
}

/** Whether an activity on an object has the fields of an attempt of this process, and no others. */
function isAttempt({ object, attempt, volume }: ActivityRecord['activity']): boolean {
  const { name, resourceVersion, fieldPath } = object!
  const isNamed = name !== undefined && name !== ''
  return (
    isNamed && attempt !== undefined && volume === undefined && resourceVersion === undefined && fieldPath === undefined
  )
}

function jsonOfAttempt(parts: readonly TemplatePart[]): string {
  const [, process, component, operation, result, reason, message, kind, apiVersion] = parts
  return JSON.stringify({
    process,
    activity: { component, operation, result, reason, message, object: { apiVersion, kind } },
  })
}

function jsonOfCall([, process, driver, method, result, reason, message]: readonly TemplatePart[]): string {
  return JSON.stringify({ process, activity: { driver, method, result, reason, message } })
}
