// The rules that Secret and ConfigMap share: the maximum size and `immutable: true`.
import type { FieldErrors } from '../../field-errors.ts'
import { bytes, map } from '../../schema.ts'
import { isSameValue } from './changed-fields.ts'

export const CONTENT_BYTES_MAX = 1_048_576 // larger objects are rejected

export const base64ByteLength = (base64: string): number => Buffer.byteLength(base64, 'base64')

interface ContentChange<T> {
  next: T
  old: T
  /** The fields with the content. */
  contentFields: readonly (keyof T & string)[]
  errors: FieldErrors
}

/** Rejects changes to the flag and the content of an immutable object. */
export function validateImmutableContent<T extends { immutable?: boolean }>(change: ContentChange<T>): void {
  const { next, old, contentFields, errors } = change
  if (old.immutable !== true) return
  if (next.immutable !== true) errors.forbidden('immutable', IMMUTABLE_MESSAGE)
  for (const contentField of contentFields)
    if (!isSameValue(CONTENT_TYPE, next[contentField], old[contentField]))
      errors.forbidden(contentField, IMMUTABLE_MESSAGE)
}

/** The type with which text and base64 are compared as strings. */
const CONTENT_TYPE = map(bytes)
const IMMUTABLE_MESSAGE = 'field is immutable when `immutable` is set'
