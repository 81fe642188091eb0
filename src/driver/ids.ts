// Volume and snapshot ids, made from the name the caller chose: the same name always has the same id, so a create that
// is repeated after a crash finds what it began. File names are made from ids alone, so no name ever becomes a path.
import { createHash } from 'node:crypto'

export type VolumeId = string & { readonly is: 'VolumeId' }
export type SnapshotId = string & { readonly is: 'SnapshotId' }

export const volumeIdOf = (name: string): VolumeId => `v-${digestOf(name)}` as VolumeId
export const snapshotIdOf = (name: string): SnapshotId => `s-${digestOf(name)}` as SnapshotId

/** An id in any other form is nobody's: it is answered "not found" and goes nowhere near the file system. */
export const isVolumeId = (text: string): text is VolumeId => VOLUME_ID.test(text)
export const isSnapshotId = (text: string): text is SnapshotId => SNAPSHOT_ID.test(text)

const DIGEST_LENGTH = 26 // 130 bits: no two names meet
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
