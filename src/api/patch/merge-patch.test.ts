import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRecord } from '../decode.ts'
import { getOwnProperty, type JsonValue } from '../json-value.ts'
import { applyMergePatch } from './merge-patch.ts'

const json = (text: string): JsonValue => JSON.parse(text)

describe('applyMergePatch', () => {
  // RFC 7396, appendix A
  it.each([
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
    ['["a","b"]', '["c","d"]', '["c","d"]'],
    ['{"a":"b"}', '["c"]', '["c"]'],
    ['{"a":"foo"}', 'null', 'null'],
    ['{"a":"foo"}', '"bar"', '"bar"'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
    // nulls inside lists are values
    ['{"a":[1]}', '{"a":[null,{"b":null}]}', '{"a":[null,{"b":null}]}'],
    // inherited names are ordinary keys
    ['{}', '{"__proto__":{"a":1}}', '{"__proto__":{"a":1}}'],
    ['{"__proto__":{"a":1}}', '{"__proto__":{"b":2}}', '{"__proto__":{"a":1,"b":2}}'],
    ['{"__proto__":1}', '{"__proto__":null}', '{}'],
    ['{}', '{"constructor":{"prototype":{"a":1}}}', '{"constructor":{"prototype":{"a":1}}}'],
  ])('%s patched with %s is %s', (document, patch, result) => {
    expect(JSON.stringify(applyMergePatch(json(document), json(patch)))).toBe(result)
  })

  it('does not pollute the prototype', () => {
    applyMergePatch({}, json('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'))
    expect({}).not.toHaveProperty('polluted')
  })

  it('modifies neither document nor patch', () => {
    fc.assert(
      fc.property(anyJson, anyJson, (document, patch) => {
        const original = JSON.stringify([document, patch])
        applyMergePatch(document, patch)
        expect(JSON.stringify([document, patch])).toBe(original)
      }),
    )
  })

  it('is idempotent', () => {
    fc.assert(
      fc.property(anyJson, anyJson, (document, patch) => {
        const patchedDocument = applyMergePatch(document, patch)
        expect(applyMergePatch(patchedDocument, patch)).toEqual(patchedDocument)
      }),
    )
  })

  it('transforms any document without nulls into any other', () => {
    const anyJsonWithoutNulls = anyJson.map((value) => applyMergePatch(undefined, value))
    fc.assert(
      fc.property(anyJsonWithoutNulls, anyJsonWithoutNulls, (oldDocument, newDocument) => {
        fc.pre(oldDocument !== null && newDocument !== null)
        expect(applyMergePatch(oldDocument, createPatch(oldDocument, newDocument))).toEqual(newDocument)
      }),
    )
  })
})

const anyJson = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>

function createPatch(oldDocument: JsonValue, newDocument: JsonValue): JsonValue {
  if (!isRecord(oldDocument) || !isRecord(newDocument)) return newDocument
  const removals = Object.keys(oldDocument)
    .filter((key) => !Object.hasOwn(newDocument, key))
    .map((key) => [key, null] as const)
  const changes = Object.entries(newDocument).map(
    ([key, value]) => [key, createPatch(getOwnProperty(oldDocument, key) ?? null, value)] as const,
  )
  return Object.fromEntries([...removals, ...changes])
}
