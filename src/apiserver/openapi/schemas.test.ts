import { describe, expect, it } from 'vitest'
import { deleteOptions } from '../../api/kinds/shared/delete-options-schema.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import {
  boolean,
  bytes,
  double,
  type FieldExtras,
  fieldsV1,
  int32,
  int64,
  intOrString,
  list,
  map,
  microTime,
  type ObjectType,
  object,
  oneOf,
  opt,
  ptr,
  quantity,
  rawJson,
  req,
  string,
  type Type,
  time,
} from '../../api/schema.ts'
import { createResources } from '../resources.ts'
import type { Json } from '../server.fixture.ts'
import { openApi3, swagger2 } from './dialect.ts'
import { createSchemas, type Schemas } from './schemas.ts'

const groupVersions = [{ group: 'storage.k8s.io', version: 'v1' }]
const createOpenApi3Schemas = () => createSchemas({ dialect: openApi3, groupVersions })
const createSwagger2Schemas = () => createSchemas({ dialect: swagger2, groupVersions })

const room = object('io.example.v1.Room', 'A room.', { doors: req(1, int32, 'Number of doors.') })
const house = (fields: ObjectType['fields']) => object('io.example.v1.House', 'A house.', fields)

/** Returns the published schema of a type. */
const schemaOf = (schemas: Schemas, type: ObjectType): Json => {
  const name = schemas.addType(type)
  return schemas.all()[name]
}

/** Returns the published schema of a field of this type. */
const publishedFieldSchema = (type: Type, extras: FieldExtras = {}): Json =>
  schemaOf(createOpenApi3Schemas(), house({ value: ptr(1, type, '', extras) })).properties.value

describe('schemas of values', () => {
  const CASES: readonly [string, Type, object][] = [
    ['a string', string, { type: 'string' }],
    ['an enum', oneOf('Retain', 'Delete'), { type: 'string', enum: ['Retain', 'Delete'] }],
    ['a boolean', boolean, { type: 'boolean' }],
    ['an int32', int32, { type: 'integer', format: 'int32' }],
    ['an int64', int64, { type: 'integer', format: 'int64' }],
    ['a double', double, { type: 'number', format: 'double' }],
    ['bytes', bytes, { type: 'string', format: 'byte' }],
    ['a map', map(string), { type: 'object', additionalProperties: { type: 'string' } }],
    [
      'a list',
      list(int32),
      { type: 'array', items: { type: 'integer', format: 'int32' }, 'x-kubernetes-list-type': 'atomic' },
    ],
    ['a quantity', quantity, { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity' }],
    ['an int or string', intOrString, { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString' }],
    ['a time', time, { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Time' }],
    ['a micro time', microTime, { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime' }],
    ['a field set', fieldsV1, { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1' }],
    ['raw JSON', rawJson, { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.runtime.RawExtension' }],
    ['an object', room, { $ref: '#/components/schemas/io.example.v1.Room' }],
    [
      'a map of objects',
      map(room),
      { type: 'object', additionalProperties: { $ref: '#/components/schemas/io.example.v1.Room' } },
    ],
  ]
  for (const [description, type, schema] of CASES) {
    it(`SYS-2 describe ${description}`, () => expect(publishedFieldSchema(type)).toEqual(schema))
  }

  it('include the schemas they refer to', () => {
    const schemas = createOpenApi3Schemas()
    schemas.addType(house({ rooms: opt(1, list(room), ''), size: opt(2, quantity, '') }))
    expect(schemas.all()).toMatchObject({
      'io.example.v1.Room': { description: 'A room.', required: ['doors'] },
      'io.k8s.apimachinery.pkg.api.resource.Quantity': { oneOf: [{ type: 'string' }, { type: 'number' }] },
    })
  })

  it('must have unique names', () => {
    const schemas = createOpenApi3Schemas()
    schemas.addType(house({}))
    expect(() => schemas.addType(house({ rooms: opt(1, list(room), '') }))).toThrow(
      'two types are declared with the name io.example.v1.House',
    )
  })

  it('may be recursive', () => {
    const fields: Record<string, Json> = {}
    const box = object('io.example.v1.Box', 'A box.', fields)
    fields.inside = ptr(1, list(box), '')
    expect(schemaOf(createOpenApi3Schemas(), box).properties.inside.items).toEqual({
      $ref: '#/components/schemas/io.example.v1.Box',
    })
  })
})

describe('schemas of fields', () => {
  it('SYS-2 contain the strategic merge patch extensions', () => {
    expect(publishedFieldSchema(list(room), { merge: 'doors' })).toMatchObject({
      'x-kubernetes-patch-merge-key': 'doors',
      'x-kubernetes-patch-strategy': 'merge',
    })
    expect(publishedFieldSchema(list(room), { merge: 'doors', retainKeys: true })['x-kubernetes-patch-strategy']).toBe(
      'merge,retainKeys',
    )
    expect(publishedFieldSchema(room, { retainKeys: true })['x-kubernetes-patch-strategy']).toBe('retainKeys')
    const setSchema = publishedFieldSchema(list(string), { merge: '' })
    expect(setSchema['x-kubernetes-patch-strategy']).toBe('merge')
    expect(setSchema).not.toHaveProperty('x-kubernetes-patch-merge-key')
  })

  it('SYS-2 contain the server-side apply extensions', () => {
    expect(publishedFieldSchema(list(room), { list: 'map', keys: ['doors'] })).toMatchObject({
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['doors'],
    })
    expect(publishedFieldSchema(list(string), { list: 'set' })['x-kubernetes-list-type']).toBe('set')
    expect(publishedFieldSchema(room, { atomic: true })['x-kubernetes-map-type']).toBe('atomic')
    expect(publishedFieldSchema(room, { atomic: false })['x-kubernetes-map-type']).toBe('granular')
    const atomicType = object(
      'io.example.v1.Key',
      'A key.',
      { teeth: req(1, int32, 'Number of teeth.') },
      { atomic: true },
    )
    expect(schemaOf(createOpenApi3Schemas(), atomicType)['x-kubernetes-map-type']).toBe('atomic')
    expect(publishedFieldSchema(map(string), { atomic: true })['x-kubernetes-map-type']).toBe('atomic')
  })

  it('describe a reference as each dialect requires', () => {
    const type = house({ kitchen: opt(1, room, 'The kitchen.') })
    expect(schemaOf(createOpenApi3Schemas(), type).properties.kitchen).toEqual({
      allOf: [{ $ref: '#/components/schemas/io.example.v1.Room' }],
      default: {},
      description: 'The kitchen.',
    })
    expect(schemaOf(createSwagger2Schemas(), type).properties.kitchen).toEqual({
      $ref: '#/definitions/io.example.v1.Room',
      description: 'The kitchen.',
    })
  })

  it('contain the default of a field', () => {
    const schemas = createOpenApi3Schemas()
    const name = schemas.addType(
      house({
        owner: req(1, string, ''),
        floors: req(2, int32, ''),
        attic: ptr(3, room, ''), // an absent value differs from an empty one
        cellar: opt(4, room, ''),
        mode: opt(5, string, '', { default: 'Filesystem' }),
        built: req(6, time, ''),
      }),
    )
    const { properties } = schemas.all()[name] as Json
    const defaults = Object.entries<Json>(properties).map(([field, schema]) => [field, schema.default])
    expect(Object.fromEntries(defaults)).toEqual({
      owner: '',
      floors: 0,
      attic: undefined,
      cellar: {},
      mode: 'Filesystem',
      built: undefined,
    })
  })

  it('are strings in Swagger 2 if two types are possible', () => {
    const schemas = createSwagger2Schemas()
    schemas.addType(house({ size: opt(1, quantity, ''), number: opt(2, intOrString, '') }))
    expect(schemas.all()).toMatchObject({
      'io.k8s.apimachinery.pkg.api.resource.Quantity': { type: 'string' },
      'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { type: 'string', format: 'int-or-string' },
    })
  })
})

describe('schemas of kinds', () => {
  const resources = createResources([storageClassKind])
  const v1 = resources.find('storage.k8s.io', 'v1', 'storageclasses')!
  const v1beta1 = resources.find('storage.k8s.io', 'v1beta1', 'storageclasses')!

  it('SYS-2 contain their group, version and kind', () => {
    const schemas = createOpenApi3Schemas()
    const name = schemas.addKind(v1)
    expect(name).toBe('io.k8s.api.storage.v1.StorageClass')
    expect(schemas.all()[name]).toMatchObject({
      type: 'object',
      required: ['provisioner'], // metadata is not required
      properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, provisioner: { type: 'string' } },
      'x-kubernetes-group-version-kind': [{ group: 'storage.k8s.io', version: 'v1', kind: 'StorageClass' }],
    })
  })

  it('have the same properties in each version', () => {
    const schemas = createOpenApi3Schemas()
    const [v1beta1Name, v1Name] = [schemas.addKind(v1beta1), schemas.addKind(v1)]
    expect(v1beta1Name).toBe('io.k8s.api.storage.v1beta1.StorageClass')
    expect((schemas.all()[v1beta1Name] as Json).properties).toEqual((schemas.all()[v1Name] as Json).properties)
  })

  it('include the list of the kind', () => {
    const schemas = createOpenApi3Schemas()
    const name = schemas.addList(v1)
    expect(name).toBe('io.k8s.api.storage.v1.StorageClassList')
    expect(schemas.all()[name]).toMatchObject({
      required: ['items'],
      properties: {
        items: { type: 'array', items: { $ref: '#/components/schemas/io.k8s.api.storage.v1.StorageClass' } },
      },
      'x-kubernetes-group-version-kind': [{ group: 'storage.k8s.io', version: 'v1', kind: 'StorageClassList' }],
    })
  })

  it('include DeleteOptions for the core group and every group version of the document', () => {
    expect(schemaOf(createOpenApi3Schemas(), deleteOptions)).toMatchObject({
      'x-kubernetes-group-version-kind': [
        { group: '', version: 'v1', kind: 'DeleteOptions' },
        { group: 'storage.k8s.io', version: 'v1', kind: 'DeleteOptions' },
      ],
    })
  })
})
