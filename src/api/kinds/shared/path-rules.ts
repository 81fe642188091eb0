// Validates paths in volumes and containers, and lists the types of hostPath volumes.
import type { FieldErrors } from '../../field-errors.ts'

export function validateNoBacksteps(path: string, field: string, errors: FieldErrors): void {
  if (hasBacksteps(path)) errors.invalid(field, path, "must not contain '..'")
}

export function validateDescendingPath(path: string, field: string, errors: FieldErrors): void {
  if (path.startsWith('/')) errors.invalid(field, path, 'must be a relative path')
  validateNoBacksteps(path, field, errors)
}

/** Validates the path of a file in a projected volume. Names that start with '..' are reserved for atomic updates. */
export function validateFilePath(path: string, field: string, errors: FieldErrors): void {
  validateDescendingPath(path, field, errors)
  if (path.startsWith('..') && !path.startsWith('../')) errors.invalid(field, path, "must not start with '..'")
}

export const hasBacksteps = (path: string): boolean => path.split('/').includes('..')

/** The types of hostPath volumes in pods and persistent volumes. */
export const HOST_PATH_TYPES: readonly string[] = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
]
