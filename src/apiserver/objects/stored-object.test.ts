import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { manualClock } from '../../base/manual-clock.ts'
import { createResources } from '../resources.ts'
import type { Json } from '../server.fixture.ts'
import {
  createStoredObjects,
  decodeStored,
  encodeStored,
  itemBytes,
  itemBytesLength,
  objectBytes,
  sameContent,
} from './stored-object.ts'

const claims = createResources(ALL_KINDS).find('', 'v1', 'persistentvolumeclaims')!
const anObject = (name = 'a') => ({ metadata: { name, uid: 'u', resourceVersion: '99' }, spec: { volumeName: 'v' } })
const anEntry = (value: Uint8Array, modRevision = 7, key = 'core/persistentvolumeclaims/default/a') => ({
  key,
  value,
  modRevision,
  createRevision: 1,
})

describe('the stored form', () => {
  it('has metadata first, and neither resourceVersion nor kind', () => {
    expect(encodeStored(anObject()).toString()).toBe('{"metadata":{"name":"a","uid":"u"},"spec":{"volumeName":"v"}}')
  })

  it('becomes a response when kind, apiVersion and resourceVersion are prepended', () => {
    expect(JSON.parse(objectBytes(claims, encodeStored(anObject()), 7).toString())).toEqual({
      kind: 'PersistentVolumeClaim',
      apiVersion: 'v1',
      metadata: { name: 'a', uid: 'u', resourceVersion: '7' },
      spec: { volumeName: 'v' },
    })
  })

  it('becomes an item of a list when resourceVersion is prepended', () => {
    const newestRevision = Number.MAX_SAFE_INTEGER
    const entries = [anEntry(encodeStored(anObject('ä'))), anEntry(encodeStored(anObject('b')), newestRevision)]
    const items = [
      { metadata: { name: 'ä', uid: 'u', resourceVersion: '7' }, spec: { volumeName: 'v' } },
      { metadata: { name: 'b', uid: 'u', resourceVersion: String(newestRevision) }, spec: { volumeName: 'v' } },
    ]
    const bytes = itemBytes(entries)
    expect(JSON.parse(`[${bytes}]`)).toEqual(items)
    expect(itemBytesLength(entries)).toBe(bytes.length)
    expect(itemBytes([])).toHaveLength(itemBytesLength([]))
  })

  it('becomes a response without resourceVersion if it is not stored, as in a dry run', () => {
    expect(JSON.parse(objectBytes(claims, encodeStored(anObject()), 0).toString()).metadata).toEqual({
      name: 'a',
      uid: 'u',
    })
  })

  it('supports any text and empty metadata', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), fc.integer({ min: 1 }), (data, revision) => {
        const object = { metadata: {}, data }
        const decodedObject = JSON.parse(objectBytes(claims, encodeStored(object), revision).toString('utf8'))
        expect(decodedObject.data).toEqual(JSON.parse(JSON.stringify(data)))
        expect(decodedObject.metadata).toEqual({ resourceVersion: String(revision) })
      }),
    )
  })
})

describe('createStoredObjects', () => {
  it('decodes an entry that is read once without caching it, unless it is cached already', () => {
    const objects = createStoredObjects(manualClock())
    const [cached, other] = [
      anEntry(Buffer.from('{"metadata":{"name":"a"}}')),
      anEntry(Buffer.from('{"metadata":{"name":"b"}}'), 8),
    ]
    const object = objects.decode(cached)
    expect(objects.decodeOnce(cached)).toBe(object)
    expect(objects.decodeOnce({ ...cached })).toBe(object)
    expect(objects.decodeOnce(other)).toEqual({ metadata: { name: 'b', resourceVersion: '8' } })
    expect(objects.decodeOnce(other)).not.toBe(objects.decodeOnce(other))
    expect(Object.isFrozen(objects.decodeOnce(other))).toBe(true)
  })

  it('SYS-19 caches decoded objects, except large ones', () => {
    const objects = createStoredObjects(manualClock())
    const isCached = (entry: ReturnType<typeof anEntry>) => {
      const firstObject = objects.decode(entry)
      for (let i = 0; i < 10; i++) objects.decode(anEntry(encodeStored(anObject()), 100 + i)) // replaces recent entries
      return objects.decode(entry) === firstObject
    }
    const entryOf = (nameLength: number) => anEntry(Buffer.from(`{"metadata":{"name":"${'a'.repeat(nameLength)}"}}`))
    expect(isCached(entryOf(10))).toBe(true)
    expect(isCached(entryOf(20_000))).toBe(false)
  })

  it('distinguishes a committed object from an uncommitted one of the same revision', () => {
    const objects = createStoredObjects(manualClock())
    objects.decode(anEntry(Buffer.from('{"metadata":{"name":"uncommitted"}}')))
    expect(objects.decode(anEntry(Buffer.from('{"metadata":{"name":"committed"}}'))).metadata.name).toBe('committed')
  })

  it('returns a recently encoded object in decoded form, equal to its JSON and deeply frozen', () => {
    const { metadata, spec } = anObject()
    const value = encodeStored({
      metadata: { ...metadata, labels: undefined },
      spec: { ...spec, more: [{ a: 1 }] },
    } as Json)
    const decodedObject: Json = createStoredObjects(manualClock()).decode(anEntry(value))
    expect(decodedObject).toStrictEqual({
      metadata: { name: 'a', uid: 'u', resourceVersion: '7' },
      spec: { volumeName: 'v', more: [{ a: 1 }] },
    })
    for (const frozenPart of [
      decodedObject,
      decodedObject.metadata,
      decodedObject.spec,
      decodedObject.spec.more,
      decodedObject.spec.more[0],
    ]) {
      expect(frozenPart).toSatisfy(Object.isFrozen)
    }
  })

  it('decodes an entry once and returns a frozen object with its resourceVersion', () => {
    const objects = createStoredObjects(manualClock())
    const entry = anEntry(encodeStored(anObject()))
    const decodedObject: Json = objects.decode(entry)
    expect(decodedObject.metadata.resourceVersion).toBe('7')
    expect(objects.decode(entry)).toBe(decodedObject)
    expect(() => {
      decodedObject.spec.volumeName = 'w'
    }).toThrow(TypeError)
  })

  it('decodes a large entry once while no others are decoded', () => {
    const objects = createStoredObjects(manualClock())
    const entry = anEntry(Buffer.from(`{"metadata":{"name":"${'a'.repeat(20_000)}"}}`))
    expect(objects.decode(entry)).toBe(objects.decode(entry))
  })

  it('distinguishes revisions and keys', () => {
    const objects = createStoredObjects(manualClock())
    const firstObject = objects.decode(anEntry(encodeStored(anObject('one')), 7))
    expect(objects.decode(anEntry(encodeStored(anObject('two')), 8))).not.toBe(firstObject)
    expect(
      objects.decode(anEntry(encodeStored(anObject('other')), 7, 'core/persistentvolumeclaims/default/b')),
    ).not.toBe(firstObject)
  })

  it('evicts objects that are not used for two minutes', async () => {
    const clock = manualClock()
    const objects = createStoredObjects(clock)
    const entry = anEntry(encodeStored(anObject()))
    const decodedObject = objects.decode(entry)
    for (let round = 1; round <= 2; round++) {
      await clock.advance(60_000)
      for (let i = 0; i < 5; i++) objects.decode(anEntry(encodeStored(anObject()), round * 100 + i))
    }
    expect(objects.decode(entry)).not.toBe(decodedObject)
  })

  it('evicts encoded objects that are not decoded for two minutes', async () => {
    const clock = manualClock()
    const objects = createStoredObjects(clock)
    const object = { metadata: { name: 'a', uid: 'u' }, spec: { volumeName: 'v' } }
    const value = encodeStored(object)
    objects.decode(anEntry(value))
    expect(decodeStored({ value, modRevision: 0 })).toBe(object)
    for (let minute = 1; minute <= 2; minute++) await clock.advance(60_000)
    expect(decodeStored({ value, modRevision: 0 })).not.toBe(object)
    expect(decodeStored({ value, modRevision: 0 })).toEqual(object)
  })

  it('drops the oldest entries beyond its limit', () => {
    const objects = createStoredObjects(manualClock(), 2)
    const entries = Array.from({ length: 9 }, (_, index) => anEntry(encodeStored(anObject()), index + 1))
    const [firstObject, ...laterObjects] = entries.map((entry) => objects.decode(entry))
    expect(objects.decode(entries[8]!)).toBe(laterObjects.at(-1))
    expect(objects.decode(entries[0]!)).not.toBe(firstObject)
  })
})

describe('sameContent', () => {
  const bytesOf = (value: unknown) => Buffer.from(JSON.stringify(value))
  it('ignores the order of keys, but not of items', () => {
    expect(sameContent(bytesOf({ a: 1, b: 2 }), bytesOf({ a: 1, b: 2 }))).toBe(true)
    expect(sameContent(bytesOf({ a: 1, b: 2 }), bytesOf({ b: 2, a: 1 }))).toBe(true)
    expect(sameContent(bytesOf({ a: [1, 2] }), bytesOf({ a: [2, 1] }))).toBe(false)
    expect(sameContent(bytesOf({ a: 1 }), bytesOf({ a: 2 }))).toBe(false)
    expect(sameContent(bytesOf({ a: 1 }), bytesOf({ a: 1, b: 2 }))).toBe(false)
  })
})
