// Decodes chunks and segments of the journal: lines of JSON in the order of their commits. A line is one of
//   [NUMBER,{…}]          a template of the following lines, up to the next one with the same number
//   ["OWNER",NUMBER,…]    a record with a template, or the change of a volume and that of its claim (encode-activity.ts, encode-change.ts)
//   {…}                   a whole record
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import { type ActivityRecord, type ChangeRecord, type JournalRecord, timeOf } from './journal-record.ts'

/** Of a ChangeRecord. A change that is an array is the name of a field, whose value is the record's next one. */
type ChangeTemplate = Pick<ChangeRecord, 'kind' | 'verb' | 'user' | 'manager' | 'step'> & {
  readonly changes: readonly (string | readonly [field: string])[]
}

type ChangeDetails = Pick<ChangeRecord, 'volume' | 'claimUid' | 'handle' | 'claims'> & {
  readonly values?: readonly string[]
}

/** Returns the records of the lines for which `isWanted` is true. Damaged lines are skipped. Default: all. */
export function decodeRecords(text: string, isWanted: (line: string) => boolean = () => true): JournalRecord[] {
  const templates: unknown[] = []
  const records: JournalRecord[] = []
  for (const line of text.split('\n')) {
    const isTemplate = line.startsWith('[') && !line.startsWith('["')
    if (line === '' || (!isTemplate && !isWanted(line))) continue
    const parsed = parseLine(line)
    if (isTemplate && Array.isArray(parsed)) templates[parsed[0]] = parsed[1]
    else if (Array.isArray(parsed)) {
      addRecords(records, parsed, templates)
    } else if (parsed) records.push(parsed as JournalRecord)
  }
  return records
}

/** Returns the owner of the record, without decoding it. That of a volume and its claim is the claim. Returns undefined for a template. */
export function ownerInLine(line: string): string | undefined {
  if (line.startsWith('["')) return line.slice(2, line.indexOf('"', 2))
  if (line.startsWith('[')) return undefined
  return textAfter(line, '"uid":"') ?? textAfter(line, '"volume":"') ?? textAfter(line, '"name":"') ?? ''
}

/** Returns the time of a record, without decoding it. */
export function timeInLine(line: string): number {
  const [, start, atMs] = TIME.exec(line) ?? []
  if (atMs !== undefined) return Number(atMs)
  if (start !== undefined) return Date.parse(start)
  const record = parseLine(line)
  return record ? timeOf(record as JournalRecord) : 0
}

/** The time is the third value of a line with a template. */
const TIME = /^\["(?:[^"\\]|\\.)*",\d+,(?:"([^"]*)"|(\d+))/

function textAfter(line: string, start: string): string | undefined {
  const position = line.indexOf(start)
  return position < 0 ? undefined : line.slice(position + start.length, line.indexOf('"', position + start.length))
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function addRecords(records: JournalRecord[], line: readonly unknown[], templates: readonly unknown[]): void {
  const template = templateOf(line[1], templates)
  if (!template) return
  if ('process' in template) {
    records.push(activityOf(line as unknown as AttemptLine | CallLine, template))
    return
  }
  const [uid, , atMs, namespace, name, details = {}] = line as unknown as ChangeLine
  const { pv, ...claimDetails } = details
  const identity = { uid, atMs, namespace, name }
  if (!pv) {
    records.push(changeOf(template, identity, claimDetails))
    return
  }
  const [volumeNumber, volumeUid, handle] = pv
  const { volume = '' } = details
  const volumeTemplate = templateOf(volumeNumber, templates)
  if (volumeTemplate && !('process' in volumeTemplate)) {
    const volumeDetails = { claimUid: uid, handle, values: [`${namespace}/${name}`] }
    records.push(changeOf(volumeTemplate, { uid: volumeUid, atMs, namespace: '', name: volume }, volumeDetails))
  }
  records.push(changeOf(template, identity, { ...claimDetails, values: [volume] }))
}

function templateOf(number: unknown, templates: readonly unknown[]): ActivityTemplate | ChangeTemplate | undefined {
  const template = templates[number as number]
  return typeof template === 'object' && template !== null ? (template as ActivityTemplate | ChangeTemplate) : undefined
}

type ChangeLine = readonly [
  uid: string,
  number: number,
  atMs: number,
  namespace: string,
  name: string,
  details?: ChangeDetails & {
    /** The change of the volume of a claim, which precedes that of the claim. */
    readonly pv?: readonly [number: number, uid: string, handle: string]
  },
]

type ChangeIdentity = Required<Pick<ChangeRecord, 'uid' | 'atMs' | 'namespace' | 'name'>>

function changeOf(
  template: ChangeTemplate,
  { uid, atMs, namespace, name }: ChangeIdentity,
  details: ChangeDetails,
): ChangeRecord {
  const { kind, verb, user, manager, step } = template
  const { values = [], ...otherDetails } = details
  let used = 0
  const changes = template.changes.map((change) =>
    typeof change === 'string' ? change : `${change[0]} ${values[used++] ?? ''}`,
  )
  return {
    ...{
      atMs,
      kind,
      ...(namespace ? { namespace } : {}),
      name,
      uid,
      verb,
      user,
      ...(manager ? { manager } : {}),
      changes,
    },
    ...otherDetails,
    ...(step ? { step } : {}),
  }
}

type AttemptLine = readonly [
  owner: string,
  number: number,
  start: string,
  durationMs: number,
  namespace: string,
  name: string | 0,
  attempt: number,
]
type CallLine = readonly [volume: string, number: number, start: string, durationMs: number]

interface ActivityTemplate {
  readonly process: string
  readonly activity: Omit<Activity, 'start' | 'durationMs'>
}

function activityOf(line: AttemptLine | CallLine, template: ActivityTemplate): ActivityRecord {
  const { process, activity } = template
  const [owner, , start, durationMs] = line
  const { object, ...fields } = activity
  if (!object) return { process, activity: { start, durationMs, ...fields, volume: owner } }
  const [, , , , namespace, name, attempt] = line as AttemptLine
  const identity = name === 0 ? { name: owner } : { name, uid: owner }
  const reference: Activity['object'] = { ...object, ...(namespace ? { namespace } : {}), ...identity }
  return { process, activity: { start, durationMs, ...fields, object: reference, attempt } }
}
