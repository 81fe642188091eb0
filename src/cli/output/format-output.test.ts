import { describe, expect, it } from 'vitest'
import { canShowColors, paint } from './color.ts'
import { formatOutput, loadValueFormatter } from './format-output.ts'

describe('output', () => {
  it('SYS-12 is text, JSON on one line, or YAML with the same fields', async () => {
    const value = { name: 'a', left: undefined, list: [1] }
    expect(await formatOutput('text', value, () => 'text\n')).toBe('text\n')
    expect(await formatOutput('json', value, () => 'text\n')).toBe('{"name":"a","list":[1]}\n')
    expect(await formatOutput('yaml', value, () => 'text\n')).toBe('list:\n- 1\nname: a\n')
  })

  it('SYS-12 separates the YAML documents of a stream', async () => {
    const format = (await loadValueFormatter('yaml', { isStream: true }))!
    expect(format({ a: 1 }) + format({ b: 2 })).toBe('---\na: 1\n---\nb: 2\n')
  })

  it('SYS-12 has colors on a terminal only, and none with --no-color or NO_COLOR', () => {
    const terminal = { env: {}, stdout: { isTTY: true } }
    expect(canShowColors(true, terminal)).toBe(true)
    expect(canShowColors(false, terminal)).toBe(false)
    expect(canShowColors(true, { ...terminal, env: { NO_COLOR: '1' } })).toBe(false)
    expect(canShowColors(true, { ...terminal, stdout: {} })).toBe(false)
    expect(paint('x', 'red', true)).toBe('\u001b[31mx\u001b[0m')
    expect(paint('x', 'red', false)).toBe('x')
  })
})
