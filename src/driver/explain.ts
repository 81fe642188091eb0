// Failures of the machine as the protocol's: what a person can act on reaches the caller in words. What is left is our
// mistake, and stays in the log.
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
import { stopped } from './errors.ts'

/** The same service, whose failures all say why. */
export function explaining<S extends object>(service: S): S {
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
  if (NOT_NOW.some((kind) => error instanceof kind)) return new CsiError('FAILED_PRECONDITION', error.message)
  if (error instanceof ProgramFailedError && error.program === 'umount' && /busy/.test(error.stderr)) {
    return new CsiError(
      'FAILED_PRECONDITION',
      `${stopped(error.stderr)} A process still has a file open there. End it first.`,
    )
  }
  return explainErrno(error as NodeJS.ErrnoException) ?? new CsiError('INTERNAL', stopped(error.message))
}

const NOT_NOW = [MissingToolError, NotBlankError, OccupiedError, FrozenError]

/** What the system says in five letters, as what it means for a volume. */
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
  EDQUOT: { code: 'RESOURCE_EXHAUSTED', says: 'cannot be written: the quota is used up', next: 'Raise it.' },
  EROFS: {
    code: 'FAILED_PRECONDITION',
    says: 'is on a file system that is read-only',
    next: 'Make it writable, or name another path.',
  },
  EEXIST: {
    code: 'FAILED_PRECONDITION',
    says: 'is there already and is something else',
    next: 'Remove it, or name another path.',
  },
  ENOTDIR: {
    code: 'FAILED_PRECONDITION',
    says: 'lies below something that is not a directory',
    next: 'Name another path.',
  },
  EISDIR: { code: 'FAILED_PRECONDITION', says: 'is a directory', next: 'Remove it, or name another path.' },
  ENOENT: { code: 'FAILED_PRECONDITION', says: 'is not there', next: 'Make the directory it lies in.' },
  ENAMETOOLONG: { code: 'INVALID_ARGUMENT', says: 'is too long a path', next: 'Name a shorter one.' },
  EACCES: {
    code: 'FAILED_PRECONDITION',
    says: 'is closed to the driver',
    next: 'Give it the right, or run it as root.',
  },
  EPERM: {
    code: 'FAILED_PRECONDITION',
    says: 'may not be changed by the driver',
    next: 'It may be marked immutable (lsattr), or need root.',
  },
  EIO: { code: 'INTERNAL', says: 'cannot be read or written: its disk reports errors', next: 'Check the disk.' },
}
