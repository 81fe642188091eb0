// Translates errors of the operating system and of its programs to CSI errors. Programming errors are not translated, because
// csi/serve.ts logs them and returns INTERNAL.
import { AssertionError } from 'node:assert'
import { CsiError, type CsiFailureCode } from '../csi/errors.ts'
import {
  FileTooLargeError,
  FrozenError,
  MissingToolError,
  NoSpaceError,
  NotBlankError,
  OccupiedError,
  ProgramFailedError,
} from '../host/index.ts'
import { withFullStop } from './errors.ts'

/** Wraps all handlers of a service with toCsiError(). */
export function withCsiErrors<S extends object>(service: S): S {
  const handlers = Object.entries(service).map(([name, call]) => [
    name,
    async (...args: unknown[]) => {
      try {
        return await call(...args)
      } catch (error) {
        throw toCsiError(error)
      }
    },
  ])
  return Object.fromEntries(handlers)
}

export function toCsiError(error: unknown): unknown {
  if (error instanceof CsiError || error instanceof AssertionError || !(error instanceof Error)) return error
  if (error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError) return error
  if (error instanceof NoSpaceError) return new CsiError('RESOURCE_EXHAUSTED', error.message)
  if (error instanceof FileTooLargeError) return new CsiError('OUT_OF_RANGE', error.message)
  if (PRECONDITION_ERRORS.some((kind) => error instanceof kind))
    return new CsiError('FAILED_PRECONDITION', error.message)
  if (error instanceof ProgramFailedError && error.program === 'umount' && /busy/.test(error.stderr)) {
    return new CsiError(
      'FAILED_PRECONDITION',
      `${withFullStop(error.stderr)} A process has a file open there. Stop it first.`,
    )
  }
  return errnoToCsiError(error as NodeJS.ErrnoException) ?? new CsiError('INTERNAL', withFullStop(error.message))
}

const PRECONDITION_ERRORS = [MissingToolError, NotBlankError, OccupiedError, FrozenError]

/** Returns the CSI error for an error code of the operating system, if the code is known. */
function errnoToCsiError({ code, path, syscall }: NodeJS.ErrnoException): CsiError | undefined {
  if (code === undefined || path === undefined) return undefined
  const entry = ERRNO[code]
  return entry && new CsiError(entry.code, `${path} ${entry.description} (${syscall}: ${code}). ${entry.advice}`)
}

const ERRNO: Readonly<Record<string, { code: CsiFailureCode; description: string; advice: string }>> = {
  ENOSPC: {
    code: 'RESOURCE_EXHAUSTED',
    description: 'cannot be written: its disk is full',
    advice: 'Delete volumes or snapshots, or give the disk more space.',
  },
  EDQUOT: {
    code: 'RESOURCE_EXHAUSTED',
    description: 'cannot be written: the disk quota is exceeded',
    advice: 'Raise the quota.',
  },
  EFBIG: {
    code: 'OUT_OF_RANGE',
    description:
      "cannot have this size: its file system or a limit of the driver's process (ulimit -f) does not allow it",
    advice: 'Request a smaller size, raise the limit, or use a pool on another file system.',
  },
  EROFS: {
    code: 'FAILED_PRECONDITION',
    description: 'is on a file system that is read-only',
    advice: 'Make the file system writable, or use another path.',
  },
  EEXIST: {
    code: 'FAILED_PRECONDITION',
    description: 'already exists with another type',
    advice: 'Remove it, or use another path.',
  },
  ENOTDIR: {
    code: 'FAILED_PRECONDITION',
    description: 'has a parent that is not a directory',
    advice: 'Use another path.',
  },
  EISDIR: { code: 'FAILED_PRECONDITION', description: 'is a directory', advice: 'Remove it, or use another path.' },
  ENOENT: { code: 'FAILED_PRECONDITION', description: 'does not exist', advice: 'Create its parent directory.' },
  ENAMETOOLONG: { code: 'INVALID_ARGUMENT', description: 'is too long', advice: 'Use a shorter path.' },
  EACCES: {
    code: 'FAILED_PRECONDITION',
    description: 'is not accessible to the driver',
    advice: 'Grant the permission, or run the driver as root.',
  },
  EPERM: {
    code: 'FAILED_PRECONDITION',
    description: 'cannot be changed by the driver',
    advice: 'The file may be immutable (lsattr), or the change may require root.',
  },
  EIO: {
    code: 'INTERNAL',
    description: 'cannot be read or written: its disk reports errors',
    advice: 'Check the disk.',
  },
}
