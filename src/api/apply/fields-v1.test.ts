import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anySet } from './apply.fixture.ts'
import { decodeFieldsV1 } from './fields-v1.ts'

describe('decodeFieldsV1', () => {
  it('returns a set in canonical form unchanged', () => {
    fc.assert(
      fc.property(anySet, (set) => {
        expect(decodeFieldsV1(JSON.parse(JSON.stringify(set)))).toEqual(set)
      }),
    )
  })

  it('converts list keys and values to canonical form', () => {
    expect(
      decodeFieldsV1({ 'f:p': { 'k:{ "protocol": "\\u0054CP", "containerPort":80}': { '.': {} } }, 'v:"\\u003c"': {} }),
    ).toEqual({ 'f:p': { 'k:{"containerPort":80,"protocol":"TCP"}': {} }, 'v:"<"': {} })
  })

  it('keeps the members of two keys with one canonical form', () => {
    expect(
      decodeFieldsV1({
        'k:{"name":"a","protocol":"TCP"}': { 'f:port': {}, 'f:both': { 'f:x': {} } },
        'k:{"protocol":"TCP","name":"a"}': { '.': {}, 'f:target': {}, 'f:both': { 'f:y': {} } },
      }),
    ).toEqual({
      'k:{"name":"a","protocol":"TCP"}': { '.': {}, 'f:port': {}, 'f:both': { 'f:x': {}, 'f:y': {} }, 'f:target': {} },
    })
  })

  it.each([
    ['an element without a prefix', { spec: {} }],
    ['a key that is not an object', { 'k:[1]': {} }],
    ['a key that is not JSON', { 'k:{name}': {} }],
    ['a value that is not JSON', { 'v:red': {} }],
    ['an index that is not a number', { 'i:first': {} }],
    ['a node that is not an object', { 'f:spec': true }],
    ['a list instead of an object', []],
    ['a tree that is too deep', JSON.parse(`${'{"f:a":'.repeat(200)}{}${'}'.repeat(200)}`)],
  ])('rejects %s', (_, value) => {
    expect(decodeFieldsV1(value)).toBeUndefined()
  })
})
