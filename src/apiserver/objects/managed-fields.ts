// Keeps metadata.managedFields: which client set which field of an object. Runs inside the transaction of the write,
// on the draft with its defaults and before admission, so that what the server adds by itself belongs to nobody.
import {
  type Entry,
  objectPlace,
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
import { type ObjectDeps, timestamp, type WriteTarget } from './write-deps.ts'

/** Who writes when nobody says: components of this server. */
const OWN_MANAGER = 'stowage'

export const trackedWrite = (deps: ObjectDeps, target: WriteTarget): TrackedWrite => ({
  place: objectPlace(target.resource.kind.type),
  writer: {
    manager: target.fieldManager ?? OWN_MANAGER,
    apiVersion: target.resource.apiVersion,
    subresource: target.subresource,
  },
  time: timestamp(deps.clock.nowMs()),
})

export function trackCreated(deps: ObjectDeps, target: WriteTarget, object: any): void {
  if (!deps.trackManagedFields) return
  const entries = trackCreate(trackedWrite(deps, target), withoutStatus(target, object))
  if (entries.length > 0) object.metadata.managedFields = entries
}

/** Status counts as set through /status only, even where a create keeps it. */
const withoutStatus = ({ resource }: WriteTarget, object: any): any =>
  resource.kind.status && object.status !== undefined ? { ...object, status: undefined } : object

/**
 * `next` comes without a record and leaves with one. `asked` is what the client wants it to be; subresources do not
 * listen to that.
 */
export function trackUpdated(
  deps: ObjectDeps,
  target: WriteTarget,
  { next, old, asked }: { next: any; old: any; asked: readonly ManagedFieldsEntry[] | undefined },
): void {
  const live: readonly Entry[] = old.metadata.managedFields ?? []
  if (!deps.trackManagedFields) {
    if (live.length > 0) next.metadata.managedFields = live
    return
  }
  const { mine, foreign } = readable(target, target.subresource === '' ? adopted(target, asked, live) : live)
  const before = { ...old, metadata: { ...old.metadata, managedFields: undefined, resourceVersion: undefined } }
  const entries = [...trackUpdate(trackedWrite(deps, target), mine, { before, after: next }), ...foreign]
  if (entries.length > 0) next.metadata.managedFields = entries
}

function adopted(
  target: WriteTarget,
  asked: readonly ManagedFieldsEntry[] | undefined,
  live: readonly Entry[],
): readonly Entry[] {
  if (asked === undefined || jsonEquals(asked as JsonValue, live as unknown as JsonValue)) return live
  const read = readEntries(asked)
  if (read.is === 'reset') return []
  if (read.is === 'nothing') return live
  const errors = new FieldErrors()
  for (const [index, { manager, subresource = '' }] of read.entries.entries()) {
    checkFieldManager(manager, `metadata.managedFields[${index}].manager`, errors)
    if (subresource.length > SUBRESOURCE_LENGTH_MAX) {
      errors.tooLong(`metadata.managedFields[${index}].subresource`, SUBRESOURCE_LENGTH_MAX)
    }
  }
  if (errors.any) throw invalid(target.resource.kind, target.name, errors.list)
  return read.entries
}

const SUBRESOURCE_LENGTH_MAX = 256

/**
 * An entry's paths are in the terms of its version. Those of another group (events have two faces) are left alone,
 * those of a version nobody knows any more are dropped.
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

/** Whether two states say the same, whatever they say of when each manager last wrote: then nothing was written. */
export function sameButForTimes(next: any, old: any): boolean {
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
