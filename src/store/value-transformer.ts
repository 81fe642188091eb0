// ValueTransformer: the interface for encryption at rest. Stores encode every value before they write it, and entries decode it
// when it is read. Storage, its history and its backups contain the transformed bytes; readers and watchers receive plain values.
import type { Clock } from '../base/clock.ts'
import { DamagedEntry } from './damaged-entry.ts'

import { DamagedRecordError, type Entry, type Revision } from './store.ts'

export interface ValueTransformer {
  /** Returns the bytes to store. Returns the value itself if values of this key are not transformed. */
  encode(key: string, value: Uint8Array): Uint8Array
  /** Whether the stored bytes must be decoded, or values of this key are transformed when they are written. */
  isTransformed(key: string, storedBytes: Uint8Array): boolean
  /** Returns the value. Throws an UndecryptableError if it cannot be decoded. */
  decode(key: string, stored: Uint8Array): Uint8Array
  /** Whether a new write of the value would be stored in another way, for example with a newer key. */
  isStale(key: string, stored: Uint8Array): boolean
}

/** Thrown if a stored value cannot be decoded. The message names the key of the store and the reason, but never contains the value. */
export class UndecryptableError extends Error {
  override readonly name = 'UndecryptableError'
  constructor(key: string, reason: string) {
    super(`the stored value of ${key} cannot be decrypted: ${reason}`)
  }
}

export interface StoredEntry {
  readonly key: string
  readonly storedBytes: Uint8Array
  readonly modRevision: Revision
  readonly createRevision: Revision
}

/** Returns the entry of stored bytes. It decodes the value on first read, so that an undecodable value fails only its readers. */
export function entryOfStored(entry: StoredEntry, transformer: ValueTransformer | undefined): Entry {
  const { key, storedBytes, modRevision, createRevision } = entry
  if (transformer?.isTransformed(key, storedBytes)) return new TransformedEntry(entry, transformer)
  return { key, value: storedBytes, modRevision, createRevision }
}

/** Decodes the value before it is read, and returns its size. A value that cannot be decoded fails only its readers. */
export function decodedLength(entry: Entry): number {
  try {
    return entry.value.length
  } catch (error) {
    if (!(error instanceof UndecryptableError || error instanceof DamagedRecordError)) throw error
    return storedLength(entry)
  }
}

const DECODED_ENTRIES_PER_TURN = 1_000 // a longer list yields to the event loop after this many entries
const DECODED_BYTES_PER_TURN = 4 * 1024 * 1024 // a larger list yields to the event loop after this many bytes

/** Decodes the values of a list in slices, one per turn of the event loop, so that readers do not decode all of them in one turn. */
export async function decodeEntries(entries: readonly Entry[], clock: Pick<Clock, 'nextTurn'>): Promise<void> {
  let [count, bytes] = [0, 0]
  for (const entry of entries) {
    if (!(entry instanceof TransformedEntry) || entry.isDecoded) continue
    if (count >= DECODED_ENTRIES_PER_TURN || bytes >= DECODED_BYTES_PER_TURN) {
      await clock.nextTurn()
      count = 0
      bytes = 0
    }
    count++
    bytes += decodedLength(entry)
  }
}

/** Returns the size of the stored value. Does not decode it, because that may fail. */
export function storedLength(entry: Entry): number {
  if (entry instanceof DamagedEntry) return 0
  return (entry.storedBytes ?? entry.value).length
}

class TransformedEntry implements Entry {
  readonly key: string
  readonly storedBytes: Uint8Array
  readonly modRevision: Revision
  readonly createRevision: Revision
  readonly #transformer: ValueTransformer
  #value: Uint8Array | undefined

  constructor({ key, storedBytes, modRevision, createRevision }: StoredEntry, transformer: ValueTransformer) {
    this.key = key
    this.storedBytes = storedBytes
    this.modRevision = modRevision
    this.createRevision = createRevision
    this.#transformer = transformer
  }

  get value(): Uint8Array {
    this.#value ??= this.#transformer.decode(this.key, this.storedBytes)
    return this.#value
  }

  get isDecoded(): boolean {
    return this.#value !== undefined
  }

  get isStale(): boolean {
    return this.#transformer.isStale(this.key, this.storedBytes)
  }
}
