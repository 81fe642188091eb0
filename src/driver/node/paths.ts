// Validates and normalizes paths in requests, so that equal paths are equal strings.
import { isAbsolute, normalize } from 'node:path'
import { invalid, missingField, quote } from '../errors.ts'

export function parseAbsolutePath(path: string, field: string): string {
  if (path === '') throw missingField(field)
  if (!isAbsolute(path) || path.includes('\0')) throw invalid(`${field} ${quote(path)} is not an absolute path.`)
  return cleanPath(path)
}

/** Resolves `..`, and removes duplicate slashes and trailing slashes. */
export function cleanPath(path: string): string {
  const cleanedPath = normalize(path)
  return cleanedPath.length > 1 && cleanedPath.endsWith('/') ? cleanedPath.slice(0, -1) : cleanedPath
}
