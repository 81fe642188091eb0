// Collects the problems of an object, each with its path, and provides helpers for the checks.

/** Reports a problem of the field at this path. */
export type Report = (path: string, problem: string) => void

export function collectFindings(check: (report: Report) => void): string[] {
  const findings: string[] = []
  check((path, problem) => findings.push(`${path}: ${problem}`))
  return findings
}

export const format = (value: unknown): string => (JSON.stringify(value) ?? String(value)).slice(0, 120)

export const isRecord = (value: unknown): value is Record<string, any> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (isRecord(value) && Object.keys(value).length === 0)

/** Compares JSON regardless of key order. Absent and empty values are equal. */
export function isEqualJson(a: unknown, b: unknown): boolean {
  if (a === b || (isEmpty(a) && isEmpty(b))) return true
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, i) => isEqualJson(item, b[i]))
  if (!isRecord(a) || !isRecord(b)) return false
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => isEqualJson(a[key], b[key]))
}

export const duplicatesIn = <T>(items: readonly T[]): T[] => items.filter((item, i) => items.indexOf(item) !== i)

export const byteLength = (text: string): number => Buffer.byteLength(text, 'utf8')

/** Returns the bytes of all keys and values of a map of strings. */
export const mapBytes = (map: Record<string, string> = {}): number =>
  Object.entries(map).reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(value), 0)
