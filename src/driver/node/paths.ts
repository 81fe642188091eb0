// The paths a caller names. They are absolute and clean from here on, so that one path is one text.
import { isAbsolute, normalize } from 'node:path'
import { invalid, missing, quote } from '../errors.ts'

export function absolutePath(path: string, field: string): string {
  if (path === '') throw missing(field)
  if (!isAbsolute(path) || path.includes('\0')) throw invalid(`${field} ${quote(path)} is not an absolute path.`)
  return cleanPath(path)
}

/** As it is, but without `..`, doubled and trailing slashes. */
export function cleanPath(path: string): string {
  const clean = normalize(path)
  return clean.length > 1 && clean.endsWith('/') ? clean.slice(0, -1) : clean
}
