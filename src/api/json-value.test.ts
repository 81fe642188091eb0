import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  exceedsDepth,
  getOwnProperty,
  type JsonObject,
  type JsonValue,
  jsonEquals,
  setOwnProperty,
} from './json-value.ts'

const json = (text: string): JsonObject => JSON.parse(text)
const anyJson = fc.jsonValue() as fc.Arbitrary<JsonValue>

describe('setOwnProperty and getOwnProperty', () => {
  it('treat inherited names as ordinary keys', () => {
    for (const key of ['a', '__proto__', 'constructor', 'toString']) {
      const object: Record<string, number> = {}
      expect(getOwnProperty(object, key)).toBeUndefined()
      setOwnProperty(object, key, 1)
      expect(getOwnProperty(object, key)).toBe(1)
      expect(JSON.stringify(object)).toBe(`{"${key}":1}`)
      expect(Object.getPrototypeOf(object)).toBe(Object.prototype)
    }
  })
})

describe('jsonEquals', () => {
  it('ignores key order, and detects differences in items, types and keys', () => {
    expect(jsonEquals(json('{"a":1,"b":[1,2]}'), json('{"b":[1,2],"a":1}'))).toBe(true)
    expect(jsonEquals([1, 2], [2, 1])).toBe(false)
    expect(jsonEquals({ a: 1 }, { a: 1, b: 2 })).toBe(false)
    expect(jsonEquals({ 0: 1 }, [1])).toBe(false)
    expect(jsonEquals([], {})).toBe(false)
    expect(jsonEquals(null, {})).toBe(false)
    expect(jsonEquals(0, '0')).toBe(false)
    expect(jsonEquals(json('{"__proto__":1}'), {})).toBe(false)
    expect(jsonEquals(json('{"toString":1}'), json('{"x":1}'))).toBe(false)
  })

  it('returns true for equal JSON texts, and false for texts of different lengths', () => {
    fc.assert(fc.property(anyJson, (value) => jsonEquals(value, json(JSON.stringify(value)))))
    fc.assert(
      fc.property(anyJson, anyJson, (a, b) => {
        if (JSON.stringify(a) === JSON.stringify(b)) expect(jsonEquals(a, b)).toBe(true)
        if (jsonEquals(a, b)) expect(JSON.stringify(a)).toHaveLength(JSON.stringify(b).length)
      }),
    )
  })
})

it('exceedsDepth counts nested objects and lists', () => {
  expect(exceedsDepth('a', 0)).toBe(false)
  expect(exceedsDepth([], 0)).toBe(true)
  expect(exceedsDepth([{ a: [] }, []], 3)).toBe(false)
  expect(exceedsDepth([{ a: [] }, []], 2)).toBe(true)
})
