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
  sortSet,
  union,
} from './field-set.ts'
import { decodeFieldsV1 } from './fields-v1.ts'
import { allFields, appliedFields } from './value-fields.ts'

const anySet: fc.Arbitrary<FieldSet> = fc
  .tuple(anyConfig, fc.boolean())
  .map(([config, isWhole]) =>
    isWhole ? { 'f:spec': allFields(machineShape, config) } : appliedFields(machineShape, config),
  )

describe('field sets', () => {
  it('contain a node with children only if it has the child "."', () => {
    const set = { 'f:labels': { '.': {}, 'f:app': {} }, 'f:spec': { 'f:size': {} } }
    expect(pathsOf(set)).toEqual([['f:labels'], ['f:labels', 'f:app'], ['f:spec', 'f:size']])
    expect(hasPath(set, ['f:labels'])).toBe(true)
    expect(hasPath(set, ['f:spec'])).toBe(false)
  })

  it('keep the paths below a path that difference removes', () => {
    const set = { 'f:labels': { '.': {}, 'f:app': {} } }
    expect(difference(set, { 'f:labels': {} })).toEqual({ 'f:labels': { 'f:app': {} } })
    expect(difference(set, { 'f:labels': { 'f:app': {} } })).toEqual({ 'f:labels': {} })
  })

  it('have the union, intersection and difference of their paths', () => {
    const sortedPaths = (set: FieldSet) =>
      pathsOf(set)
        .map((path) => path.join(' '))
        .sort()
    fc.assert(
      fc.property(anySet, anySet, (a, b) => {
        const [pathsOfA, pathsOfB] = [sortedPaths(a), sortedPaths(b)]
        expect(sortedPaths(union(a, b))).toEqual([...new Set([...pathsOfA, ...pathsOfB])].sort())
        expect(sortedPaths(intersection(a, b))).toEqual(pathsOfA.filter((path) => pathsOfB.includes(path)))
        expect(sortedPaths(difference(a, b))).toEqual(pathsOfA.filter((path) => !pathsOfB.includes(path)))
        expect(isSubset(a, b)).toBe(pathsOfA.every((path) => pathsOfB.includes(path)))
        expect(sameSet(a, b)).toBe(pathsOfA.join() === pathsOfB.join())
      }),
    )
  })

  it('are returned unchanged by an operation without effect', () => {
    const set = { 'f:labels': { '.': {}, 'f:app': {} } }
    expect(difference(set, { 'f:labels': { 'f:other': {} }, 'f:spec': {} })).toBe(set)
    expect(union(set, EMPTY)).toBe(set)
  })
})

describe('sortSet', () => {
  it('SYS-3 sorts the elements at every level as Kubernetes does', () => {
    const set: FieldSet = {
      'f:spec': { 'f:b': {}, 'f:a': {}, '.': {} },
      'f:ports': {
        'v:2': {},
        'i:0': {},
        'k:{"port":443,"protocol":"TCP"}': { 'f:port': {}, '.': {} },
        'k:{"port":80,"protocol":"UDP"}': {},
        'k:{"port":80,"protocol":"TCP"}': {},
        'v:10': {},
        '.': {},
      },
    }
    expect(
      JSON.stringify(sortSet(set), undefined, 1)
        .match(/"(\\"|[^"])*"(?=:)/g)
        ?.map((key) => JSON.parse(key)),
    ).toEqual([
      'f:ports',
      '.',
      'k:{"port":80,"protocol":"TCP"}',
      'k:{"port":80,"protocol":"UDP"}',
      'k:{"port":443,"protocol":"TCP"}',
      '.',
      'f:port',
      'v:2',
      'v:10',
      'i:0',
      'f:spec',
      '.',
      'f:a',
      'f:b',
    ])
  })

  it('keeps the paths, and returns a sorted set itself', () => {
    fc.assert(
      fc.property(anySet, (set) => {
        const sorted = sortSet(set)
        expect(sameSet(sorted, set)).toBe(true)
        expect(sortSet(sorted)).toBe(sorted)
      }),
    )
  })
})

describe('field sets from clients', () => {
  it('are decoded to the same set', () => {
    fc.assert(
      fc.property(anySet, (set) => {
        expect(decodeFieldsV1(JSON.parse(JSON.stringify(set)))).toEqual(set)
      }),
    )
  })

  it('are decoded with list keys and values in canonical form', () => {
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
    ['a list instead of an object', []],
    ['a tree that is too deep', JSON.parse(`${'{"f:a":'.repeat(200)}{}${'}'.repeat(200)}`)],
  ])('are rejected if they contain %s', (_, value) => {
    expect(decodeFieldsV1(value)).toBeUndefined()
  })
})
