// Decodes chunks and segments of the journal: lines of JSON in the order of their commits. A line is one of
//   [TIME]                the time from which the times of the following lines count, if they are below TIME_MIN
//   [NUMBER,{…}]          a template of the following lines, up to the next one with the same number
//   [NUMBER,"NAMESPACE"]  a namespace, likewise
//   ["OWNER",NUMBER,…]    a record with a template, or the change of a volume and that of its claim (encode-activity.ts, encode-change.ts)
//   {…}                   a whole record
// Earlier versions wrote absolute times, namespaces as text, and other details of a volume and its claim; whole records are the oldest form.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import { microTimestamp } from '../../base/timestamps.ts'
import { type ActivityRecord, type ChangeRecord, type JournalRecord, timeOf } from './journal-record.ts'
import { nameOfVolume } from './provisioned-name.ts'

/** In September 2001. Times of records that are not less are absolute. */
const TIME_MIN = 1_000_000_000_000

/** Of a ChangeRecord. A change that is an array is the name of a field, whose value is the record's next one. */
type ChangeTemplate = Pick<ChangeRecord, 'kind' | 'verb' | 'user' | 'manager' | 'step'> & {
  readonly changes: readonly (string | readonly [field: string])[]
}

type ChangeDetails = Pick<ChangeRecord, 'volume' | 'claimUid' | 'handle' | 'claims'> & {
  readonly values?: readonly string[]
}

/** Returns the records of the lines for which `isWanted` is true. Damaged lines are skipped. Default: all. */
export function decodeRecords(text: string, isWanted: (line: string) => boolean = () => true): JournalRecord[] {
  const context: Context = { startMs: 0, definitions: [] }
  const records: JournalRecord[] = []
  for (const line of text.split('\n')) {
    const isDefinition = line.startsWith('[') && !line.startsWith('["')
    if (line === '' || (!isDefinition && !isWanted(line))) continue
    const parsed = parseLine(line)
    if (isDefinition && Array.isArray(parsed)) define(context, parsed)
    else if (Array.isArray(parsed)) {
      addRecords(records, parsed, context)
    } else if (parsed) records.push(parsed as JournalRecord)
  }
  return records
}

/** What the previous lines define. */
interface Context {
  startMs: number
  /** The templates and namespaces, by number. */
  readonly definitions: unknown[]
}

function define(context: Context, line: readonly unknown[]): void {
  if (line.length === 1) context.startMs = line[0] as number
  else context.definitions[line[0] as number] = line[1]
}

const absoluteMs = (time: number, startMs: number): number => (time < TIME_MIN ? startMs + time : time)

/** Returns the owner of the record, without decoding it. That of a volume and its claim is the claim. Returns undefined for a template. */
export function ownerInLine(line: string): string | undefined {
  if (line.startsWith('["')) return line.slice(2, line.indexOf('"', 2))
  if (line.startsWith('[')) return undefined
  return textAfter(line, '"uid":"') ?? textAfter(line, '"volume":"') ?? textAfter(line, '"name":"') ?? ''
}

/** Returns the time of a record, without decoding it. `firstLine` is the first line of its chunk. */
export function timeInLine(line: string, firstLine: string): number {
  const [, start, atMs] = TIME.exec(line) ?? []
  if (atMs !== undefined) return absoluteMs(Number(atMs), Number(START.exec(firstLine)?.[1] ?? 0))
  if (start !== undefined) return Date.parse(start)
  const record = parseLine(line)
  return record ? timeOf(record as JournalRecord) : 0
}

/** The time is the third value of a line with a template. */
const TIME = /^\["(?:[^"\\]|\\.)*",\d+,(?:"([^"]*)"|(-?\d+))/
const START = /^\[(\d+)\]$/

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

function addRecords(records: JournalRecord[], line: readonly unknown[], context: Context): void {
  const template = templateOf(line[1], context)
  if (!template) return
  if ('process' in template) {
    records.push(activityOf(line as unknown as AttemptLine | CallLine, template, context))
    return
  }
  const [uid, , time, namespaceOrNumber, name, details = {}] = line as unknown as ChangeLine
  const atMs = absoluteMs(time, context.startMs)
  const namespace = namespaceOf(namespaceOrNumber, context)
  const identity = { uid, atMs, namespace, name }
  const bound = boundVolumeOf(details, uid)
  if (!bound) {
    records.push(changeOf(template, identity, details as ChangeDetails))
    return
  }
  const volumeTemplate = templateOf(bound.template, context)
  if (volumeTemplate && !('process' in volumeTemplate)) {
    const volumeDetails = { claimUid: uid, handle: bound.handle, values: [`${namespace}/${name}`] }
    records.push(changeOf(volumeTemplate, { uid: bound.uid, atMs, namespace: '', name: bound.name }, volumeDetails))
  }
  records.push(changeOf(template, identity, { volume: bound.name, values: [bound.name] }))
}

function templateOf(number: unknown, { definitions }: Context): ActivityTemplate | ChangeTemplate | undefined {
  const template = definitions[number as number]
  return typeof template === 'object' && template !== null ? (template as ActivityTemplate | ChangeTemplate) : undefined
}

function namespaceOf(namespace: string | number, { definitions }: Context): string {
  if (typeof namespace === 'string') return namespace
  const defined = definitions[namespace]
  return typeof defined === 'string' ? defined : ''
}

type ChangeLine = readonly [
  uid: string,
  number: number,
  time: number,
  namespace: string | number,
  name: string,
  details?: ChangeDetails | BoundVolumeLine | OldBoundVolume,
]

/** The change of the volume of a claim, which precedes that of the claim. The name is that of a provisioned volume unless it is given. */
type BoundVolumeLine = readonly [template: number, uid: string, handle: string, name?: string]

/** The same in an earlier version. */
interface OldBoundVolume {
  readonly volume: string
  readonly pv: readonly [template: number, uid: string, handle: string]
}

function boundVolumeOf(details: ChangeDetails | BoundVolumeLine | OldBoundVolume, claimUid: string) {
  if ('pv' in details) {
    const [template, uid, handle] = details.pv
    return { template, uid, handle, name: details.volume }
  }
  if (!isBoundVolumeLine(details)) return undefined
  const [template, uid, handle, name = nameOfVolume(claimUid)] = details
  return { template, uid, handle, name }
}

const isBoundVolumeLine = (details: ChangeDetails | BoundVolumeLine): details is BoundVolumeLine =>
  Array.isArray(details)

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
  start: string | number,
  durationMs: number,
  namespace: string | number,
  name: string | 0,
  attempt: number,
]
type CallLine = readonly [volume: string, number: number, start: string | number, durationMs: number]

interface ActivityTemplate {
  readonly process: string
  readonly activity: Omit<Activity, 'start' | 'durationMs'>
}

function activityOf(line: AttemptLine | CallLine, template: ActivityTemplate, context: Context): ActivityRecord {
  const { process, activity } = template
  const [owner, , time, durationMs] = line
  const start = typeof time === 'number' ? microTimestamp(absoluteMs(time, context.startMs)) : time
  const { object, ...fields } = activity
  if (!object) return { process, activity: { start, durationMs, ...fields, volume: owner } }
  const [, , , , namespaceOrNumber, name, attempt] = line as AttemptLine
  const namespace = namespaceOf(namespaceOrNumber, context)
  const identity = name === 0 ? { name: owner } : { name, uid: owner }
  const reference: Activity['object'] = { ...object, ...(namespace ? { namespace } : {}), ...identity }
  return { process, activity: { start, durationMs, ...fields, object: reference, attempt } }
}
