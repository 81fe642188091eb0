// Translates errors of the operating system to CSI errors, so that the caller gets a cause and advice. Programming errors
// are not translated: csi/serve.ts logs them and returns INTERNAL.
import { AssertionError } from 'node:assert'
import { CsiError, type CsiFailureCode } from '../csi/errors.ts'
import {
  FrozenError,
  MissingToolError,
  NoSpaceError,
  NotBlankError,
  OccupiedError,
  ProgramFailedError,
} from '../host/index.ts'
import { withFullStop } from './errors.ts'

/** Wraps all handlers of a service with explain(). */
export function withExplainedErrors<S extends object>(service: S): S {
  const explained = Object.entries(service).map(([name, call]) => [
    name,
    async (...args: unknown[]) => {
      try {
        return await call(...args)
      } catch (error) {
        throw explain(error)
      }
    },
  ])
  return Object.fromEntries(explained)
}

export function explain(error: unknown): unknown {
  if (error instanceof CsiError || error instanceof AssertionError || !(error instanceof Error)) return error
  if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) return error
  if (error instanceof NoSpaceError) return new CsiError('RESOURCE_EXHAUSTED', error.message)
  if (PRECONDITION_ERRORS.some((kind) => error instanceof kind))
    return new CsiError('FAILED_PRECONDITION', error.message)
  if (error instanceof ProgramFailedError && error.program === 'umount' && /busy/.test(error.stderr)) {
    return new CsiError(
      'FAILED_PRECONDITION',
      `${withFullStop(error.stderr)} A process has a file open there. Stop it first.`,
    )
  }
  return explainErrno(error as NodeJS.ErrnoException) ?? new CsiError('INTERNAL', withFullStop(error.message))
}

const PRECONDITION_ERRORS = [MissingToolError, NotBlankError, OccupiedError, FrozenError]

/** The meaning of an errno for a volume. */
function explainErrno({ code, path, syscall }: NodeJS.ErrnoException): CsiError | undefined {
  if (code === undefined || path === undefined) return undefined
  const known = ERRNO[code]
  return known && new CsiError(known.code, `${path} ${known.says} (${syscall}: ${code}). ${known.next}`)
}

const ERRNO: Readonly<Record<string, { code: CsiFailureCode; says: string; next: string }>> = {
  ENOSPC: {
    code: 'RESOURCE_EXHAUSTED',
    says: 'cannot be written: its disk is full',
    next: 'Delete volumes or snapshots, or give the disk more space.',
  },
  EDQUOT: { code: 'RESOURCE_EXHAUSTED', says: 'cannot be written: the disk quota is exceeded', next: 'Raise it.' },
  EROFS: {
    code: 'FAILED_PRECONDITION',
    says: 'is on a file system that is read-only',
    next: 'Make it writable, or use another path.',
  },
  EEXIST: {
    code: 'FAILED_PRECONDITION',
    says: 'already exists and is something else',
    next: 'Remove it, or use another path.',
  },
  ENOTDIR: {
    code: 'FAILED_PRECONDITION',
    says: 'has a parent that is not a directory',
    next: 'Use another path.',
  },
  EISDIR: { code: 'FAILED_PRECONDITION', says: 'is a directory', next: 'Remove it, or use another path.' },
  ENOENT: { code: 'FAILED_PRECONDITION', says: 'does not exist', next: 'Create its parent directory.' },
  ENAMETOOLONG: { code: 'INVALID_ARGUMENT', says: 'is too long', next: 'Use a shorter path.' },
  EACCES: {
    code: 'FAILED_PRECONDITION',
    says: 'is not accessible to the driver',
    next: 'Grant the permission, or run the driver as root.',
  },
  EPERM: {
    code: 'FAILED_PRECONDITION',
    says: 'cannot be changed by the driver',
    next: 'It may be immutable (lsattr) or require root.',
  },
  EIO: { code: 'INTERNAL', says: 'cannot be read or written: its disk reports errors', next: 'Check the disk.' },
}
