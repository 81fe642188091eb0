// Version: one state of one key without its value, which stays on the medium.
// The kept versions of a key form a chain from the newest back. key-index.ts holds the newest version of each key,
// change-log.ts all versions in revision order.
import type { Revision } from './store.ts'

export interface Version {
  readonly key: string
  /** Also identifies the record on the medium. */
  readonly revision: Revision
  readonly createRevision: Revision
  readonly expiresAtMs: number | undefined
  /** A tombstone: from this revision on the key does not exist. */
  readonly deleted: boolean
  /** The version that this one superseded, until it is compacted. */
  previous: Version | undefined
}

/** The version of the key at a revision, or undefined if it did not exist then. Valid for revisions that are kept. */
export function versionAt(newest: Version | undefined, revision: Revision): Version | undefined {
  let version = newest
  while (version && version.revision > revision) version = version.previous
  return version?.deleted ? undefined : version
}

/** The state before this version; undefined if the version created the key. */
export function versionBefore(version: Version): Version | undefined {
  return version.previous?.deleted ? undefined : version.previous
}
