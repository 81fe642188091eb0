// The fields that all rows have, and helpers for projecting objects to rows.
import type { Identified } from '../logic/sorted-view.ts'

export interface NamedRow extends Identified {
  readonly name: string
  readonly createdMs: number | undefined
  /** The time at which the deletion was requested. */
  readonly deletedMs: number | undefined
}

/** Bounds the pool of shared strings. Above it, strings are not shared. */
const INTERNED_MAX = 20_000
const interned = new Map<string, string>()

/** Returns one shared copy of equal strings: the rows of 50,000 claims have only a few distinct namespaces and classes. */
export function intern<T extends string | undefined>(text: T): T {
  if (text === undefined) return text
  const known = interned.get(text)
  if (known !== undefined) return known as T
  if (interned.size < INTERNED_MAX) interned.set(text, text)
  return text
}

export const timeOf = (timestamp: string | null | undefined): number | undefined =>
  timestamp ? Date.parse(timestamp) : undefined
