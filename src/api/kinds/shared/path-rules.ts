// Paths inside volumes and containers: relative where they must be, and never climbing out with '..'.
import type { FieldErrors } from '../../field-errors.ts'

export function validateNoBacksteps(path: string, field: string, errors: FieldErrors): void {
  if (hasBacksteps(path)) errors.invalid(field, path, "must not contain '..'")
}

export function validateDescendingPath(path: string, field: string, errors: FieldErrors): void {
  if (path.startsWith('/')) errors.invalid(field, path, 'must be a relative path')
  validateNoBacksteps(path, field, errors)
}

/** A file that a volume offers: names that begin with '..' are used for its own bookkeeping. */
export function validateFilePath(path: string, field: string, errors: FieldErrors): void {
  validateDescendingPath(path, field, errors)
  if (path.startsWith('..') && !path.startsWith('../')) errors.invalid(field, path, "must not start with '..'")
}

export const hasBacksteps = (path: string): boolean => path.split('/').includes('..')

/** What may be said to be at a path of the node, by volumes and by pods. */
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
