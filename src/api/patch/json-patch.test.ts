import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRecord } from '../decode.ts'
import { isJsonArray, type JsonObject, type JsonValue, jsonEquals } from '../json-value.ts'
import { JSON_DEPTH_MAX } from '../parse-json.ts'
import { applyJsonPatch, formatPointer, parsePointer } from './json-patch.ts'

const json = (text: string): JsonValue => JSON.parse(text)

describe('applyJsonPatch', () => {
  // Examples of RFC 6902, appendix A, followed by further cases.
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
    ['A.14 unescapes ~1 before ~0', '{"/":9,"~1":10}', '[{"op":"test","path":"/~01","value":10}]', '{"/":9,"~1":10}'],
    [
      'A.16 adds a list to a list',
      '{"foo":["bar"]}',
      '[{"op":"add","path":"/foo/-","value":["abc","def"]}]',
      '{"foo":["bar",["abc","def"]]}',
    ],
    ['replaces an existing member by add', '{"a":1}', '[{"op":"add","path":"/a","value":2}]', '{"a":2}'],
    [
      'add appends an item at the index after the last',
      '{"a":[1]}',
      '[{"op":"add","path":"/a/1","value":2}]',
      '{"a":[1,2]}',
    ],
    [
      'add and replace can replace the whole document',
      '{"a":1}',
      '[{"op":"add","path":"","value":[]},{"op":"replace","path":"","value":{"b":1}}]',
      '{"b":1}',
    ],
    ['replaces the value of an empty key', '{"":{"":1}}', '[{"op":"replace","path":"//","value":2}]', '{"":{"":2}}'],
    ['sets an absent key by replace', '{"a":1}', '[{"op":"replace","path":"/b","value":2}]', '{"a":1,"b":2}'],
    [
      'counts a negative index from the end',
      '{"a":[1,2,3]}',
      '[{"op":"replace","path":"/a/-1","value":4},{"op":"remove","path":"/a/-3"},{"op":"add","path":"/a/-1","value":5}]',
      '{"a":[2,4,5]}',
    ],
    ['replaces the value of a numeric key', '{"0":"a"}', '[{"op":"replace","path":"/0","value":"b"}]', '{"0":"b"}'],
    [
      'replaces a value with null',
      '{"a":1}',
      '[{"op":"replace","path":"/a","value":null},{"op":"test","path":"/a","value":null}]',
      '{"a":null}',
    ],
    [
      'accepts a test for null if the field is absent',
      '{}',
      '[{"op":"test","path":"/a","value":null},{"op":"add","path":"/a","value":1}]',
      '{"a":1}',
    ],
    [
      'ignores the order of keys in tests',
      '{"a":{"x":1,"y":2}}',
      '[{"op":"test","path":"/a","value":{"y":2,"x":1}}]',
      '{"a":{"x":1,"y":2}}',
    ],
    [
      'does not change a value that is moved to its own path',
      '{"a":1}',
      '[{"op":"move","from":"/a","path":"/a"}]',
      '{"a":1}',
    ],
    [
      'copies values deeply',
      '{"a":{"x":1}}',
      '[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/b/x","value":2}]',
      '{"a":{"x":1},"b":{"x":2}}',
    ],
    [
      'modifies an added value without modifying the patch',
      '{}',
      '[{"op":"add","path":"/a","value":{"x":1}},{"op":"add","path":"/a/y","value":2},{"op":"move","from":"/a","path":"/b"}]',
      '{"b":{"x":1,"y":2}}',
    ],
    [
      'replaces a list as a whole',
      '{"metadata":{"finalizers":["kubernetes.io/pv-protection","external-attacher/csi"]}}',
      '[{"op":"replace","path":"/metadata/finalizers","value":["kubernetes.io/pv-protection"]}]',
      '{"metadata":{"finalizers":["kubernetes.io/pv-protection"]}}',
    ],
    [
      'treats inherited names as ordinary keys',
      '{}',
      '[{"op":"add","path":"/__proto__","value":{"a":1}},{"op":"add","path":"/__proto__/b","value":2},{"op":"copy","from":"/__proto__","path":"/constructor"},{"op":"remove","path":"/__proto__"}]',
      '{"constructor":{"a":1,"b":2}}',
    ],
  ])('%s', (_, document, patch, result) => {
    const original = json(document)
    expect(JSON.stringify(applyJsonPatch(original, json(patch)))).toBe(result)
    expect(original).toEqual(json(document))
  })

  it.each([
    [
      'A.9 a failed test',
      '{"baz":"qux"}',
      '[{"op":"test","path":"/baz","value":"bar"}]',
      'operation 0 (test "/baz"): the value differs',
    ],
    [
      'A.12 adding to an absent object',
      '{"foo":"bar"}',
      '[{"op":"add","path":"/baz/bat","value":"qux"}]',
      'operation 0 (add "/baz/bat"): there is no "baz"',
    ],
    [
      'A.15 a test of a number against a string',
      '{"/":9,"~1":10}',
      '[{"op":"test","path":"/~01","value":"10"}]',
      'operation 0 (test "/~01"): the value differs',
    ],
    ['removing an absent value', '{}', '[{"op":"remove","path":"/a"}]', 'operation 0 (remove "/a"): there is no "a"'],
    [
      'replacing a member of an absent object',
      '{}',
      '[{"op":"replace","path":"/a/b","value":1}]',
      'operation 0 (replace "/a/b"): there is no "a"',
    ],
    [
      'replacing an item after the last',
      '{"a":[1]}',
      '[{"op":"replace","path":"/a/1","value":2}]',
      'there is no item 1 in a list of 1',
    ],
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
      'adding to a string',
      '{"a":"b"}',
      '[{"op":"add","path":"/a/b","value":1}]',
      'there is no "b": its parent is not an object or list',
    ],
    [
      'testing a property of a string',
      '{"a":"b"}',
      '[{"op":"test","path":"/a/length","value":1}]',
      'its parent is not an object or list',
    ],
    [
      'an index past the end',
      '{"a":[1]}',
      '[{"op":"add","path":"/a/2","value":1}]',
      'there is no item 2 in a list of 1',
    ],
    [
      'removing an item after the last',
      '{"a":[1]}',
      '[{"op":"remove","path":"/a/1"}]',
      'there is no item 1 in a list of 1',
    ],
    [
      'an index with a leading zero',
      '{"a":[1,2]}',
      '[{"op":"remove","path":"/a/01"}]',
      '"01" is not an index of a list',
    ],
    [
      'a negative index before the first item',
      '{"a":[1,2]}',
      '[{"op":"remove","path":"/a/-3"}]',
      'there is no item -3 in a list of 2',
    ],
    ['removing "-"', '{"a":[1,2]}', '[{"op":"remove","path":"/a/-"}]', '"-" is not an index of a list'],
    ['removing the document', '{}', '[{"op":"remove","path":""}]', 'the whole document cannot be removed'],
    [
      'moving into itself',
      '{"a":{"b":1}}',
      '[{"op":"move","from":"/a","path":"/a/b"}]',
      'a value cannot be moved into itself',
    ],
    [
      'a failure of the second operation',
      '{"a":1}',
      '[{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}]',
      'operation 1 (remove "/a"): there is no "a"',
    ],
  ])('SYS-10 rejects %s', (_, document, patch, message) => {
    const original = json(document)
    expect(() => applyJsonPatch(original, json(patch))).toThrow(
      expect.objectContaining({ failure: 'inapplicable', message: expect.stringContaining(message) }),
    )
    expect(original).toEqual(json(document))
  })

  it.each([
    ['{}', 'a JSON patch must be a list of operations'],
    ['[1]', 'operation 0: an operation must be an object'],
    ['[{"path":"/a"}]', 'operation 0: "op" must be one of add, remove, replace, move, copy, test, not undefined'],
    ['[{"op":"spam","path":"/a"}]', 'not "spam"'],
    ['[{"op":"remove"}]', 'operation 0: "path" must be a string'],
    ['[{"op":"add","path":"/a"}]', 'operation 0: "value" is missing, and "add" needs one'],
    ['[{"op":"copy","path":"/a"}]', 'operation 0: "from" must be a string'],
    ['[{"op":"remove","path":"a"}]', '"path" must be a JSON pointer, empty or starting with "/", not "a"'],
    ['[{"op":"remove","path":"/a~2"}]', '"path" must be a JSON pointer'],
  ])('SYS-10 rejects %s as malformed', (patch, message) => {
    expect(() => applyJsonPatch({}, json(patch))).toThrow(
      expect.objectContaining({ failure: 'malformed', message: expect.stringContaining(message) }),
    )
  })

  it('rejects patches with too many operations', () => {
    const patch = Array(3).fill({ op: 'test', path: '', value: {} })
    expect(applyJsonPatch({}, patch, { operationsMax: 3 })).toEqual({})
    expect(() => applyJsonPatch({}, patch, { operationsMax: 2 })).toThrow(
      'the patch has 3 operations, and the allowed maximum in a JSON patch is 2',
    )
  })

  it('rejects patches whose copies are too large', () => {
    const copyOperations = Array(40).fill({ op: 'copy', from: '/a', path: '/a/-' })
    expect(() => applyJsonPatch({ a: ['x'] }, copyOperations)).toThrow(
      'copying would add more than the allowed 3145728 bytes',
    )
  })

  it('rejects patches whose result is nested too deep', () => {
    const nestedList = JSON.parse('['.repeat(JSON_DEPTH_MAX - 1) + ']'.repeat(JSON_DEPTH_MAX - 1))
    const copyOperations = Array(60).fill({ op: 'copy', from: '', path: '/0' })
    expect(() => applyJsonPatch([], copyOperations)).toThrow(/nested more than|copying would add/)
    const path = `/a${'/0'.repeat(JSON_DEPTH_MAX - 2)}/0`
    expect(() => applyJsonPatch({ a: nestedList }, [{ op: 'add', path, value: nestedList }])).toThrow(
      'nested more than',
    )
  })

  it('applies thousands of operations to a large object without modifying it', () => {
    const labels = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, 'v']))
    const patch = Object.keys(labels).map((key) => ({ op: 'replace', path: `/labels/${key}`, value: 'w' }))
    const result = applyJsonPatch({ labels }, patch) as { labels: typeof labels }
    expect(new Set(Object.values(result.labels))).toEqual(new Set(['w']))
    expect(new Set(Object.values(labels))).toEqual(new Set(['v']))
  })

  it('transforms any document into any other without modifying the original', () => {
    fc.assert(
      fc.property(anyJson, anyJson, (oldDocument, newDocument) => {
        const originalText = JSON.stringify(oldDocument)
        expect(applyJsonPatch(oldDocument, createPatch(oldDocument, newDocument))).toEqual(newDocument)
        expect(JSON.stringify(oldDocument)).toBe(originalText)
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

/** Creates a patch from one document to another that uses add, remove, replace and test. */
function createPatch(oldDocument: JsonValue, newDocument: JsonValue, path: string[] = []): JsonObject[] {
  const pointerTo = (key: string | number) => formatPointer([...path, String(key)])
  if (isRecord(oldDocument) && isRecord(newDocument)) {
    return [
      ...Object.keys(oldDocument)
        .filter((key) => !Object.hasOwn(newDocument, key))
        .map((key) => ({ op: 'remove', path: pointerTo(key) })),
      ...Object.keys(newDocument).flatMap((key) =>
        Object.hasOwn(oldDocument, key)
          ? createPatch(oldDocument[key]!, newDocument[key]!, [...path, key])
          : [{ op: 'add', path: pointerTo(key), value: newDocument[key]! }],
      ),
    ]
  }
  if (isJsonArray(oldDocument) && isJsonArray(newDocument)) {
    const commonLength = Math.min(oldDocument.length, newDocument.length)
    return [
      ...oldDocument.slice(commonLength).map(() => ({ op: 'remove', path: pointerTo(commonLength) })),
      ...newDocument.slice(commonLength).map((value) => ({ op: 'add', path: pointerTo('-'), value })),
      ...newDocument
        .slice(0, commonLength)
        .flatMap((value, i) => createPatch(oldDocument[i]!, value, [...path, String(i)])),
    ]
  }
  const pointer = formatPointer(path)
  return jsonEquals(oldDocument, newDocument)
    ? [{ op: 'test', path: pointer, value: newDocument }]
    : [{ op: 'replace', path: pointer, value: newDocument }]
}
