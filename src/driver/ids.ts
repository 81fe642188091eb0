// Volume and snapshot ids, derived from the name in the request: a repeated create after a crash finds the same volume.
// File names are derived only from ids, so a name from a request never becomes part of a path.
import { createHash } from 'node:crypto'

export type VolumeId = string & { readonly is: 'VolumeId' }
export type SnapshotId = string & { readonly is: 'SnapshotId' }

export const volumeIdOf = (name: string): VolumeId => `v-${digestOf(name)}` as VolumeId
export const snapshotIdOf = (name: string): SnapshotId => `s-${digestOf(name)}` as SnapshotId

/** Anything else is not an id of this driver; it is answered with NOT_FOUND and never used in a path. */
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
  let held = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    for (bits += 8; bits >= 5 && text.length < DIGEST_LENGTH; bits -= 5) text += ALPHABET[(held >> (bits - 5)) & 31]
    if (text.length === DIGEST_LENGTH) return text
    held &= (1 << bits) - 1
  }
  return text
}
