import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JSON_DEPTH_MAX } from '../json-scan.ts'
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, jsonEquals } from '../json-value.ts'
import { applyJsonPatch, formatPointer, parsePointer } from './json-patch.ts'

const json = (text: string): JsonValue => JSON.parse(text)

describe('applyJsonPatch', () => {
  // RFC 6902, appendix A, then our own
  it.each([
    [
      'A.1 adds an object member',
      '{"foo":"bar"}',
      '[{"op":"add","path":"/baz","value":"qux"}]',
      '{"foo":"bar","baz":"qux"}',
    ],
    [
      'A.2 adds a list item',
      '{"foo":["bar","baz"]}',
      '[{"op":"add","path":"/foo/1","value":"qux"}]',
      '{"foo":["bar","qux","baz"]}',
    ],
    ['A.3 removes an object member', '{"baz":"qux","foo":"bar"}', '[{"op":"remove","path":"/baz"}]', '{"foo":"bar"}'],
    [
      'A.4 removes a list item',
      '{"foo":["bar","qux","baz"]}',
      '[{"op":"remove","path":"/foo/1"}]',
      '{"foo":["bar","baz"]}',
    ],
    [
      'A.5 replaces a value',
      '{"baz":"qux","foo":"bar"}',
      '[{"op":"replace","path":"/baz","value":"boo"}]',
      '{"baz":"boo","foo":"bar"}',
    ],
    [
      'A.6 moves a value',
      '{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}',
      '[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]',
      '{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}',
    ],
    [
      'A.7 moves a list item',
      '{"foo":["all","grass","cows","eat"]}',
      '[{"op":"move","from":"/foo/1","path":"/foo/3"}]',
      '{"foo":["all","cows","eat","grass"]}',
    ],
    [
      'A.8 tests values',
      '{"baz":"qux","foo":["a",2,"c"]}',
      '[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]',
      '{"baz":"qux","foo":["a",2,"c"]}',
    ],
    [
      'A.10 adds a nested object',
      '{"foo":"bar"}',
      '[{"op":"add","path":"/child","value":{"grandchild":{}}}]',
      '{"foo":"bar","child":{"grandchild":{}}}',
    ],
    [
      'A.11 ignores unknown members',
      '{"foo":"bar"}',
      '[{"op":"add","path":"/baz","value":"qux","xyz":123}]',
      '{"foo":"bar","baz":"qux"}',
    ],
    ['A.14 escapes ~ and /', '{"/":9,"~1":10}', '[{"op":"test","path":"/~01","value":10}]', '{"/":9,"~1":10}'],
    [
      'A.16 adds a list to a list',
      '{"foo":["bar"]}',
      '[{"op":"add","path":"/foo/-","value":["abc","def"]}]',
      '{"foo":["bar",["abc","def"]]}',
    ],
    ['add replaces a member that exists', '{"a":1}', '[{"op":"add","path":"/a","value":2}]', '{"a":2}'],
    ['add may append by index', '{"a":[1]}', '[{"op":"add","path":"/a/1","value":2}]', '{"a":[1,2]}'],
    [
      'add and replace may take the whole document',
      '{"a":1}',
      '[{"op":"add","path":"","value":[]},{"op":"replace","path":"","value":{"b":1}}]',
      '{"b":1}',
    ],
    ['an empty key is a key', '{"":{"":1}}', '[{"op":"replace","path":"//","value":2}]', '{"":{"":2}}'],
    ['a key may look like an index', '{"0":"a"}', '[{"op":"replace","path":"/0","value":"b"}]', '{"0":"b"}'],
    [
      'null is a value',
      '{"a":1}',
      '[{"op":"replace","path":"/a","value":null},{"op":"test","path":"/a","value":null}]',
      '{"a":null}',
    ],
    [
      'testing for null finds absence',
      '{}',
      '[{"op":"test","path":"/a","value":null},{"op":"add","path":"/a","value":1}]',
      '{"a":1}',
    ],
    [
      'tests ignore the order of keys',
      '{"a":{"x":1,"y":2}}',
      '[{"op":"test","path":"/a","value":{"y":2,"x":1}}]',
      '{"a":{"x":1,"y":2}}',
    ],
    ['moving to the same path changes nothing', '{"a":1}', '[{"op":"move","from":"/a","path":"/a"}]', '{"a":1}'],
    [
      'copies are independent',
      '{"a":{"x":1}}',
      '[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/b/x","value":2}]',
      '{"a":{"x":1},"b":{"x":2}}',
    ],
    [
      'a value added twice is independent of the patch and of itself',
      '{}',
      '[{"op":"add","path":"/a","value":{"x":1}},{"op":"add","path":"/a/y","value":2},{"op":"move","from":"/a","path":"/b"}]',
      '{"b":{"x":1,"y":2}}',
    ],
    [
      'a finalizer is removed the way external-attacher does it',
      '{"metadata":{"finalizers":["kubernetes.io/pv-protection","external-attacher/csi"]}}',
      '[{"op":"replace","path":"/metadata/finalizers","value":["kubernetes.io/pv-protection"]}]',
      '{"metadata":{"finalizers":["kubernetes.io/pv-protection"]}}',
    ],
    [
      'inherited names are ordinary keys',
      '{}',
      '[{"op":"add","path":"/__proto__","value":{"a":1}},{"op":"add","path":"/__proto__/b","value":2},{"op":"copy","from":"/__proto__","path":"/constructor"},{"op":"remove","path":"/__proto__"}]',
      '{"constructor":{"a":1,"b":2}}',
    ],
  ])('%s', (_, document, patch, result) => {
    const given = json(document)
    expect(JSON.stringify(applyJsonPatch(given, json(patch)))).toBe(result)
    expect(given).toEqual(json(document))
  })

  it.each([
    [
      'A.9 a failed test',
      '{"baz":"qux"}',
      '[{"op":"test","path":"/baz","value":"bar"}]',
      'operation 0 (test "/baz"): the value differs',
    ],
    [
      'A.12 adding to an absent container',
      '{"foo":"bar"}',
      '[{"op":"add","path":"/baz/bat","value":"qux"}]',
      'operation 0 (add "/baz/bat"): there is no "baz"',
    ],
    [
      'A.15 a number is not its text',
      '{"/":9,"~1":10}',
      '[{"op":"test","path":"/~01","value":"10"}]',
      'operation 0 (test "/~01"): the value differs',
    ],
    ['removing an absent value', '{}', '[{"op":"remove","path":"/a"}]', 'operation 0 (remove "/a"): there is no "a"'],
    ['replacing an absent value', '{}', '[{"op":"replace","path":"/a","value":1}]', 'there is no "a"'],
    [
      'copying an absent value',
      '{}',
      '[{"op":"copy","from":"/a","path":"/b"}]',
      'operation 0 (copy "/a" to "/b"): there is no "a"',
    ],
    ['moving an absent value', '{}', '[{"op":"move","from":"/a","path":"/a"}]', 'there is no "a"'],
    ['testing an absent value', '{}', '[{"op":"test","path":"/a","value":1}]', 'there is no "a"'],
    ['testing an inherited member', '{}', '[{"op":"test","path":"/toString","value":1}]', 'there is no "toString"'],
    [
      'polluting the prototype',
      '{}',
      '[{"op":"add","path":"/__proto__/polluted","value":1}]',
      'there is no "__proto__"',
    ],
    [
      'stepping into a text',
      '{"a":"b"}',
      '[{"op":"add","path":"/a/b","value":1}]',
      'there is no "b": what should contain it is not an object or list',
    ],
    [
      'stepping into a text to read',
      '{"a":"b"}',
      '[{"op":"test","path":"/a/length","value":1}]',
      'what should contain it is not an object or list',
    ],
    [
      'an index past the end',
      '{"a":[1]}',
      '[{"op":"add","path":"/a/2","value":1}]',
      'there is no item 2 in a list of 1',
    ],
    ['removing after the last', '{"a":[1]}', '[{"op":"remove","path":"/a/1"}]', 'there is no item 1 in a list of 1'],
    [
      'an index with a leading zero',
      '{"a":[1,2]}',
      '[{"op":"remove","path":"/a/01"}]',
      '"01" is not an index of a list',
    ],
    ['a negative index', '{"a":[1,2]}', '[{"op":"remove","path":"/a/-1"}]', '"-1" is not an index of a list'],
    ['removing "-"', '{"a":[1,2]}', '[{"op":"remove","path":"/a/-"}]', '"-" is not an index of a list'],
    ['removing the document', '{}', '[{"op":"remove","path":""}]', 'the whole document cannot be removed'],
    [
      'moving into itself',
      '{"a":{"b":1}}',
      '[{"op":"move","from":"/a","path":"/a/b"}]',
      'a value cannot be moved into itself',
    ],
    [
      'the second operation of two',
      '{"a":1}',
      '[{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}]',
      'operation 1 (remove "/a"): there is no "a"',
    ],
  ])('SYS-10 rejects %s', (_, document, patch, because) => {
    const given = json(document)
    expect(() => applyJsonPatch(given, json(patch))).toThrow(
      expect.objectContaining({ failure: 'inapplicable', message: expect.stringContaining(because) }),
    )
    expect(given).toEqual(json(document))
  })

  it.each([
    ['{}', 'a JSON patch must be a list of operations'],
    ['[1]', 'operation 0: an operation must be an object'],
    ['[{"path":"/a"}]', 'operation 0: "op" must be one of add, remove, replace, move, copy, test, not nothing'],
    ['[{"op":"spam","path":"/a"}]', 'not "spam"'],
    ['[{"op":"remove"}]', 'operation 0: "path" must be a string'],
    ['[{"op":"add","path":"/a"}]', 'operation 0: "value" is missing, and "add" needs one'],
    ['[{"op":"copy","path":"/a"}]', 'operation 0: "from" must be a string'],
    ['[{"op":"remove","path":"a"}]', '"path" must be a JSON pointer, empty or starting with "/", not "a"'],
    ['[{"op":"remove","path":"/a~2"}]', '"path" must be a JSON pointer'],
  ])('SYS-10 rejects %s as malformed', (patch, because) => {
    expect(() => applyJsonPatch({}, json(patch))).toThrow(
      expect.objectContaining({ failure: 'malformed', message: expect.stringContaining(because) }),
    )
  })

  it('bounds the number of operations', () => {
    const patch = Array(3).fill({ op: 'test', path: '', value: {} })
    expect(applyJsonPatch({}, patch, { operationsMax: 3 })).toEqual({})
    expect(() => applyJsonPatch({}, patch, { operationsMax: 2 })).toThrow(
      'the patch has 3 operations, and the allowed maximum in a JSON patch is 2',
    )
  })

  it('bounds the total size of copies', () => {
    const doubling = Array(40).fill({ op: 'copy', from: '/a', path: '/a/-' })
    expect(() => applyJsonPatch({ a: ['x'] }, doubling)).toThrow(
      'copying would add more than the allowed 3145728 bytes',
    )
  })

  it('bounds the depth of the result', () => {
    const nest = JSON.parse('['.repeat(JSON_DEPTH_MAX - 1) + ']'.repeat(JSON_DEPTH_MAX - 1))
    const doubling = Array(60).fill({ op: 'copy', from: '', path: '/0' })
    expect(() => applyJsonPatch([], doubling)).toThrow(/nested more than|copying would add/)
    const path = `/a${'/0'.repeat(JSON_DEPTH_MAX - 2)}/0`
    expect(() => applyJsonPatch({ a: nest }, [{ op: 'add', path, value: nest }])).toThrow('nested more than')
  })

  it('applies thousands of operations to a large object without modifying it', () => {
    const labels = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, 'v']))
    const patch = Object.keys(labels).map((key) => ({ op: 'replace', path: `/labels/${key}`, value: 'w' }))
    const result = applyJsonPatch({ labels }, patch) as { labels: typeof labels }
    expect(new Set(Object.values(result.labels))).toEqual(new Set(['w']))
    expect(new Set(Object.values(labels))).toEqual(new Set(['v']))
  })

  it('transforms any document into any other without modifying the first', () => {
    fc.assert(
      fc.property(anyJson, anyJson, (from, to) => {
        const before = JSON.stringify(from)
        expect(applyJsonPatch(from, difference(from, to))).toEqual(to)
        expect(JSON.stringify(from)).toBe(before)
      }),
    )
  })
})

describe('pointers', () => {
  it('are preserved by formatting and parsing', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom('a', '/', '~', '0', '1') })), (path) => {
        expect(parsePointer(formatPointer(path))).toEqual(path)
      }),
    )
  })
})

const anyJson = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>

/** A patch that walks both documents and uses add, remove, replace and test. */
function difference(from: JsonValue, to: JsonValue, path: string[] = []): JsonObject[] {
  const at = (key: string | number) => formatPointer([...path, String(key)])
  if (isJsonObject(from) && isJsonObject(to)) {
    return [
      ...Object.keys(from)
        .filter((key) => !Object.hasOwn(to, key))
        .map((key) => ({ op: 'remove', path: at(key) })),
      ...Object.keys(to).flatMap((key) =>
        Object.hasOwn(from, key)
          ? difference(from[key]!, to[key]!, [...path, key])
          : [{ op: 'add', path: at(key), value: to[key]! }],
      ),
    ]
  }
  if (isJsonArray(from) && isJsonArray(to)) {
    const shared = Math.min(from.length, to.length)
    return [
      ...from.slice(shared).map(() => ({ op: 'remove', path: at(shared) })),
      ...to.slice(shared).map((value) => ({ op: 'add', path: at('-'), value })),
      ...to.slice(0, shared).flatMap((value, i) => difference(from[i]!, value, [...path, String(i)])),
    ]
  }
  const place = formatPointer(path)
  return jsonEquals(from, to) ? [{ op: 'test', path: place, value: to }] : [{ op: 'replace', path: place, value: to }]
}
