import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonValue } from './json-value.ts'
import { printYaml, printYamlInSlices } from './print-yaml.ts'
import { parseYaml } from './yaml-body.ts'

const parseValue = async (text: string) => (await parseYaml(text)).value

describe('parseYaml', () => {
  it.each([
    ['', null],
    ['a: 1\nb: [x, "2", true, null, ~, 1.5]\n', { a: 1, b: ['x', '2', true, null, null, 1.5] }],
    ['{"a": {"b": [1, 2]}}', { a: { b: [1, 2] } }],
    ['{a: 1}', { a: 1 }],
    ['\n---\na: 1\n...\n', { a: 1 }],
    ['# comment\nkind: Pod # another\n', { kind: 'Pod' }],
    ['text: |\n  one\n  two\n', { text: 'one\ntwo\n' }],
    ['mode: 0644\nhex: 0x10\nyes: no\n', { mode: 644, hex: 16, yes: 'no' }],
    ['time: 2026-01-02T03:04:05Z\n', { time: '2026-01-02T03:04:05Z' }],
    ['1: a\ntrue: b\n', { '1': 'a', true: 'b' }],
    ['a: &x {k: 1}\nb: *x\nc: {<<: *x, l: 2}\n', { a: { k: 1 }, b: { k: 1 }, c: { k: 1, l: 2 } }],
    ['- a\n- b: 1\n', ['a', { b: 1 }]],
    ['%YAML 1.1\n---\na: 2026-01-02\nb: on\n', { a: '2026-01-02', b: 'on' }],
  ])('parses %j', async (text, value) => {
    expect(await parseValue(text)).toEqual(value)
    expect((await parseYaml(Buffer.from(text))).value).toEqual(value)
  })

  it('SYS-19 pauses between slices of a long body', async () => {
    let pauses = 0
    const pause = async () => void pauses++
    await parseYaml('a: 1\n', pause)
    expect(pauses).toBe(0)
    const lines = Array.from({ length: 2_400 }, (_, line) => `key-${line}: a\n`) // five tokens each
    expect(Object.keys((await parseYaml(lines.join(''), pause)).value!)).toHaveLength(2_400)
    expect(pauses).toBeGreaterThan(10)
  })

  it.each([
    ['a: [1', /^invalid YAML: .* at line 1, column \d+$/],
    ['a: 1\n b: 2', /^invalid YAML: .* at line \d+, column \d+$/],
    ['a: b: c', /at line 1/],
    ['a: 1\n---\nb: 2\n', 'the body contains more than one document'],
    ['a: !secret x', 'Unresolved tag: !secret at line 1, column 4'],
    ['a: !!binary aGk=', 'Unresolved tag'],
    ['? [a, b]\n: 1', 'the document has a key that is not a scalar'],
    ['x:\n  ? {a: 1}\n  : 1', 'x has a key that is not a scalar'],
    ['a: &k x\n*k : 1', 'the document has a key that is not a scalar'],
    ['a: .inf', 'Infinity is not a number in JSON'],
    ['a: .nan', 'NaN is not a number in JSON'],
    ['a: *nowhere', 'Unresolved alias'],
    ['{"a": 1,, }', /^invalid YAML: /],
    ['a: &a {b: *a}', 'invalid YAML: '],
  ])('SYS-10 rejects %j', async (text, message) => {
    await expect(parseYaml(text)).rejects.toThrow(message)
    await expect(parseYaml(text)).rejects.toHaveProperty('name', 'YamlError')
  })

  it.each(['a:\n  storage: 9007199254740993', '{"a":{"storage":9007199254740993}}', 'a: {storage: 0x20000000000001}'])(
    'SYS-10 rejects the number in %j, which would change',
    async (text) => {
      await expect(parseYaml(text)).rejects.toThrow(
        'the number in a.storage has more digits than can be stored exactly',
      )
    },
  )

  it('SYS-10 rejects bytes that are not UTF-8', async () => {
    await expect(parseYaml(Buffer.from([0x61, 0x3a, 0xff]))).rejects.toThrow('the body is not valid UTF-8')
  })

  it('SYS-10 rejects bodies with too many aliases, levels or tokens', async () => {
    const aliasLevels = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...[...'bcdefghi'].map((c, i) => `${c}: &${c} [${Array(9).fill(`*${'abcdefgh'[i]}`)}]`),
    ]
    await expect(parseYaml(aliasLevels.join('\n'))).rejects.toThrow('Excessive alias count')
    await expect(parseYaml(`- &a x\n${'- *a\n'.repeat(101)}`)).rejects.toThrow('more than 100 aliases')
    for (const opening of ['[', '{a: ', '- ', '? ', '[{a: [']) {
      await expect(parseYaml(opening.repeat(1_000))).rejects.toThrow('nested more than 100 levels deep')
    }
    await expect(parseYaml(`${'['.repeat(3_000)}${']'.repeat(3_000)}`)).rejects.toThrow(
      'nested more than 100 levels deep',
    )
    await expect(parseYaml('- a\n'.repeat(10_000))).rejects.toThrow('more than 20000 tokens; send it as JSON instead')
  })

  it('SYS-19 rejects long YAML with few tokens, but not long JSON', async () => {
    await expect(parseYaml(`a: b\n${'#\n'.repeat(600_000)}`)).rejects.toThrow('more than 524288 bytes; send it as JSON')
    expect(await parseValue(`{"a":"${'b'.repeat(2_000_000)}"}`)).toEqual({ a: 'b'.repeat(2_000_000) })
  })

  it('accepts a long text that has few tokens', async () => {
    const text = `data: |\n${'  line\n'.repeat(50_000)}`
    expect(await parseValue(text)).toEqual({ data: 'line\n'.repeat(50_000) })
  })

  it.each([
    ['a: 1\nb: 2\n', []],
    ['a: 1\na: 2\n', ['a']],
    ['{"a": 1, "a": 2}', ['a']],
    ['spec:\n  containers:\n  - name: x\n    name: y\n  x: {k: 1, "k": 2}\n', ['spec.containers[0].name', 'spec.x.k']],
    ['1: a\n"1": b\n', ['1']],
  ])('returns the duplicate keys in %j', async (text, duplicateKeys) => {
    expect((await parseYaml(text)).duplicateKeys).toEqual(duplicateKeys)
  })

  it('returns the last value of a duplicate key', async () => {
    expect(await parseValue('a: 1\na: 2\n')).toEqual({ a: 2 })
  })

  it('keeps __proto__ as an ordinary key', async () => {
    const value = (await parseValue('__proto__: {polluted: 1}\nconstructor: {prototype: {polluted: 1}}\n')) as object
    expect(Object.hasOwn(value, '__proto__')).toBe(true)
    expect({}).not.toHaveProperty('polluted')
  })
})

describe('printYaml', () => {
  it('prints sorted keys and unindented lists, as kubectl does', async () => {
    expect(await printYaml({ spec: { modes: ['a', 'b'] }, kind: 'Claim' })).toBe(
      'kind: Claim\nspec:\n  modes:\n  - a\n  - b\n',
    )
  })

  it('quotes strings that YAML 1.1 parsers would parse as other types', async () => {
    expect(await printYaml(['yes', '1e3', '0644', 'null', '12:30', ''])).toBe(
      ['- "yes"', '- "1e3"', '- "0644"', '- "null"', '- "12:30"', '- ""', ''].join('\n'),
    )
  })

  it('is the inverse of parseYaml', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (anyValue) => {
        const value: JsonValue = JSON.parse(JSON.stringify(anyValue)) // JSON has no negative zero
        expect(await parseValue(await printYaml(value))).toEqual(value)
      }),
    )
  })

  it('SYS-19 formats the same text in slices, with pauses', async () => {
    let pauses = 0
    const pause = async () => void pauses++
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 5 }), async (anyValue) => {
        const value: JsonValue = JSON.parse(JSON.stringify(anyValue))
        expect(await printYamlInSlices(value, pause, 3)).toBe(await printYaml(value))
      }),
    )
    pauses = 0
    const keys = Array.from({ length: 5_000 }, (_, index) => [`k${index}`, 'a\n\n b\n'])
    const value = { kind: 'ConfigMap', data: Object.fromEntries(keys), metadata: { finalizers: keys.map(String) } }
    expect(await printYamlInSlices(value, pause)).toBe(await printYaml(value))
    expect(pauses).toBeGreaterThan(35)
  })

  it('repeats shared objects instead of aliasing them', async () => {
    const sharedObject = { a: 1 }
    expect(await printYaml([sharedObject, sharedObject])).toBe('- a: 1\n- a: 1\n')
  })
})
