import { describe, expect, it } from 'vitest'
import { formatLogLine } from './log-text.ts'

const TIME = '2026-11-16T09:29:47.247Z'
const format = (entry: object) => formatLogLine(`${JSON.stringify({ level: 'info', time: TIME, ...entry })}\n`)

describe('formatLogLine', () => {
  it('formats time, level, message and fields as one line', () => {
    expect(format({ driver: 'a.example', nodes: ['n 1'], msg: 'CSI driver found' })).toMatch(
      /^\d\d:\d\d:47 info {3}CSI driver found {2}driver=a\.example nodes=\["n 1"\]\n$/,
    )
    expect(format({ reason: 'it is "gone"', msg: 'retrying' })).toContain('reason="it is \\"gone\\""')
  })

  it('adds the message of an error to the line, and its stack below it', () => {
    expect(
      format({
        level: 'error',
        err: { type: 'Error', message: 'no room', stack: 'Error: no room\n    at x' },
        msg: 'failed',
      }),
    ).toMatch(/ error {2}failed: no room\nError: no room\n {4}at x\n$/)
    expect(format({ level: 'warn', err: { type: 'ApiError', message: 'gone', code: 410 }, msg: 'failed' })).toMatch(
      / warn {3}failed: gone\n$/,
    )
  })

  it('returns a line unchanged if it is not a JSON object', () => {
    expect(formatLogLine('plain\n')).toBe('plain\n')
    expect(formatLogLine('3\n')).toBe('3\n')
  })
})
