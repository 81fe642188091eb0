import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isExactNumber } from './exact-number.ts'
import { countKeys, decodeJson, JSON_DEPTH_MAX, parseJson } from './parse-json.ts'

const bytesOf = (text: string) => new TextEncoder().encode(text)
const nestedLists = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

describe('parseJson', () => {
  it('agrees with JSON.parse on texts without inexact numbers, as text and as bytes', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseJson(text)).toEqual(JSON.parse(text))
        expect(parseJson(bytesOf(text))).toEqual(JSON.parse(text))
      }),
    )
  })

  it('SYS-10 rejects the texts that JSON.parse rejects, with a position, and texts with inexact numbers', () => {
    const almostJson = fc
      .tuple(
        fc.json(),
        fc.nat(),
        fc.nat({ max: 2 }),
        fc.string({ maxLength: 2, unit: fc.constantFrom(...'{}[],:"\\ \n0-.etu') }),
      )
      .map(
        ([text, offset, deletedCount, inserted]) =>
          text.slice(0, offset % (text.length + 1)) +
          inserted +
          text.slice((offset % (text.length + 1)) + deletedCount),
      )
    fc.assert(
      fc.property(almostJson, (text) => {
        let isValid = true
        try {
          JSON.parse(text)
        } catch {
          isValid = false
        }
        if (isValid && hasExactNumbers(text)) expect(parseJson(text)).toEqual(JSON.parse(text))
        else if (isValid) expect(() => parseJson(text)).toThrow(/more digits than can be stored exactly/)
        else expect(() => parseJson(text)).toThrow(/^invalid JSON: .* at line \d+, column \d+ \(offset \d+\)/)
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    ['', 'expected a value but found the end of the text at line 1, column 1 (offset 0)'],
    ['{"a":1,}', 'expected a key but found "}" at line 1, column 8 (offset 7)'],
    ['{\n  "a": 1\n  "b": 2\n}', "expected ',' or '}' but found \"\\\"\" at line 3, column 3 (offset 13)"],
    ['[1,]', 'expected a value but found "]" at line 1, column 4 (offset 3)'],
    ['{"a" 1}', 'expected \':\' but found "1" at line 1, column 6 (offset 5)'],
    ['{a:1}', 'expected a key or \'}\' but found "a" at line 1, column 2 (offset 1)'],
    ['[1}', "expected ',' or ']' but found \"}\" at line 1, column 3 (offset 2)"],
    ['1 2', 'expected the end of the text but found "2" at line 1, column 3 (offset 2)'],
    ['[01]', "expected ',' or ']' but found \"1\" at line 1, column 3 (offset 2)"],
    ['"abc', 'unterminated string that starts at line 1, column 1 (offset 0)'],
    ['"a\\x"', 'invalid escape sequence at line 1, column 3 (offset 2)'],
    ['"a\tb"', 'unescaped control character at line 1, column 3 (offset 2)'],
    ['\ufeff{}', 'expected a value but found "\ufeff" at line 1, column 1 (offset 0)'],
  ])('SYS-10 explains the error in %j', (text, reason) => {
    expect(() => parseJson(text)).toThrow(`invalid JSON: ${reason}`)
  })

  it.each([
    ['{"storage":9007199254740993}', 'line 1, column 12 (offset 11)'],
    ['{"ä":"9007199254740993",\n"b":[1,-18446744073709551615]}', 'line 2, column 9 (offset 33)'],
    ['[1e400]', 'line 1, column 2 (offset 1)'],
    ['1E-400', 'line 1, column 1 (offset 0)'],
  ])('SYS-10 rejects a number that would change in %j', (text, position) => {
    const reason = `the number at ${position} has more digits than can be stored exactly; send a quantity as a string`
    expect(() => parseJson(text)).toThrow(reason)
    expect(() => parseJson(bytesOf(text))).toThrow(reason)
  })

  it('accepts large numbers that do not change, and any digits in strings', () => {
    const text = '{"a":9007199254740991,"b":10000000000000000,"c":0.30000000000000004,"d":"9007199254740993","e":1e22}'
    expect(parseJson(text)).toEqual(JSON.parse(text))
  })

  it('quotes neither strings nor words of the body', () => {
    expect(() => parseJson('{"password": "hunter2" oops}')).not.toThrow(/hunter2|oops/)
  })

  it('SYS-10 rejects bytes that are not UTF-8, with their position', () => {
    const body = Buffer.concat([bytesOf('{"ä":"'), Buffer.from([0xff]), bytesOf('€"}')])
    expect(() => parseJson(body)).toThrow('the body is not valid UTF-8 at byte 7')
    expect(() => parseJson(Buffer.from([0x22, 0xc3, 0x22]))).toThrow('at byte 1')
  })

  it('SYS-10 rejects deep nesting before it can overflow the stack', () => {
    expect(parseJson(nestedLists(JSON_DEPTH_MAX))).toBeDefined()
    expect(() => parseJson(nestedLists(JSON_DEPTH_MAX + 1))).toThrow(`nested more than ${JSON_DEPTH_MAX} levels deep`)
    expect(() => parseJson('{"a":'.repeat(2_000_000))).toThrow('nested more than')
    expect(() => parseJson('[[1]]', { depthMax: 1 })).toThrow('nested more than 1 levels deep')
  })

  it('ignores brackets in strings and siblings when it measures depth', () => {
    expect(parseJson(JSON.stringify('['.repeat(5000)))).toHaveLength(5000)
    expect(parseJson(`[${Array(5000).fill('[]').join()}]`)).toHaveLength(5000)
    expect(parseJson('["\\\\","\\"[[["]', { depthMax: 1 })).toEqual(['\\', '"[[['])
  })

  it('keeps __proto__ as an ordinary key', () => {
    const value = parseJson('{"__proto__":{"polluted":true},"constructor":1}') as object
    expect(Object.hasOwn(value, '__proto__')).toBe(true)
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect({}).not.toHaveProperty('polluted')
  })
})

describe('countKeys', () => {
  it('returns the number of pairs in the value if there are no duplicates', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, null, 1)
        expect(countKeys(text)).toBe(countPairs(value))
        expect(decodeJson(bytesOf(text)).keyCount).toBe(countPairs(value))
      }),
    )
  })

  it('returns a larger number if there are duplicates', () => {
    const text = '{"a":":","b":{"c":1,"c":2},"a":3}'
    const { value, keyCount } = decodeJson(text)
    expect([countKeys(text), keyCount]).toEqual([5, 5])
    expect(countPairs(value)).toBe(3)
  })
})

const hasExactNumbers = (text: string): boolean =>
  (text.replace(/"(\\.|[^"\\])*"/g, '').match(/[0-9][0-9.eE+-]*/g) ?? []).every(isExactNumber)

function countPairs(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const innerPairs = Object.values(value).reduce((sum: number, item) => sum + countPairs(item), 0)
  return Array.isArray(value) ? innerPairs : innerPairs + Object.keys(value).length
}
