import { describe, expect, it } from 'vitest'
import { CsiError } from '../csi/errors.ts'
import { FileTooLargeError, FrozenError, OccupiedError, ProgramFailedError } from '../host/index.ts'
import { toCsiError } from './to-csi-error.ts'

const describeError = (error: unknown) => {
  const csiError = toCsiError(error)
  return csiError instanceof CsiError ? `${csiError.codeName}: ${csiError.message}` : csiError
}
const errno = (code: string) => Object.assign(new Error(code), { code, path: '/some/path', syscall: 'mkdir' })

describe('toCsiError', () => {
  it.each([
    ['ENOSPC', /^RESOURCE_EXHAUSTED: \/some\/path cannot be written: its disk is full \(mkdir: ENOSPC\)\. Delete/],
    ['EFBIG', /^OUT_OF_RANGE: \/some\/path cannot have this size: its file system or a limit/],
    ['EEXIST', /^FAILED_PRECONDITION: \/some\/path already exists/],
    ['EROFS', /^FAILED_PRECONDITION: \/some\/path is on a file system that is read-only/],
    ['ENAMETOOLONG', /^INVALID_ARGUMENT/],
    ['EXOTIC', /^INTERNAL: EXOTIC\.$/],
  ])('translates %s to a CSI code and a message', (code, pattern) => {
    expect(describeError(errno(code))).toMatch(pattern)
  })

  it('translates OccupiedError and FrozenError to FAILED_PRECONDITION', () => {
    expect(describeError(new OccupiedError('Occupied.'))).toBe('FAILED_PRECONDITION: Occupied.')
    expect(describeError(new FrozenError('Frozen.'))).toBe('FAILED_PRECONDITION: Frozen.')
  })

  it('translates FileTooLargeError to OUT_OF_RANGE', () => {
    expect(describeError(new FileTooLargeError('Too large.'))).toBe('OUT_OF_RANGE: Too large.')
  })

  it('translates a busy umount to FAILED_PRECONDITION, with its stderr as a sentence and advice', () => {
    const busyError = new ProgramFailedError(['umount', '/x'], {
      code: 32,
      stderr: 'target is busy\n',
      reason: 'exited with 32',
    })
    expect(describeError(busyError)).toBe(
      'FAILED_PRECONDITION: target is busy. A process has a file open there. Stop it first.',
    )
  })

  it('does not translate programming errors', () => {
    const programmingError = new TypeError('x is not a function')
    expect(toCsiError(programmingError)).toBe(programmingError)
  })
})
