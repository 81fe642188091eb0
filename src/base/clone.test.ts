import { describe, expect, it } from 'vitest'
import { cloneChanged } from './clone.ts'

describe('cloneChanged', () => {
  const previous = { labels: { a: '1' }, list: [{ b: 2 }], spec: { size: 1, source: { path: '/a' } } }

  it('shares what is identical to the earlier state and copies the rest', () => {
    const source = { path: '/b' }
    const copy = cloneChanged({ ...previous, spec: { ...previous.spec, source } }, previous)
    expect(copy).toEqual({ ...previous, spec: { size: 1, source: { path: '/b' } } })
    expect(copy.labels).toBe(previous.labels)
    expect(copy.list).toBe(previous.list)
    expect(copy.spec.source).not.toBe(source)
  })

  it('copies what is equal but not identical', () => {
    const equal = { a: '1' }
    const copy = cloneChanged({ labels: equal, list: [...previous.list] }, previous)
    expect(copy).toEqual({ labels: equal, list: [{ b: 2 }] })
    expect(copy.labels).not.toBe(equal)
    expect(copy.labels).not.toBe(previous.labels)
    expect(copy.list[0]).not.toBe(previous.list[0])
  })

  it('copies keys of the prototype of objects as any other key', () => {
    const value = JSON.parse('{"constructor":{"x":1},"toString":"y","__proto__":{"z":1}}')
    const copy = cloneChanged(value, {})
    expect(JSON.stringify(copy)).toBe(JSON.stringify(value))
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
    expect(copy.constructor).not.toBe(value.constructor)
  })

  it.each([[null], ['text'], [7], [undefined], [[1, [2]]]])('returns %j for values of other types', (value) => {
    expect(cloneChanged(value, { a: 1 })).toEqual(value)
  })
})
