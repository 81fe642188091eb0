// One state of one key, as the store remembers it: everything but the value, which stays on the medium.
// A key's kept states form a chain from the newest back; key-index.ts holds the newest, change-log.ts all in order.
import type { Revision } from './store.ts'

export interface Version {
  readonly key: string
  /** Also names the record on the medium. */
  readonly revision: Revision
  readonly createRevision: Revision
  readonly expiresAtMs: number | undefined
  /** A tombstone: from this revision on the key does not exist. */
  readonly deleted: boolean
  /** The state this one superseded, for as long as that is kept. */
  previous: Version | undefined
}

/** What the key was at that revision; nothing if it did not exist. Right for every revision that is still kept. */
export function versionAt(newest: Version | undefined, revision: Revision): Version | undefined {
  let version = newest
  while (version && version.revision > revision) version = version.previous
  return version?.deleted ? undefined : version
}

/** The state before this one; nothing if the key was created by it. */
export function versionBefore(version: Version): Version | undefined {
  return version.previous?.deleted ? undefined : version.previous
}
