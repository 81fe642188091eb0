import { describe, expect, it } from 'vitest'
import { ApiError } from '../../api/status-error.ts'
import { CsiError } from '../../csi/errors.ts'
import { logTo } from './log.ts'

function logError(error: unknown): { err: Record<string, unknown> } {
  let line = ''
  logTo(
    {
      write: (text) => {
        line += text
      },
    },
    'info',
  ).warn({ err: error }, 'it failed')
  return JSON.parse(line)
}

describe('the log', () => {
  it('SYS-11 logs errors of a server or driver with their code and without a stack trace', () => {
    expect(logError(new ApiError(403, 'Forbidden', 'not for you')).err).toEqual({
      type: 'ApiError',
      message: 'not for you',
      code: 403,
      reason: 'Forbidden',
    })
    expect(logError(new CsiError('RESOURCE_EXHAUSTED', 'the pool is full')).err).toEqual({
      type: 'CsiError',
      message: 'the pool is full',
      code: 'ResourceExhausted',
    })
  })

  it('SYS-11 logs unexpected errors with a stack trace, and a thrown string unchanged', () => {
    const { err } = logError(new TypeError('x is not a function'))
    expect(err).toMatchObject({ type: 'TypeError', message: 'x is not a function' })
    expect(err.stack).toContain('log.test.ts')
    expect(logError('a text').err).toBe('a text')
  })
})
