import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyConfig, machineShape } from './apply.fixture.ts'
import {
  difference,
  EMPTY,
  type FieldSet,
  hasPath,
  intersection,
  isSubset,
  pathsOf,
  sameSet,
  union,
} from './field-set.ts'
import { allFields, appliedFields } from './fields-of.ts'
import { decodeFieldsV1 } from './fields-v1.ts'

const anySet: fc.Arbitrary<FieldSet> = fc
  .tuple(anyConfig, fc.boolean())
  .map(([config, every]) =>
    every ? { 'f:spec': allFields(machineShape, config) } : appliedFields(machineShape, config),
  )

describe('field sets', () => {
  it('a node with children is a member only with the child "."', () => {
    const set = { 'f:labels': { '.': {}, 'f:app': {} }, 'f:spec': { 'f:size': {} } }
    expect(pathsOf(set)).toEqual([['f:labels'], ['f:labels', 'f:app'], ['f:spec', 'f:size']])
    expect(hasPath(set, ['f:labels'])).toBe(true)
    expect(hasPath(set, ['f:spec'])).toBe(false)
  })

  it('the difference removes a path only, not the paths below it', () => {
    const set = { 'f:labels': { '.': {}, 'f:app': {} } }
    expect(difference(set, { 'f:labels': {} })).toEqual({ 'f:labels': { 'f:app': {} } })
    expect(difference(set, { 'f:labels': { 'f:app': {} } })).toEqual({ 'f:labels': {} })
  })

  it('union, intersection and difference equal those of the paths', () => {
    const texts = (set: FieldSet) =>
      pathsOf(set)
        .map((path) => path.join(' '))
        .sort()
    fc.assert(
      fc.property(anySet, anySet, (a, b) => {
        const [left, right] = [texts(a), texts(b)]
        expect(texts(union(a, b))).toEqual([...new Set([...left, ...right])].sort())
        expect(texts(intersection(a, b))).toEqual(left.filter((path) => right.includes(path)))
        expect(texts(difference(a, b))).toEqual(left.filter((path) => !right.includes(path)))
        expect(isSubset(a, b)).toBe(left.every((path) => right.includes(path)))
        expect(sameSet(a, b)).toBe(left.join() === right.join())
      }),
    )
  })

  it('an operation that changes nothing returns its input', () => {
    const set = { 'f:labels': { '.': {}, 'f:app': {} } }
    expect(difference(set, { 'f:labels': { 'f:other': {} }, 'f:spec': {} })).toBe(set)
    expect(union(set, EMPTY)).toBe(set)
  })
})

describe('field sets from clients', () => {
  it('are returned as they were sent', () => {
    fc.assert(
      fc.property(anySet, (set) => {
        expect(decodeFieldsV1(JSON.parse(JSON.stringify(set)))).toEqual(set)
      }),
    )
  })

  it('have their list keys and values in canonical form', () => {
    expect(
      decodeFieldsV1({ 'f:p': { 'k:{ "protocol": "\\u0054CP", "containerPort":80}': { '.': {} } }, 'v:"\\u003c"': {} }),
    ).toEqual({ 'f:p': { 'k:{"containerPort":80,"protocol":"TCP"}': {} }, 'v:"<"': {} })
  })

  it.each([
    ['an element without a prefix', { spec: {} }],
    ['a key that is not an object', { 'k:[1]': {} }],
    ['a key that is not JSON', { 'k:{name}': {} }],
    ['a value that is not JSON', { 'v:red': {} }],
    ['an index that is not a number', { 'i:first': {} }],
    ['a node that is not an object', { 'f:spec': true }],
    ['a list', []],
    ['a tree that is too deep', JSON.parse(`${'{"f:a":'.repeat(200)}{}${'}'.repeat(200)}`)],
  ])('are rejected with %s', (_, value) => {
    expect(decodeFieldsV1(value)).toBeUndefined()
  })
})
