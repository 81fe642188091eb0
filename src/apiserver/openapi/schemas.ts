// Turns declarations into published schemas, together with all schemas they refer to. There is one collector per document,
// which then contains exactly the schemas that its operations use.
import { objectMeta } from '../../api/kinds/shared/meta-schema.ts'
import type { Field, ObjectType, Type } from '../../api/schema.ts'
import type { Resource } from '../resources.ts'
import type { Dialect, Schema } from './dialect.ts'
import { type Envelope, envelopeOf, type GroupVersionKind, listMeta } from './envelope-types.ts'

export interface Schemas {
  /** Each of these adds the schema if it is new, and returns its name. */
  kind(resource: Resource): string
  list(resource: Resource): string
  type(type: ObjectType): string
  patch(): string
  /** Everything added so far, by name. */
  all(): Readonly<Record<string, Schema>>
}

export interface SchemasOptions {
  readonly dialect: Dialect
  /** The group versions that the document covers. */
  readonly groupVersions: readonly { readonly group: string; readonly version: string }[]
}

export function createSchemas({ dialect, groupVersions }: SchemasOptions): Schemas {
  const added = new Map<string, Schema>()
  const core = { group: '', version: 'v1' }
  const envelopeVersions = [core, ...groupVersions.filter(({ group, version }) => group !== '' || version !== 'v1')]

  const add = (name: string, build: () => Schema): string => {
    if (!added.has(name)) {
      added.set(name, {}) // reserves the name, for types that contain themselves
      added.set(name, build())
    }
    return name
  }

  const declared = new Map<string, ObjectType>()
  const addType = (type: ObjectType): string => {
    const known = declared.get(type.name)
    if (known && known !== type) throw new Error(`two types are declared with the name ${type.name}`)
    declared.set(type.name, type)
    return add(type.name, () => objectSchema(type, envelopeOf(type, envelopeVersions)))
  }

  const objectSchema = (type: ObjectType, known: Envelope | undefined): Schema => {
    const entries = Object.entries(type.fields)
    const properties = {
      ...(known?.hasTypeMeta ? TYPE_META : {}),
      ...Object.fromEntries(entries.map(([name, field]) => [name, fieldSchema(field)])),
    }
    const required = entries.filter(([name, field]) => field.required && !isSetByServer(type, name))
    return {
      ...described(type.doc),
      type: 'object',
      ...(required.length > 0 ? { required: required.map(([name]) => name) } : {}),
      ...(Object.keys(properties).length > 0 ? { properties } : {}),
      ...(known ? { 'x-kubernetes-group-version-kind': known.kinds } : {}),
      ...(type.atomic ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    }
  }

  const fieldSchema = (field: Field): Schema => {
    const annotations = {
      ...described(field.doc),
      ...defaultOf(dialect, field),
      ...mergeExtensions(field),
      ...applyExtensions(field),
    }
    const name = refOf(field.type)
    if (!name) return { ...annotations, ...valueSchema(field.type) }
    return Object.keys(annotations).length > 0 ? dialect.refWith(name, annotations) : dialect.ref(name)
  }

  const valueSchema = (type: Type): Schema => {
    const name = refOf(type)
    if (name) return dialect.ref(name)
    switch (type.is) {
      case 'list':
        return { type: 'array', items: valueSchema(type.item) }
      case 'map':
        return { type: 'object', additionalProperties: valueSchema(type.value) }
      case 'string':
        return { type: 'string', ...(type.values ? { enum: type.values } : {}) }
      case 'boolean':
        return { type: 'boolean' }
      case 'int32':
      case 'int64':
        return { type: 'integer', format: type.is }
      case 'double':
        return { type: 'number', format: 'double' }
      case 'bytes':
        return { type: 'string', format: 'byte' }
      default:
        throw new Error(`there is no schema for values of type ${type.is}`)
    }
  }

  /** The name of the schema that a type is a reference to; undefined for types that are written inline. */
  const refOf = (type: Type): string | undefined => {
    switch (type.is) {
      case 'object':
        return addType(type)
      case 'quantity':
        return add(`${MACHINERY}.api.resource.Quantity`, () => ({
          description: 'An amount such as 10Gi or 500m: a number and a suffix for its scale.',
          ...dialect.either('string', 'number'),
        }))
      case 'intOrString':
        return add(`${MACHINERY}.util.intstr.IntOrString`, () => ({
          description: 'A whole number or a string, such as a port by number or by name.',
          format: 'int-or-string',
          ...dialect.either('integer', 'string'),
        }))
      case 'time':
        return add(`${MACHINERY}.apis.meta.v1.Time`, () => ({
          description: 'A point in time in RFC 3339 format, in whole seconds.',
          type: 'string',
          format: 'date-time',
        }))
      case 'microTime':
        return add(`${MACHINERY}.apis.meta.v1.MicroTime`, () => ({
          description: 'A point in time in RFC 3339 format, with microseconds.',
          type: 'string',
          format: 'date-time',
        }))
      case 'json':
        return type.encoding === 'fieldsV1'
          ? add(`${MACHINERY}.apis.meta.v1.FieldsV1`, () => ({
              description:
                'A set of fields as a tree: "f:" before field names, "k:" before list keys, "v:" before values.',
              type: 'object',
            }))
          : add(`${MACHINERY}.runtime.RawExtension`, () => ({ description: 'Any object.', type: 'object' }))
      default:
        return undefined
    }
  }

  const gvkOf = ({ group, version, kind }: Resource): GroupVersionKind => ({ group, version, kind: kind.kind })

  const schemas: Schemas = {
    kind: (resource) =>
      add(nameIn(resource), () => objectSchema(resource.kind.type, { kinds: [gvkOf(resource)], hasTypeMeta: true })),
    list: (resource) =>
      add(`${nameIn(resource)}List`, () => ({
        description: `A list of objects of kind ${resource.kind.kind}.`,
        type: 'object',
        required: ['items'],
        properties: {
          ...TYPE_META,
          items: { description: 'The objects.', type: 'array', items: dialect.ref(schemas.kind(resource)) },
          metadata: dialect.refWith(addType(listMeta), {
            description: 'Version of the list, and a continue token if it is not complete.',
            ...(dialect.defaults ? { default: {} } : {}),
          }),
        },
        'x-kubernetes-group-version-kind': [{ ...gvkOf(resource), kind: `${resource.kind.kind}List` }],
      })),
    type: addType,
    patch: () =>
      add(`${MACHINERY}.apis.meta.v1.Patch`, () => ({
        description: 'A patch, in the format of its media type.',
        type: 'object',
      })),
    all: () => Object.fromEntries([...added].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
  return schemas
}

const MACHINERY = 'io.k8s.apimachinery.pkg'

const TYPE_META = {
  apiVersion: { type: 'string', description: 'Group and version of the schema of the object.' },
  kind: { type: 'string', description: 'Kind of the object. Cannot be changed.' },
} as const

/**
 * Every version has its own schema; the types it refers to are shared.
 *   io.k8s.api.storage.v1.StorageClass served as v1beta1 → io.k8s.api.storage.v1beta1.StorageClass
 */
function nameIn({ kind, version }: Resource): string {
  const parts = kind.type.name.split('.')
  parts[parts.length - 2] = version
  return parts.join('.')
}

/** Always present in responses, but optional in requests. */
const isSetByServer = (type: ObjectType, field: string): boolean =>
  type.fields[field]?.type === objectMeta || SET_BY_SERVER.has(`${type.name}.${field}`)

const SET_BY_SERVER: ReadonlySet<string> = new Set([
  'io.k8s.api.core.v1.ContainerImage.names',
  'io.k8s.api.core.v1.Event.reportingComponent',
  'io.k8s.api.core.v1.Event.reportingInstance',
  'io.k8s.api.core.v1.NodeRuntimeHandler.name',
  'io.k8s.api.core.v1.ProjectedVolumeSource.sources',
  'io.k8s.api.storage.v1.CSINodeDriver.topologyKeys',
])

const described = (doc: string): Schema => (doc ? { description: doc } : {})

/** The value of an absent field: its declared default, or the zero value of a field that is always present. */
function defaultOf(dialect: Dialect, { type, default: declared, required, keepsEmpty }: Field): Schema {
  if (!dialect.defaults) return {}
  if (declared !== undefined) return { default: declared }
  if (type.is === 'object' && (required || !keepsEmpty)) return { default: {} }
  if (!required || (type.is === 'string' && type.values)) return {}
  const zero = ZERO_VALUES[type.is]
  return zero === undefined ? {} : { default: zero }
}

const ZERO_VALUES: Readonly<Record<string, string | number | boolean>> = {
  string: '',
  boolean: false,
  int32: 0,
  int64: 0,
  double: 0,
}

/** How a strategic merge patch treats the field. */
function mergeExtensions({ merge, retainKeys }: Field): Schema {
  const strategies = [...(merge === undefined ? [] : ['merge']), ...(retainKeys ? ['retainKeys'] : [])]
  return {
    ...(merge ? { 'x-kubernetes-patch-merge-key': merge } : {}),
    ...(strategies.length > 0 ? { 'x-kubernetes-patch-strategy': strategies.join(',') } : {}),
  }
}

/** Whether server-side apply owns the field as a whole or its parts. */
function applyExtensions({ type, list, keys, atomic }: Field): Schema {
  if (type.is === 'list') {
    return {
      'x-kubernetes-list-type': list ?? 'atomic',
      ...(keys ? { 'x-kubernetes-list-map-keys': keys } : {}),
    }
  }
  return atomic === undefined ? {} : { 'x-kubernetes-map-type': atomic ? 'atomic' : 'granular' }
}
