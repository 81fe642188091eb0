import { describe, expect, it } from 'vitest'
import { formatOutput, loadValueFormatter } from './format-output.ts'

describe('formatOutput', () => {
  it('SYS-12 returns text, JSON on one line, or YAML with the same fields', async () => {
    const value = { name: 'a', left: undefined, list: [1] }
    expect(await formatOutput('text', value, () => 'text\n')).toBe('text\n')
    expect(await formatOutput('json', value, () => 'text\n')).toBe('{"name":"a","list":[1]}\n')
    expect(await formatOutput('yaml', value, () => 'text\n')).toBe('list:\n- 1\nname: a\n')
  })

  it('SYS-12 starts each YAML document of a stream with ---', async () => {
    const format = (await loadValueFormatter('yaml', { isStream: true }))!
    expect(format({ a: 1 }) + format({ b: 2 })).toBe('---\na: 1\n---\nb: 2\n')
  })
})
