// Keeps metadata.managedFields: which client set which field of an object. Runs inside the transaction of the write, on
// the draft after defaulting and before admission, so that fields added by admission have no owner.
import {
  type Entry,
  objectShape,
  readEntries,
  type TrackedWrite,
  trackCreate,
  trackUpdate,
} from '../../api/apply/index.ts'
import { FieldErrors } from '../../api/field-errors.ts'
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { ManagedFieldsEntry } from '../../api/kinds/shared/meta-schema.ts'
import { invalid } from '../../api/status-error.ts'
import { checkFieldManager } from '../http/options.ts'
import { type AnyObject, type ObjectDeps, timestamp } from './object-deps.ts'
import type { WriteTarget } from './write-verb.ts'

/** The manager of writes without a fieldManager: components inside the server. */
const OWN_MANAGER = 'stowage'

export const trackedWrite = (deps: ObjectDeps, target: WriteTarget): TrackedWrite => ({
  shape: objectShape(target.resource.kind.type),
  writer: {
    manager: target.fieldManager ?? OWN_MANAGER,
    apiVersion: target.resource.apiVersion,
    subresource: target.subresource,
  },
  time: timestamp(deps.clock.nowMs()),
})

export function trackCreated(deps: ObjectDeps, target: WriteTarget, object: AnyObject): void {
  if (!deps.trackManagedFields) return
  const entries = trackCreate(trackedWrite(deps, target), withoutStatus(target, object))
  if (entries.length > 0) object.metadata.managedFields = entries
}

/** Only writes through /status own status, even where a create keeps it. */
const withoutStatus = ({ resource }: WriteTarget, object: AnyObject): AnyObject =>
  resource.kind.status && object.status !== undefined ? { ...object, status: undefined } : object

/** Sets the managedFields of `next`. Those that the client sent (`requested`) count only without a subresource. */
export function trackUpdated(
  deps: ObjectDeps,
  target: WriteTarget,
  { next, old, requested }: { next: AnyObject; old: AnyObject; requested: readonly ManagedFieldsEntry[] | undefined },
): void {
  const live: readonly Entry[] = old.metadata.managedFields ?? []
  if (!deps.trackManagedFields) {
    if (live.length > 0) next.metadata.managedFields = live
    return
  }
  const { mine, foreign } = readable(target, target.subresource === '' ? adopted(target, requested, live) : live)
  const before = { ...old, metadata: { ...old.metadata, managedFields: undefined, resourceVersion: undefined } }
  const entries = [...trackUpdate(trackedWrite(deps, target), mine, { before, after: next }), ...foreign]
  if (entries.length > 0) next.metadata.managedFields = entries
}

function adopted(
  target: WriteTarget,
  requested: readonly ManagedFieldsEntry[] | undefined,
  live: readonly Entry[],
): readonly Entry[] {
  if (requested === undefined || jsonEquals(requested as JsonValue, live as unknown as JsonValue)) return live
  const read = readEntries(requested)
  if (read.is === 'reset') return []
  if (read.is === 'unchanged') return live
  const errors = new FieldErrors()
  for (const [index, { manager, subresource = '' }] of read.entries.entries()) {
    checkFieldManager(manager, `metadata.managedFields[${index}].manager`, errors)
    if (subresource.length > SUBRESOURCE_LENGTH_MAX) {
      errors.tooLong(`metadata.managedFields[${index}].subresource`, SUBRESOURCE_LENGTH_MAX)
    }
  }
  if (errors.hasErrors) throw invalid(target.resource.kind, target.name, errors.list)
  return read.entries
}

const SUBRESOURCE_LENGTH_MAX = 256

/**
 * An entry's paths refer to its apiVersion. Entries of another group (core and events.k8s.io share events) are kept as
 * they are; entries of a version that is no longer served are dropped.
 */
export function readable(
  { resource: { kind } }: WriteTarget,
  entries: readonly Entry[],
): { mine: readonly Entry[]; foreign: readonly Entry[] } {
  const prefix = kind.group === '' ? '' : `${kind.group}/`
  const isMine = ({ apiVersion }: Entry) => kind.versions.some((version) => apiVersion === prefix + version)
  if (entries.every(isMine)) return { mine: entries, foreign: [] }
  const groupOf = (apiVersion: string) => (apiVersion.includes('/') ? apiVersion.split('/')[0] : '')
  return {
    mine: entries.filter(isMine),
    foreign: entries.filter(({ apiVersion }) => groupOf(apiVersion) !== kind.group),
  }
}

/** Whether two states differ at most in the times of their managers: such an update is not written. */
export function sameButForTimes(next: AnyObject, old: AnyObject): boolean {
  const { metadata, ...rest } = next
  const { metadata: oldMetadata, ...oldRest } = old
  if (!jsonEquals(rest, oldRest)) return false
  const { managedFields: entries = [], resourceVersion: _, ...meta } = metadata
  const { managedFields: before = [], resourceVersion: __, ...oldMeta } = oldMetadata
  if (entries.length !== before.length || !jsonEquals(meta, oldMeta)) return false
  const timeless: JsonValue[] = entries.map(withoutTime)
  return before.map(withoutTime).every((entry: JsonValue) => timeless.some((other) => jsonEquals(entry, other)))
}

const withoutTime = ({ time: _, ...entry }: Entry): JsonValue => entry as unknown as JsonValue
