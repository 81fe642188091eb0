import { describe, expect, it } from 'vitest'
import { CsiError } from '../csi/errors.ts'
import { FrozenError, OccupiedError, ProgramFailedError } from '../host/index.ts'
import { asSentence, sizeText, withFullStop } from './errors.ts'
import { explain } from './explain.ts'

const said = (error: unknown) => {
  const explained = explain(error)
  return explained instanceof CsiError ? `${explained.codeName}: ${explained.message}` : explained
}
const errno = (code: string) => Object.assign(new Error(code), { code, path: '/some/path', syscall: 'mkdir' })

describe('explain', () => {
  it.each([
    ['ENOSPC', /^RESOURCE_EXHAUSTED: \/some\/path cannot be written: its disk is full \(mkdir: ENOSPC\)\. Delete/],
    ['EEXIST', /^FAILED_PRECONDITION: \/some\/path already exists/],
    ['EROFS', /^FAILED_PRECONDITION: \/some\/path is on a file system that is read-only/],
    ['ENAMETOOLONG', /^INVALID_ARGUMENT/],
    ['EXOTIC', /^INTERNAL: EXOTIC\.$/],
  ])('SYS-6 translates %s to a CSI code and a message', (code, words) => {
    expect(said(errno(code))).toMatch(words)
  })

  it('SYS-6 reports foreign mounts and freezes as FAILED_PRECONDITION', () => {
    expect(said(new OccupiedError('There.'))).toBe('FAILED_PRECONDITION: There.')
    expect(said(new FrozenError('Cold.'))).toBe('FAILED_PRECONDITION: Cold.')
  })

  it('SYS-6 ends the stderr of a program with a full stop', () => {
    const busy = new ProgramFailedError(['umount', '/x'], {
      code: 32,
      stderr: 'target is busy\n',
      reason: 'exited with 32',
    })
    expect(said(busy)).toBe('FAILED_PRECONDITION: target is busy. A process has a file open there. Stop it first.')
  })

  it('SYS-6 does not translate programming errors', () => {
    const mistake = new TypeError('x is not a function')
    expect(explain(mistake)).toBe(mistake)
  })
})

it('SYS-6 formats sizes with a unit, and sentences with one full stop', () => {
  expect([0, 777, 300 * 1_048_576].map(sizeText)).toEqual(['0 bytes', '777 bytes', '300Mi'])
  expect(['is limited.', 'is limited', 'is limited..\n'].map(withFullStop)).toEqual(Array(3).fill('is limited.'))
  expect(asSentence('the driver may not')).toBe('The driver may not.')
})
