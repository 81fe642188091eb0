// Derives volume and snapshot ids from the name in the request, so that a repeated create finds the same volume. File names
// are derived only from ids, so that a name from a request is never part of a path.
import { createHash } from 'node:crypto'

export type VolumeId = string & { readonly is: 'VolumeId' }
export type SnapshotId = string & { readonly is: 'SnapshotId' }

export const volumeIdOf = (name: string): VolumeId => `v-${digestOf(name)}` as VolumeId
export const snapshotIdOf = (name: string): SnapshotId => `s-${digestOf(name)}` as SnapshotId

/** Returns whether the text has the format of this driver's ids. Other ids are never used in a path. */
export const isVolumeId = (text: string): text is VolumeId => VOLUME_ID.test(text)
export const isSnapshotId = (text: string): text is SnapshotId => SNAPSHOT_ID.test(text)

const DIGEST_LENGTH = 26 // 130 bits, so that names do not collide
const VOLUME_ID = new RegExp(`^v-[a-z2-7]{${DIGEST_LENGTH}}$`)
const SNAPSHOT_ID = new RegExp(`^s-[a-z2-7]{${DIGEST_LENGTH}}$`)
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

function digestOf(name: string): string {
  const bytes = createHash('sha256').update(name, 'utf8').digest()
  let text = ''
  let bits = 0
  let buffer = 0
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte
    for (bits += 8; bits >= 5 && text.length < DIGEST_LENGTH; bits -= 5) text += ALPHABET[(buffer >> (bits - 5)) & 31]
    if (text.length === DIGEST_LENGTH) return text
    buffer &= (1 << bits) - 1
  }
  return text
}
