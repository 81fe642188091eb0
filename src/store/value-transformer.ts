// ValueTransformer: the seam for encryption at rest. Stores pass every value through it on the way to storage and back, so
// that storage, its history and its backups contain the transformed bytes, and readers and watchers get plain values.
import type { Entry, Revision } from './store.ts'

export interface ValueTransformer {
  /** Returns the bytes to store. Returns the value itself if values of this key are not transformed. */
  encode(key: string, value: Uint8Array): Uint8Array
  /** Whether the stored bytes must be decoded, or values of this key are transformed when they are written. */
  isTransformed(key: string, stored: Uint8Array): boolean
  /** Returns the value. Throws an UndecryptableError. */
  decode(key: string, stored: Uint8Array): Uint8Array
  /** Whether a new write of the value would be stored in another way, for example with a newer key. */
  isStale(key: string, stored: Uint8Array): boolean
}

/** A stored value cannot be decoded. The message names the key of the store and the reason, but never contains the value. */
export class UndecryptableError extends Error {
  override readonly name = 'UndecryptableError'
  constructor(key: string, reason: string) {
    super(`the stored value of ${key} cannot be decrypted: ${reason}`)
  }
}

export interface StoredEntry {
  readonly key: string
  readonly stored: Uint8Array
  readonly modRevision: Revision
  readonly createRevision: Revision
}

/** Returns the entry of stored bytes. It decodes the value when it is read, so that an undecodable one fails its readers only. */
export function entryOfStored(entry: StoredEntry, transformer: ValueTransformer | undefined): Entry {
  const { key, stored, modRevision, createRevision } = entry
  if (transformer?.isTransformed(key, stored)) return new TransformedEntry(entry, transformer)
  return { key, value: stored, modRevision, createRevision }
}

class TransformedEntry implements Entry {
  readonly key: string
  readonly stored: Uint8Array
  readonly modRevision: Revision
  readonly createRevision: Revision
  readonly #transformer: ValueTransformer
  #value: Uint8Array | undefined

  constructor({ key, stored, modRevision, createRevision }: StoredEntry, transformer: ValueTransformer) {
    this.key = key
    this.stored = stored
    this.modRevision = modRevision
    this.createRevision = createRevision
    this.#transformer = transformer
  }

  get value(): Uint8Array {
    this.#value ??= this.#transformer.decode(this.key, this.stored)
    return this.#value
  }

  get isStale(): boolean {
    return this.#transformer.isStale(this.key, this.stored)
  }
}
