import { describe, expect, it } from 'vitest'
import { stockJson } from '../client/stock-server.fixture.ts'
import { decode } from './decode.ts'
import { decodeResponse } from './decode-response.ts'
import { csiNodeKind } from './kinds/csi-node/csi-node.ts'
import { ALL_KINDS } from './kinds/index.ts'
import { secretKind } from './kinds/secret/secret.ts'
import { storageClassKind } from './kinds/storage-class/storage-class.ts'
import type { ObjectType, Scalar, Type } from './schema.ts'

const FORM_COUNT = 6

describe('decodeResponse', () => {
  it.each([
    ['null', null],
    ['absent', undefined],
    ['empty', []],
  ])('SYS-29 returns an empty list for a required list that is %s', (_form, drivers) => {
    const json = JSON.parse(JSON.stringify({ metadata: { name: 'n' }, spec: { drivers } }))
    expect(decodeResponse(csiNodeKind.type, json).spec.drivers).toEqual([])
  })

  it('SYS-29 returns the zero value of a required object that is absent', () => {
    expect(decodeResponse(csiNodeKind.type, { metadata: { name: 'n' } }).spec).toEqual({ drivers: [] })
  })

  it('SYS-29 drops optional lists and maps that are null or empty, and null scalars', () => {
    const json = {
      metadata: { name: 'fast', labels: {}, annotations: null, finalizers: [], creationTimestamp: null },
      provisioner: 'disks.example.com',
      parameters: null,
      mountOptions: null,
      allowVolumeExpansion: false,
    }
    expect(decodeResponse(storageClassKind.type, json)).toStrictEqual({
      metadata: { name: 'fast' },
      provisioner: 'disks.example.com',
      allowVolumeExpansion: false,
    })
  })

  it('replaces a null value in a map with the zero value', () => {
    const { data } = decodeResponse(secretKind.type, { metadata: { name: 's' }, data: { empty: null } })
    expect(data).toEqual({ empty: '' })
  })

  it('SYS-29 keeps unknown fields, unknown enum values and values of unexpected types', () => {
    const json = {
      metadata: { name: 'fast', newField: [{ a: null }] },
      provisioner: 'disks.example.com',
      volumeBindingMode: 'UnknownMode',
      parameters: ['not', 'a map'],
      mountOptions: 'ro',
      newSpec: { deep: { list: [] } },
    }
    const expected = structuredClone(json)
    expect(decodeResponse(storageClassKind.type, json)).toStrictEqual(expected)
  })

  it('freezes every value, including unknown ones', () => {
    const object = decodeResponse(csiNodeKind.type, {
      metadata: { name: 'n', unknown: { a: [{}] } },
      spec: { drivers: [{ name: 'd', topologyKeys: null }] },
    })
    expect(isDeeplyFrozen(object)).toBe(true)
  })

  it.each(ALL_KINDS.map((kind) => [`${kind.kind}.${kind.group}`, kind] as const))(
    'SYS-29 decodes %s from every form of a stock server to the stored form',
    (_name, { type }) => {
      for (const sample of [sampleOf(type, 0, false), sampleOf(type, 0, true), {}]) {
        const storedObject = decode(type, sample).object
        for (let form = 0; form < FORM_COUNT; form++) {
          expect(decodeResponse(type, stockJson(type, storedObject as object, form))).toStrictEqual(storedObject)
        }
      }
    },
  )
})

const SCALARS: Readonly<Record<Scalar, unknown>> = {
  string: 'text',
  boolean: true,
  int32: 1,
  int64: 1,
  double: 1.5,
  quantity: '1Gi',
  time: '2026-01-31T12:00:00Z',
  microTime: '2026-01-31T12:00:00.000000Z',
  bytes: 'aGVsbG8=',
  intOrString: 'http',
}
const DEPTH_MAX = 8 // bounds samples of types that contain themselves

/** Returns an object with a value in every field. If `hasEmptyCollections` is true, all lists and maps are empty. */
function sampleOf(type: Type, depth: number, hasEmptyCollections: boolean): unknown {
  switch (type.is) {
    case 'object':
      return depth > DEPTH_MAX ? {} : sampleObject(type, depth, hasEmptyCollections)
    case 'list':
      return hasEmptyCollections ? [] : [sampleOf(type.item, depth + 1, hasEmptyCollections)]
    case 'map':
      return hasEmptyCollections ? {} : { key: sampleOf(type.value, depth + 1, hasEmptyCollections) }
    case 'json':
      return { 'f:metadata': {} }
    default:
      return SCALARS[type.is]
  }
}

const sampleObject = ({ fields }: ObjectType, depth: number, hasEmptyCollections: boolean): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, sampleOf(field.type, depth + 1, hasEmptyCollections)]),
  )

const isDeeplyFrozen = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(isDeeplyFrozen))
