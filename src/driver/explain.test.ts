import { describe, expect, it } from 'vitest'
import { CsiError } from '../csi/errors.ts'
import { FrozenError, OccupiedError, ProgramFailedError } from '../host/index.ts'
import { sentence, sizeText, stopped } from './errors.ts'
import { explain } from './explain.ts'

const said = (error: unknown) => {
  const explained = explain(error)
  return explained instanceof CsiError ? `${explained.codeName}: ${explained.message}` : explained
}
const errno = (code: string) => Object.assign(new Error(code), { code, path: '/some/path', syscall: 'mkdir' })

describe('failures of the machine', () => {
  it.each([
    ['ENOSPC', /^RESOURCE_EXHAUSTED: \/some\/path cannot be written: its disk is full \(mkdir: ENOSPC\)\. Delete/],
    ['EEXIST', /^FAILED_PRECONDITION: \/some\/path is there already/],
    ['EROFS', /^FAILED_PRECONDITION: \/some\/path is on a file system that is read-only/],
    ['ENAMETOOLONG', /^INVALID_ARGUMENT/],
    ['EXOTIC', /^INTERNAL: EXOTIC\.$/],
  ])('SYS-6 %s is said in words, with the code it means', (code, words) => {
    expect(said(errno(code))).toMatch(words)
  })

  it('SYS-6 what others have mounted or frozen is for them to undo', () => {
    expect(said(new OccupiedError('There.'))).toBe('FAILED_PRECONDITION: There.')
    expect(said(new FrozenError('Cold.'))).toBe('FAILED_PRECONDITION: Cold.')
  })

  it('SYS-6 a complaint of a program ends as a sentence does', () => {
    const busy = new ProgramFailedError(['umount', '/x'], {
      code: 32,
      stderr: 'target is busy\n',
      how: 'ended with 32',
    })
    expect(said(busy)).toBe('FAILED_PRECONDITION: target is busy. A process still has a file open there. End it first.')
  })

  it('SYS-6 our own mistakes are not explained away', () => {
    const mistake = new TypeError('x is not a function')
    expect(explain(mistake)).toBe(mistake)
  })
})

it('SYS-6 amounts have a unit, and sentences one full stop', () => {
  expect([0, 777, 300 * 1_048_576].map(sizeText)).toEqual(['0 bytes', '777 bytes', '300Mi'])
  expect(['is limited.', 'is limited', 'is limited..\n'].map(stopped)).toEqual(Array(3).fill('is limited.'))
  expect(sentence('the driver may not')).toBe('The driver may not.')
})
