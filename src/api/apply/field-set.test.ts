import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anySet } from './apply.fixture.ts'
import {
  difference,
  EMPTY_SET,
  type FieldSet,
  hasPath,
  intersection,
  isSubset,
  pathsOf,
  sameSet,
  sortSet,
  union,
} from './field-set.ts'

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

  it('are returned unchanged by a difference or union without effect', () => {
    const set = { 'f:labels': { '.': {}, 'f:app': {} } }
    expect(difference(set, { 'f:labels': { 'f:other': {} }, 'f:spec': {} })).toBe(set)
    expect(union(set, EMPTY_SET)).toBe(set)
  })
})

describe('sortSet', () => {
  it('sorts the elements at every level as Kubernetes does', () => {
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

  it('keeps the paths, and returns a sorted set unchanged', () => {
    fc.assert(
      fc.property(anySet, (set) => {
        const sortedSet = sortSet(set)
        expect(sameSet(sortedSet, set)).toBe(true)
        expect(sortSet(sortedSet)).toBe(sortedSet)
      }),
    )
  })
})
