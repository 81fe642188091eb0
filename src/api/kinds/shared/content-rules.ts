// Rules that Secrets and ConfigMaps share: how much they may hold, and what `immutable: true` freezes.
import type { FieldErrors } from '../../field-errors.ts'
import { bytes, map } from '../../schema.ts'
import { sameValue } from './changed-fields.ts'

export const CONTENT_BYTES_MAX = 1_048_576 // one object is read and sent as a whole; larger ones are refused

export const base64ByteLength = (base64: string): number => Buffer.byteLength(base64, 'base64')

interface ImmutableChange<T> {
  next: T
  old: T
  /** The fields that hold content. */
  parts: readonly (keyof T & string)[]
  errors: FieldErrors
}

/** Once frozen, an object stays frozen: neither the flag nor the content changes, whoever asks. */
export function validateImmutableContent<T extends { immutable?: boolean }>(change: ImmutableChange<T>): void {
  const { next, old, parts, errors } = change
  if (old.immutable !== true) return
  if (next.immutable !== true) errors.forbidden('immutable', FROZEN)
  for (const part of parts) if (!sameValue(CONTENT, next[part], old[part])) errors.forbidden(part, FROZEN)
}

/** Text and bytes are compared alike: as the strings that hold them. */
const CONTENT = map(bytes)
const FROZEN = 'field is immutable when `immutable` is set'
