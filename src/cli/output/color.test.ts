import { describe, expect, it } from 'vitest'
import { canShowColors, paint } from './color.ts'

describe('color', () => {
  it('SYS-12 is shown on a terminal only, and not with --no-color or NO_COLOR', () => {
    const terminal = { env: {}, stdout: { isTTY: true } }
    expect(canShowColors(true, terminal)).toBe(true)
    expect(canShowColors(false, terminal)).toBe(false)
    expect(canShowColors(true, { ...terminal, env: { NO_COLOR: '1' } })).toBe(false)
    expect(canShowColors(true, { ...terminal, stdout: {} })).toBe(false)
    expect(paint('x', 'red', true)).toBe('\u001b[31mx\u001b[0m')
    expect(paint('x', 'red', false)).toBe('x')
  })
})
