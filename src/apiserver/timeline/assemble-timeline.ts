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

/** An object that had the requested name, from its creation to its removal. */
export interface Life {
  readonly uid: string
  readonly firstMs: number
  /** Infinity if the object exists. */
  readonly lastMs: number
}

/** A timeline has at most this many entries: the newest. */
export const ENTRIES_MAX = 2_000

/** Returns the objects that had the name, newest first. */
export function findLives(records: readonly JournalRecord[], { kind, namespace = '', name }: TimelineRequest): Life[] {
  const lives = new Map<string, Life>()
  for (const record of records) {
    if (!isChange(record) || record.kind !== kind || record.name !== name || (record.namespace ?? '') !== namespace)
      continue
    const { uid, atMs, verb } = record
    const life = lives.get(uid) ?? { uid, firstMs: atMs, lastMs: Number.POSITIVE_INFINITY }
    lives.set(uid, { ...life, ...(verb === 'delete' ? { lastMs: atMs } : {}) })
  }
  return [...lives.values()].sort((a, b) => b.firstMs - a.firstMs)
}

/** The objects that belong to a timeline. */
interface Family {
  /** Claims, volumes and attachments. */
  readonly uids: Set<string>
  readonly volumeNames: Set<string>
  readonly handles: Set<string>
  /** Namespaces and names of claims. */
  readonly claims: Set<string>
  readonly podUids: Set<string>
}

function familyOf(records: readonly JournalRecord[], { kind, namespace, name }: TimelineRequest, life: Life): Family {
  const family: Family = {
    uids: new Set([life.uid]),
    volumeNames: new Set(),
    handles: new Set(),
    claims: new Set(),
    podUids: new Set(),
  }
  if (kind === 'PersistentVolume') family.volumeNames.add(name)
  else family.claims.add(`${namespace ?? ''}/${name}`)
  let size = -1
  while (size !== sizeOf(family)) {
    size = sizeOf(family)
    for (const record of records) if (isChange(record)) addRelated(family, record, life)
  }
  return family
}

const sizeOf = (family: Family): number => Object.values(family).reduce((sum, members) => sum + members.size, 0)

function addRelated(family: Family, record: ChangeRecord, life: Life): void {
  const { kind, uid, name, namespace = '', volume, claimUid, handle, claims = [], atMs } = record
  switch (kind) {
    case 'PersistentVolume':
      if (claimUid && family.uids.has(claimUid)) family.uids.add(uid)
      if (!family.uids.has(uid)) return
      family.volumeNames.add(name)
      if (claimUid) family.uids.add(claimUid)
      if (handle) family.handles.add(handle)
      return
    case 'PersistentVolumeClaim':
      if (!family.uids.has(uid)) return
      family.claims.add(`${namespace}/${name}`)
      if (volume) family.volumeNames.add(volume)
      return
    case 'VolumeAttachment':
      if (volume && family.volumeNames.has(volume)) family.uids.add(uid)
      return
    case 'Pod':
      if (
        atMs >= life.firstMs &&
        atMs <= life.lastMs &&
        claims.some((claim) => family.claims.has(`${namespace}/${claim}`))
      )
        family.podUids.add(uid)
  }
}

/** Returns the texts of which each record of the timeline has one. */
export function searchedTextsOf(request: TimelineRequest, life: Life, records: readonly JournalRecord[]): string[] {
  const { uids, volumeNames, handles, claims, podUids } = familyOf(records, request, life)
  const claimNames = [...claims].map((claim) => claim.slice(claim.indexOf('/') + 1))
  const texts = new Set([...uids, ...podUids, ...volumeNames, ...handles, ...claimNames])
  return [...texts].map((text) => JSON.stringify(text))
}

export function assembleTimeline(
  records: readonly JournalRecord[],
  request: TimelineRequest,
  life: Life,
): Pick<Timeline, 'entries' | 'steps' | 'isTruncated'> {
  const family = familyOf(records, request, life)
  const ordered = records.filter((record) => belongsTo(family, record, life)).sort((a, b) => timeOf(a) - timeOf(b))
  const entries = ordered.map(entryOf)
  return {
    steps: stepsOf(ordered),
    entries: entries.slice(-ENTRIES_MAX),
    ...(entries.length > ENTRIES_MAX || ordered.some((record) => 'dropped' in record) ? { isTruncated: true } : {}),
  }
}

function belongsTo(family: Family, record: JournalRecord, life: Life): boolean {
  const { uids, volumeNames, handles, podUids } = family
  if (isChange(record)) return uids.has(record.uid) || podUids.has(record.uid)
  if (!isActivity(record)) return uids.has(record.dropped) || handles.has(record.dropped)
  const { object, volume } = record.activity
  if (volume !== undefined) return volumeNames.has(volume) || handles.has(volume)
  if (object?.uid) return uids.has(object.uid) || podUids.has(object.uid)
  return isNamed(family, object ?? {}) && timeOf(record) >= life.firstMs && timeOf(record) <= life.lastMs + LATE_MS_MAX
}

/** An attempt without a uid, because the object was gone, belongs to the object that had the name until shortly before. */
const LATE_MS_MAX = 60_000

function isNamed(
  { volumeNames, claims }: Family,
  { kind, namespace = '', name = '' }: NonNullable<Activity['object']>,
): boolean {
  if (kind === 'PersistentVolume') return volumeNames.has(name)
  return kind === 'PersistentVolumeClaim' && claims.has(`${namespace}/${name}`)
}

/** Returns the first time of each step, in the order of time. */
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
