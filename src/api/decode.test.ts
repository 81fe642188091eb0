import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DecodeError, decode } from './decode.ts'
import { countKeys } from './parse-json.ts'
import {
  boolean,
  bytes,
  int32,
  int64,
  intOrString,
  list,
  map,
  microTime,
  object,
  opt,
  ptr,
  quantity,
  rawJson,
  req,
  string,
  time,
} from './schema.ts'

const inner = object('test.Inner', 'Inner.', {
  name: req(1, string, 'Name.'),
  count: opt(2, int32, 'Count.'),
  on: ptr(3, boolean, 'On.'),
})
const outer = object('test.Outer', 'Outer.', {
  title: opt(1, string, 'Title.'),
  size: opt(2, quantity, 'Size.'),
  startTime: opt(3, time, 'Start time.'),
  renewTime: opt(4, microTime, 'Renew time.'),
  blob: opt(5, bytes, 'Blob.'),
  port: opt(6, intOrString, 'Port.'),
  big: opt(7, int64, 'Big.'),
  items: opt(8, list(inner), 'Items.'),
  labels: opt(9, map(string), 'Labels.'),
  single: ptr(10, inner, 'Single.'),
  raw: opt(11, rawJson, 'Raw.'),
})
const decodeOuter = (value: unknown) => decode(outer, value)

describe('decode', () => {
  it('drops null fields and empty optional values, keeps empty pointer fields and adds required ones', () => {
    const value = { title: '', size: null, items: [], labels: {}, single: { count: 0, on: false } }
    expect(decodeOuter(value).object).toEqual({ single: { name: '', on: false } })
  })

  it.each([
    ['size', '1000M', '1G'],
    ['size', 1024, '1024'],
    ['startTime', '2026-01-31T12:00:00.9+01:00', '2026-01-31T11:00:00Z'],
    ['renewTime', '2026-01-31T12:00:00.1234567Z', '2026-01-31T12:00:00.123456Z'],
    ['renewTime', '2026-01-31T12:00:00Z', '2026-01-31T12:00:00.000000Z'],
    ['blob', 'aGVs\nbG8=', 'aGVsbG8='],
    ['port', 80, 80],
    ['port', 'http', 'http'],
  ])('decodes %s %j to the canonical %j', (field, input, canonical) => {
    expect(decodeOuter({ [field]: input }).object).toHaveProperty(field, canonical)
  })

  it.each([
    [{ title: 7 }, 'title: expected a string, got number 7'],
    [{ items: {} }, 'items: expected a list, got an object'],
    [{ items: [{ name: 1 }] }, 'items[0].name: expected a string, got number 1'],
    [{ items: [{ count: 1.5 }] }, 'items[0].count: expected a whole number, got number 1.5'],
    [{ items: [{ count: 2 ** 31 }] }, 'items[0].count: 2147483648 is outside -2147483648 to 2147483647'],
    [{ big: 2 ** 60 }, 'big: 1152921504606847000 is outside'],
    [{ labels: { a: 1 } }, 'labels[a]: expected a string, got number 1'],
    [{ size: 'much' }, 'size: "much" is not a quantity'],
    [{ startTime: 'yesterday' }, 'startTime: "yesterday" is not a time'],
    [{ startTime: '2026-02-30T00:00:00Z' }, 'startTime: "2026-02-30T00:00:00Z" is not a time'],
    [{ blob: 'not base64!' }, 'blob: illegal base64 data'],
    [[], 'body: expected an object, got a list'],
    [{ single: [] }, 'single: expected an object, got a list'],
  ])('SYS-10 rejects %j with path and reason', (value, message) => {
    expect(() => decodeOuter(value)).toThrow(DecodeError)
    expect(() => decodeOuter(value)).toThrow(message)
  })

  it.each([
    '2026-01-02T03:04:05Z',
    '2026-01-02T03:04:05.678901Z',
    '2026-01-02T23:59:59+02:00',
    '2024-02-29T00:00:00Z',
    '2000-02-29T00:00:00Z',
    '0001-01-01T00:00:00Z',
  ])('accepts the time %s', (startTime) => {
    expect(decodeOuter({ startTime }).object).toHaveProperty('startTime')
  })

  it.each([
    '2026-01-02',
    '2026-01-02 03:04:05Z',
    '2026-01-02T03:04:05',
    '2026-1-2T03:04:05Z',
    '2026-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-02T24:00:00Z',
    '2026-01-02T00:00:60Z',
    '2026-01-02T03:04:05.Z',
    '2026-01-02T03:04:05Z\n',
  ])('SYS-10 rejects %j as a time', (startTime) => {
    expect(() => decodeOuter({ startTime })).toThrow('is not a time')
  })

  it('truncates times of the years 1 to 9999 to seconds', () => {
    const dates = fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59Z'),
      noInvalidDate: true,
    })
    fc.assert(
      fc.property(dates, (date) => {
        const canonical = `${date.toISOString().slice(0, 19)}Z`
        expect(decodeOuter({ startTime: date.toISOString() }).object).toEqual({ startTime: canonical })
      }),
    )
  })

  it('adds nothing to a partial object and keeps its empty values', () => {
    const value = { title: '', size: '1024Ki', items: [{ count: 0 }], labels: {}, startTime: null }
    expect(decode(outer, value, [], { isPartial: true }).object).toEqual({
      title: '',
      size: '1Mi',
      items: [{ count: 0 }],
      labels: {},
    })
  })

  it('reports the paths of unknown fields, except ignored ones', () => {
    const { unknownFields, object: decodedObject } = decode(
      outer,
      { kind: 'X', extra: { a: 1 }, items: [{ nam: 'x' }] },
      ['kind'],
    )
    expect(unknownFields.toSorted()).toEqual(['extra', 'items[0].nam'])
    expect(decodedObject).toEqual({ items: [{ name: '' }] })
  })

  it('returns fields and map keys in an order that does not depend on the input', () => {
    const first = decodeOuter({ labels: { b: '2', a: '1' }, title: 't' }).object
    const second = decodeOuter({ title: 't', labels: { a: '1', b: '2' } }).object
    expect(JSON.stringify(first)).toBe(JSON.stringify(second))
  })

  it('returns present and required fields in the order of the declaration, at all levels, for any order of the input', () => {
    const shuffled = <T extends object>(value: fc.Arbitrary<T>) =>
      value.chain((record) => fc.shuffledSubarray(Object.entries(record), { minLength: 0 }).map(Object.fromEntries))
    const anInner = shuffled(
      fc.record({ name: fc.constant('n'), count: fc.constantFrom(0, 1), on: fc.boolean(), unknown: fc.constant(1) }),
    )
    const needy = object('test.Needy', 'Needy.', {
      first: opt(1, string, 'First.'),
      second: req(2, inner, 'Second.'),
      third: opt(3, list(inner), 'Third.'),
      fourth: req(4, map(string), 'Fourth.'),
      fifth: req(5, string, 'Fifth.'),
    })
    const aNeedy = shuffled(
      fc.record({
        first: fc.constantFrom('', null, 'f'),
        second: fc.option(anInner),
        third: fc.array(anInner, { maxLength: 2 }),
        fourth: fc.constantFrom(null, {}, { k: 'v' }),
        fifth: fc.constantFrom('', 'x'),
      }),
    )
    const declaredOrder = (type: typeof needy | typeof inner, value: object) =>
      Object.keys(type.fields).filter((name) => Object.hasOwn(value, name))
    fc.assert(
      fc.property(aNeedy, (value) => {
        const decodedObject = decode(needy, value).object
        expect(Object.keys(decodedObject)).toEqual(declaredOrder(needy, decodedObject))
        expect(decodedObject).toMatchObject({ second: {}, fourth: {}, fifth: value.fifth ?? '' })
        for (const innerObject of [decodedObject.second, ...(decodedObject.third ?? [])]) {
          expect(Object.keys(innerObject)).toEqual(declaredOrder(inner, innerObject))
          expect(innerObject).toHaveProperty('name')
        }
      }),
    )
  })

  it('SYS-10 treats `__proto__` as an ordinary key', () => {
    const { object: decodedObject } = decodeOuter(JSON.parse('{"labels":{"__proto__":"x"},"__proto__":{"title":"no"}}'))
    expect(Object.keys(decodedObject.labels ?? {})).toEqual(['__proto__'])
    expect(decodedObject.title).toBeUndefined()
    expect(({} as { title?: unknown }).title).toBeUndefined()
  })

  it('SYS-10 rejects objects with too many list items', () => {
    expect(() => decodeOuter({ items: Array(30_000).fill(null) })).toThrow('more than 10000')
  })

  it('counts as many keys as countKeys if the text has no duplicate keys', () => {
    fc.assert(
      fc.property(fc.object({ maxDepth: 4 }), (value) => {
        const text = JSON.stringify({ raw: value, title: 'x' })
        expect(decodeOuter(JSON.parse(text)).keyCount).toBe(countKeys(text))
      }),
    )
  })

  it('is idempotent', () => {
    const anInner = fc.record(
      { name: fc.string(), count: fc.integer({ min: -5, max: 5 }), on: fc.boolean() },
      { requiredKeys: [] },
    )
    const anOuter = fc.record(
      {
        title: fc.string(),
        size: fc.constantFrom('1Gi', '0.5', '2000m', 7),
        labels: fc.dictionary(fc.string(), fc.string()),
        items: fc.array(anInner),
        single: anInner,
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(anOuter, (value) => {
        const decodedObject = decodeOuter(value).object
        expect(decodeOuter(decodedObject).object).toEqual(decodedObject)
      }),
    )
  })
})

describe('decode with a previous object', () => {
  const previous = Object.freeze({
    title: 'a',
    items: Object.freeze([Object.freeze({ name: 'x' })]),
    single: Object.freeze({ name: 'y', count: 1 }),
    raw: Object.freeze({ k: [1] }),
  })

  it('reuses identical parts and decodes all others', () => {
    const value = { ...previous, title: 'b', single: { ...previous.single, count: 2 } }
    const { object: decodedObject, unknownFields } = decode(outer, value, [], { previous })
    expect(decodedObject).toEqual({
      title: 'b',
      items: [{ name: 'x' }],
      single: { name: 'y', count: 2 },
      raw: { k: [1] },
    })
    expect(unknownFields).toEqual([])
    expect(decodedObject.items).toBe(previous.items)
    expect(decodedObject.single).not.toBe(previous.single)
  })

  it('decodes a part that is at another path or has changed', () => {
    const value = { ...previous, items: previous.single }
    expect(() => decode(outer, value, [], { previous })).toThrow(DecodeError)
    expect(() => decode(outer, { ...previous, single: { name: 7 } }, [], { previous })).toThrow(DecodeError)
    expect(
      decode(outer, { ...previous, single: { ...previous.single, other: 1 } }, [], { previous }).unknownFields,
    ).toEqual(['single.other'])
  })

  it('gives the same result as without a previous object', () => {
    const values = fc.record({
      title: fc.string(),
      single: fc.record({ name: fc.string(), count: fc.integer({ min: 0, max: 9 }) }),
    })
    fc.assert(
      fc.property(values, values, fc.boolean(), (oldValue, newValue, reusesSingle) => {
        const decodedBefore = decode(outer, oldValue).object
        const value = { ...decodedBefore, ...newValue, ...(reusesSingle ? { single: decodedBefore.single } : {}) }
        expect(decode(outer, value, [], { previous: decodedBefore }).object).toEqual(decode(outer, value).object)
      }),
    )
  })
})
