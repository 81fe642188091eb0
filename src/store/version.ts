// Version: a state of a key without its value, which stays on the medium. The kept versions of a key form a chain that
// starts at the newest. key-index.ts has the newest version of each key, change-log.ts the kept changes in revision order.
import type { Revision } from './store.ts'

export interface Version {
  readonly key: string
  /** Also identifies the record on the medium. */
  readonly revision: Revision
  readonly createRevision: Revision
  readonly expiresAtMs: number | undefined
  /** A tombstone: from this revision on the key does not exist. */
  readonly isDeleted: boolean
  /** The checksum of the stored value (checksum.ts). 0 until the version is written, and on etcd. */
  checksum: number
  /** Size of the stored value. 0 until the version is written, and for a tombstone. */
  valueBytes: number
  /** The version that this one superseded, until it is compacted. */
  previous: Version | undefined
}

/** Returns the version of the key at a kept revision, or undefined if the key did not exist. */
export function versionAt(newest: Version | undefined, revision: Revision): Version | undefined {
  let version = newest
  while (version && version.revision > revision) version = version.previous
  return version?.isDeleted ? undefined : version
}

/** Returns the state before this version, or undefined if the version created the key. */
export function versionBefore(version: Version): Version | undefined {
  return version.previous?.isDeleted ? undefined : version.previous
}
