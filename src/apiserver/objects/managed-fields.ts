// Maintains metadata.managedFields, which records the client that set each field. Runs inside the transaction of the write,
// after defaulting and before admission, so that fields added by admission have no owner.
import {
  type Entry,
  objectShape,
  readEntries,
  type TrackedWrite,
  trackCreate,
  trackUpdate,
  updatedShape,
} from '../../api/apply/index.ts'
import { FieldErrors } from '../../api/field-errors.ts'
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { Kind } from '../../api/kind.ts'
import type { ManagedFieldsEntry } from '../../api/kinds/shared/meta-schema.ts'
import { invalid } from '../../api/status-error.ts'
import { timestamp } from '../../base/timestamps.ts'
import { checkFieldManager } from '../http/options.ts'
import type { AnyObject, ObjectDeps } from './object-deps.ts'
import type { WriteTarget } from './write-verb.ts'

/** The manager of writes without a fieldManager, which are those of components inside the server. */
const SERVER_MANAGER = 'stowage'

export const trackedWrite = (
  deps: ObjectDeps,
  target: WriteTarget,
  shape = objectShape(target.resource.kind.type),
): TrackedWrite => ({
  shape,
  writer: {
    manager: target.fieldManager ?? SERVER_MANAGER,
    apiVersion: target.resource.apiVersion,
    subresource: target.subresource,
  },
  time: timestamp(deps.clock.nowMs()),
})

export function trackCreatedObject(deps: ObjectDeps, target: WriteTarget, object: AnyObject): void {
  if (!deps.trackManagedFields) return
  const entries = trackCreate(trackedWrite(deps, target), withoutStatus(target, object))
  if (entries.length > 0) object.metadata.managedFields = entries
}

/** Removes the status, which only writes to the status subresource own. */
const withoutStatus = ({ resource }: WriteTarget, object: AnyObject): AnyObject =>
  resource.kind.status && object.status !== undefined ? { ...object, status: undefined } : object

/** Sets the managedFields of `next`. The entries sent by the client (`requestedEntries`) are ignored for subresources. */
export function trackUpdatedObject(
  deps: ObjectDeps,
  target: WriteTarget,
  {
    next,
    old,
    requestedEntries,
  }: { next: AnyObject; old: AnyObject; requestedEntries: readonly ManagedFieldsEntry[] | undefined },
): void {
  const liveEntries: readonly Entry[] = old.metadata.managedFields ?? []
  if (!deps.trackManagedFields) {
    if (liveEntries.length > 0) next.metadata.managedFields = liveEntries
    return
  }
  const { served, foreign } = splitEntries(
    target,
    target.subresource === '' ? mergeRequestedEntries(target, requestedEntries, liveEntries) : liveEntries,
  )
  const write = trackedWrite(deps, target, updatedShape(target.resource.kind.type))
  const ownEntries = trackUpdate(write, served, { before: old, after: next })
  const entries = foreign.length > 0 ? [...ownEntries, ...foreign] : ownEntries
  if (entries.length > 0) next.metadata.managedFields = entries
}

function mergeRequestedEntries(
  target: WriteTarget,
  requestedEntries: readonly ManagedFieldsEntry[] | undefined,
  liveEntries: readonly Entry[],
): readonly Entry[] {
  if (requestedEntries === undefined || jsonEquals(requestedEntries as JsonValue, liveEntries as unknown as JsonValue))
    return liveEntries
  const parsedEntries = readEntries(requestedEntries)
  if (parsedEntries.is === 'reset') return []
  if (parsedEntries.is === 'unchanged') return liveEntries
  const errors = new FieldErrors()
  for (const [index, { manager, subresource = '' }] of parsedEntries.entries.entries()) {
    checkFieldManager(manager, `metadata.managedFields[${index}].manager`, errors)
    if (subresource.length > SUBRESOURCE_LENGTH_MAX) {
      errors.tooLong(`metadata.managedFields[${index}].subresource`, SUBRESOURCE_LENGTH_MAX)
    }
  }
  if (errors.hasErrors) throw invalid(target.resource.kind, target.name, errors.list)
  return parsedEntries.entries
}

const SUBRESOURCE_LENGTH_MAX = 256

/**
 * Splits the entries into those of the kind's versions and those of another group, which are kept unchanged (core and
 * events.k8s.io share events). Drops entries of versions that no longer exist.
 */
export function splitEntries(
  { resource: { kind } }: WriteTarget,
  entries: readonly Entry[],
): { served: readonly Entry[]; foreign: readonly Entry[] } {
  if (areAllServed(kind, entries)) return { served: entries, foreign: NO_ENTRIES }
  return {
    served: entries.filter((entry) => isServed(kind, entry)),
    foreign: entries.filter(({ apiVersion }) => groupOf(apiVersion) !== kind.group),
  }
}

const NO_ENTRIES: readonly Entry[] = []

function areAllServed(kind: Kind, entries: readonly Entry[]): boolean {
  for (const entry of entries) if (!isServed(kind, entry)) return false
  return true
}

function isServed({ group, versions }: Kind, { apiVersion }: Entry): boolean {
  if (group === '') return versions.includes(apiVersion)
  if (apiVersion.charCodeAt(group.length) !== SLASH || !apiVersion.startsWith(group)) return false
  return versions.includes(apiVersion.slice(group.length + 1))
}

const SLASH = 0x2f

const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? apiVersion.split('/')[0]! : '')

/** Whether two states differ at most in the times of managedFields. Such an update is not written. */
export function equalExceptTimes(next: AnyObject, old: AnyObject): boolean {
  const { metadata, ...fields } = next
  const { metadata: oldMetadata, ...oldFields } = old
  if (!jsonEquals(fields, oldFields)) return false
  const { managedFields: entries = [], resourceVersion: _, ...meta } = metadata
  const { managedFields: previous = [], resourceVersion: __, ...oldMeta } = oldMetadata
  if (entries.length !== previous.length || !jsonEquals(meta, oldMeta)) return false
  const entriesWithoutTime: JsonValue[] = entries.map(withoutTime)
  return previous
    .map(withoutTime)
    .every((entry: JsonValue) => entriesWithoutTime.some((candidate) => jsonEquals(entry, candidate)))
}

const withoutTime = ({ time: _, ...entry }: Entry): JsonValue => entry as unknown as JsonValue
