// Assembles the timeline of a claim or volume from records of the journal: the object with its name and uid, the volumes of a
// claim and the claims of a volume, their attachments and pods, and the attempts and driver calls on any of these.

import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import {
  STEPS,
  type StepName,
  type Timeline,
  type TimelineEntry,
  type TimelineRequest,
  type TimelineStep,
} from '../../api/kinds/timeline/timeline-schema.ts'
import { microTimestamp } from '../../base/timestamps.ts'
import {
  type ActivityRecord,
  type ChangeRecord,
  isActivity,
  isChange,
  type JournalRecord,
  timeOf,
} from './journal-record.ts'
import { claimUidOf } from './provisioned-name.ts'

/** An object that had the requested name, from its creation to its removal. */
export interface ObjectLifetime {
  readonly uid: string
  readonly firstMs: number
  /** Infinity if the object exists. */
  readonly lastMs: number
}

/** A timeline has at most this many entries: the newest. */
export const ENTRIES_MAX = 2_000

/** Returns the objects that had the name, newest first. */
export function findLifetimes(
  records: readonly JournalRecord[],
  { kind, namespace = '', name }: TimelineRequest,
): ObjectLifetime[] {
  const lifetimes = new Map<string, ObjectLifetime>()
  for (const record of records) {
    if (!isChange(record) || record.kind !== kind || record.name !== name || (record.namespace ?? '') !== namespace)
      continue
    const { uid, atMs, verb } = record
    const lifetime = lifetimes.get(uid) ?? { uid, firstMs: atMs, lastMs: Number.POSITIVE_INFINITY }
    lifetimes.set(uid, { ...lifetime, ...(verb === 'delete' ? { lastMs: atMs } : {}) })
  }
  return [...lifetimes.values()].sort((a, b) => b.firstMs - a.firstMs)
}

/** The objects that belong to a timeline. */
interface RelatedObjects {
  /** Claims, volumes and attachments. */
  readonly uids: Set<string>
  readonly volumeNames: Set<string>
  readonly handles: Set<string>
  /** Namespaces and names of claims. */
  readonly claims: Set<string>
  readonly podUids: Set<string>
}

function relatedObjectsOf(
  records: readonly JournalRecord[],
  { kind, namespace, name }: TimelineRequest,
  lifetime: ObjectLifetime,
): RelatedObjects {
  const related: RelatedObjects = {
    uids: new Set([lifetime.uid]),
    volumeNames: new Set(),
    handles: new Set(),
    claims: new Set(),
    podUids: new Set(),
  }
  if (kind === 'PersistentVolume') related.volumeNames.add(name)
  else related.claims.add(`${namespace ?? ''}/${name}`)
  let size = -1
  while (size !== sizeOf(related)) {
    size = sizeOf(related)
    for (const record of records) if (isChange(record)) addRelated(related, record, lifetime)
  }
  return related
}

const sizeOf = (related: RelatedObjects): number =>
  Object.values(related).reduce((sum, members) => sum + members.size, 0)

function addRelated(related: RelatedObjects, record: ChangeRecord, lifetime: ObjectLifetime): void {
  const { kind, uid, name, namespace = '', volume, claimUid, handle, claims = [], atMs } = record
  switch (kind) {
    case 'PersistentVolume':
      if (claimUid && related.uids.has(claimUid)) related.uids.add(uid)
      if (!related.uids.has(uid)) return
      related.volumeNames.add(name)
      if (claimUid) related.uids.add(claimUid)
      if (handle) related.handles.add(handle)
      return
    case 'PersistentVolumeClaim':
      if (!related.uids.has(uid)) return
      related.claims.add(`${namespace}/${name}`)
      if (volume) related.volumeNames.add(volume)
      return
    case 'VolumeAttachment':
      if (volume && related.volumeNames.has(volume)) related.uids.add(uid)
      return
    case 'Pod':
      if (
        atMs >= lifetime.firstMs &&
        atMs <= lifetime.lastMs &&
        claims.some((claim) => related.claims.has(`${namespace}/${claim}`))
      )
        related.podUids.add(uid)
  }
}

/** Returns the texts to search for: each record of the timeline contains at least one of them. */
export function searchedTextsOf(
  request: TimelineRequest,
  lifetime: ObjectLifetime,
  records: readonly JournalRecord[],
): string[] {
  const { uids, volumeNames, handles, claims, podUids } = relatedObjectsOf(records, request, lifetime)
  const claimNames = [...claims].map((claim) => claim.slice(claim.indexOf('/') + 1))
  const texts = new Set([...uids, ...podUids, ...volumeNames, ...claimUidsOf(volumeNames), ...handles, ...claimNames])
  return [...texts].map((text) => JSON.stringify(text))
}

/** Returns the texts to search for to find the object, by its name. */
export const searchedTextsOfName = (name: string): string[] =>
  [name, ...claimUidsOf([name])].map((text) => JSON.stringify(text))

/** A record with the uid of a claim need not contain the name of its provisioned volume. */
const claimUidsOf = (volumeNames: Iterable<string>): string[] =>
  [...volumeNames].map(claimUidOf).filter((uid) => uid !== undefined)

export function assembleTimeline(
  records: readonly JournalRecord[],
  request: TimelineRequest,
  lifetime: ObjectLifetime,
): Pick<Timeline, 'entries' | 'steps' | 'isTruncated'> {
  const related = relatedObjectsOf(records, request, lifetime)
  const ordered = records.filter((record) => belongsTo(related, record, lifetime)).sort((a, b) => timeOf(a) - timeOf(b))
  const entries = ordered.map(entryOf)
  return {
    steps: stepsOf(ordered),
    entries: entries.slice(-ENTRIES_MAX),
    ...(entries.length > ENTRIES_MAX || ordered.some((record) => 'dropped' in record) ? { isTruncated: true } : {}),
  }
}

function belongsTo(related: RelatedObjects, record: JournalRecord, lifetime: ObjectLifetime): boolean {
  const { uids, volumeNames, handles, podUids } = related
  if (isChange(record)) return uids.has(record.uid) || podUids.has(record.uid)
  if (!isActivity(record)) return uids.has(record.dropped) || handles.has(record.dropped)
  const { object, volume } = record.activity
  if (volume !== undefined) return volumeNames.has(volume) || handles.has(volume)
  if (object?.uid) return uids.has(object.uid) || podUids.has(object.uid)
  return (
    isNamed(related, object ?? {}) &&
    timeOf(record) >= lifetime.firstMs &&
    timeOf(record) <= lifetime.lastMs + LATE_MS_MAX
  )
}

/**
 * An attempt may be recorded without a uid after the object was removed. It belongs to the object that had the name at
 * most this long before.
 */
const LATE_MS_MAX = 60_000

function isNamed(
  { volumeNames, claims }: RelatedObjects,
  { kind, namespace = '', name = '' }: NonNullable<Activity['object']>,
): boolean {
  if (kind === 'PersistentVolume') return volumeNames.has(name)
  return kind === 'PersistentVolumeClaim' && claims.has(`${namespace}/${name}`)
}

/** Returns the first time of each step, in chronological order. */
function stepsOf(records: readonly JournalRecord[]): TimelineStep[] {
  const times = new Map<StepName, number>()
  for (const record of records) {
    const step = isChange(record) ? record.step : isActivity(record) ? stepOfCall(record.activity) : undefined
    if (step && !times.has(step)) times.set(step, endOf(record))
  }
  return [...times]
    .sort(([a, aMs], [b, bMs]) => aMs - bMs || STEPS.indexOf(a) - STEPS.indexOf(b))
    .map(([name, ms]) => ({ name, time: microTimestamp(ms) }))
}

const endOf = (record: JournalRecord): number => timeOf(record) + (isActivity(record) ? record.activity.durationMs : 0)

const stepOfCall = ({ method, result }: Activity): StepName | undefined =>
  method === 'NodePublishVolume' && result === 'OK' ? 'Published' : undefined

function entryOf(record: JournalRecord): TimelineEntry {
  if (isChange(record)) return changeEntryOf(record)
  if (isActivity(record)) return activityEntryOf(record)
  const message = `${record.count} older records were dropped`
  return { time: microTimestamp(record.atMs), type: 'Change', action: 'dropped', message }
}

function changeEntryOf({
  atMs,
  kind,
  namespace,
  name,
  uid,
  verb,
  user,
  manager,
  changes,
}: ChangeRecord): TimelineEntry {
  return {
    time: microTimestamp(atMs),
    type: 'Change',
    object: { kind, ...(namespace ? { namespace } : {}), name, uid },
    action: verb,
    user,
    ...(manager ? { manager } : {}),
    ...(changes.length > 0 ? { changes: [...changes] } : {}),
  }
}

function activityEntryOf({ process, activity }: ActivityRecord): TimelineEntry {
  const { start, durationMs, result, message, object, component, operation, driver, method } = activity
  const isCall = method !== undefined
  return {
    time: start,
    durationMs,
    type: isCall ? 'Call' : 'Attempt',
    ...(object ? { object } : {}),
    action: method ?? operation ?? '',
    ...(isCall ? { component: driver ?? '' } : { component: component ?? '' }),
    process,
    result,
    ...(message ? { message } : {}),
  }
}
