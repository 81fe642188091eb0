import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DUPLICATE_KEYS_MAX, findDuplicateKeys } from './duplicate-keys.ts'
import { countKeys } from './parse-json.ts'

describe('findDuplicateKeys', () => {
  it.each([
    ['{}', []],
    ['[]', []],
    ['"a"', []],
    ['{"a":1,"b":1}', []],
    ['{"a":{"x":1},"b":{"x":1}}', []],
    ['[{"a":1},{"a":1}]', []],
    ['{"a":"a","b":["a","a"]}', []],
    ['{"a":1,"a":2}', ['a']],
    ['{"a":1,"a":2,"a":3}', ['a']],
    ['{ "a" : 1 , "\\u0061" : 2 }', ['a']],
    ['{"spec":{"x":1,"y":[],"x":2}}', ['spec.x']],
    [
      '{"spec":{"containers":[{"name":"a","name":"b"},{},{"env":[[{"k":1,"k":1}]]}]}}',
      ['spec.containers[0].name', 'spec.containers[2].env[0][0].k'],
    ],
    ['{"spec":{"x":1},"spec":{"x":2}}', ['spec']],
    ['{"__proto__":1,"__proto__":2}', ['__proto__']],
    ['{"a,\\"b":1,"a,\\"b":2}', ['a,"b']],
  ])('given %j, returns the paths %j', (text, paths) => {
    expect(findDuplicateKeys(text)).toEqual(paths)
  })

  it('returns paths if and only if the text has more key-value pairs than the parsed value', () => {
    const text = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', ':', '"'), fc.jsonValue())).map((pairs) => {
      const members = pairs.map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`)
      return `{"spec": {${members.join(' , ')}}}`
    })
    fc.assert(
      fc.property(text, (json) => {
        expect(findDuplicateKeys(json).length > 0).toBe(countKeys(json) > countPairs(JSON.parse(json)))
      }),
    )
  })

  it('stops after DUPLICATE_KEYS_MAX duplicates', () => {
    const members = Array.from({ length: 1000 }, (_, i) => `"k${i}":0,"k${i}":1`)
    expect(findDuplicateKeys(`{${members}}`)).toHaveLength(DUPLICATE_KEYS_MAX)
  })
})

function countPairs(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const innerPairs = Object.values(value).reduce((sum: number, item) => sum + countPairs(item), 0)
  return Array.isArray(value) ? innerPairs : innerPairs + Object.keys(value).length
}
