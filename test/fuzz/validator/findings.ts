// Collects the problems of an object, as sentences that start with the path.

/** Reports a problem at a path. */
export type Say = (path: string, why: string) => void

export function collectFindings(look: (say: Say) => void): string[] {
  const findings: string[] = []
  look((path, why) => findings.push(`${path}: ${why}`))
  return findings
}

export const show = (value: unknown): string => (JSON.stringify(value) ?? String(value)).slice(0, 120)

export const isRecord = (value: unknown): value is Record<string, any> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (isRecord(value) && Object.keys(value).length === 0)

/** Same JSON regardless of key order; absent, an empty map and an empty list are equal. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b || (isEmpty(a) && isEmpty(b))) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => same(item, b[i]))
  if (!isRecord(a) || !isRecord(b)) return false
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => same(a[key], b[key]))
}

export const repeated = <T>(items: readonly T[]): T[] => items.filter((item, i) => items.indexOf(item) !== i)

export const byteLength = (text: string): number => Buffer.byteLength(text, 'utf8')

/** Bytes of all keys and values of a map of strings. */
export const mapBytes = (map: Record<string, string> = {}): number =>
  Object.entries(map).reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0)
