// Rules that Secret and ConfigMap share: the maximum size and `immutable: true`.
import type { FieldErrors } from '../../field-errors.ts'
import { bytes, map } from '../../schema.ts'
import { sameValue } from './changed-fields.ts'

export const CONTENT_BYTES_MAX = 1_048_576 // larger objects are rejected: an object is read and sent as a whole

export const base64ByteLength = (base64: string): number => Buffer.byteLength(base64, 'base64')

interface ImmutableChange<T> {
  next: T
  old: T
  /** The fields with the content. */
  parts: readonly (keyof T & string)[]
  errors: FieldErrors
}

/** An immutable object stays immutable: neither the flag nor the content can change. */
export function validateImmutableContent<T extends { immutable?: boolean }>(change: ImmutableChange<T>): void {
  const { next, old, parts, errors } = change
  if (old.immutable !== true) return
  if (next.immutable !== true) errors.forbidden('immutable', IS_IMMUTABLE)
  for (const part of parts) if (!sameValue(CONTENT, next[part], old[part])) errors.forbidden(part, IS_IMMUTABLE)
}

/** Text and base64 are both compared as strings. */
const CONTENT = map(bytes)
const IS_IMMUTABLE = 'field is immutable when `immutable` is set'
