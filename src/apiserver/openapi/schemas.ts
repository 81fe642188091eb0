// Converts declared types to published schemas, including the schemas that they refer to. Each document has its own
// collection, which contains only the schemas that its operations use.
import { objectMeta } from '../../api/kinds/shared/meta-schema.ts'
import type { Field, ObjectType, Type } from '../../api/schema.ts'
import type { Resource } from '../resources.ts'
import type { Dialect, Schema } from './dialect.ts'
import { type Envelope, envelopeOf, type GroupVersionKind, listMeta } from './envelope-types.ts'

export interface Schemas {
  /** Adds a kind's schema if it is new, and returns its name. */
  addKind(resource: Resource): string
  /** Adds the schema of a kind's list if it is new, and returns its name. */
  addList(resource: Resource): string
  /** Adds the schema of a type if it is new, and returns its name. */
  addType(type: ObjectType): string
  /** Adds a patch's schema if it is new, and returns its name. */
  addPatch(): string
  /** Returns all added schemas by name. */
  all(): Readonly<Record<string, Schema>>
}

export interface SchemasOptions {
  readonly dialect: Dialect
  /** The group versions that the document covers. */
  readonly groupVersions: readonly { readonly group: string; readonly version: string }[]
}

export function createSchemas({ dialect, groupVersions }: SchemasOptions): Schemas {
  const schemasByName = new Map<string, Schema>()
  const core = { group: '', version: 'v1' }
  const envelopeVersions = [core, ...groupVersions.filter(({ group, version }) => group !== '' || version !== 'v1')]

  const add = (name: string, build: () => Schema): string => {
    if (!schemasByName.has(name)) {
      schemasByName.set(name, {}) // reserves the name, because a type may be recursive
      schemasByName.set(name, build())
    }
    return name
  }

  const typesByName = new Map<string, ObjectType>()
  const addType = (type: ObjectType): string => {
    const existingType = typesByName.get(type.name)
    if (existingType && existingType !== type) throw new Error(`two types are declared with the name ${type.name}`)
    typesByName.set(type.name, type)
    return add(type.name, () => objectSchema(type, envelopeOf(type, envelopeVersions)))
  }

  const objectSchema = (type: ObjectType, envelope: Envelope | undefined): Schema => {
    const entries = Object.entries(type.fields)
    const properties = {
      ...(envelope?.hasTypeMeta ? TYPE_META : {}),
      ...Object.fromEntries(entries.map(([name, field]) => [name, fieldSchema(field)])),
    }
    const requiredFields = entries.filter(([name, field]) => field.required && !isPublishedAsOptional(type, name))
    return {
      ...descriptionOf(type.doc),
      type: 'object',
      ...(requiredFields.length > 0 ? { required: requiredFields.map(([name]) => name) } : {}),
      ...(Object.keys(properties).length > 0 ? { properties } : {}),
      ...(envelope ? { 'x-kubernetes-group-version-kind': envelope.kinds } : {}),
      ...(type.atomic ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    }
  }

  const fieldSchema = (field: Field): Schema => {
    const annotations = {
      ...descriptionOf(field.doc),
      ...defaultOf(dialect, field),
      ...strategicMergePatchExtensions(field),
      ...serverSideApplyExtensions(field),
    }
    const name = referencedSchema(field.type)
    if (!name) return { ...annotations, ...valueSchema(field.type) }
    return Object.keys(annotations).length > 0 ? dialect.refWith(name, annotations) : dialect.ref(name)
  }

  const valueSchema = (type: Type): Schema => {
    const name = referencedSchema(type)
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

  /** Adds the schema that the type refers to, and returns its name. Returns undefined for inline types. */
  const referencedSchema = (type: Type): string | undefined => {
    switch (type.is) {
      case 'object':
        return addType(type)
      case 'quantity':
        return add(`${APIMACHINERY}.api.resource.Quantity`, () => ({
          description: 'An amount such as 10Gi or 500m: a number and a suffix for its scale.',
          ...dialect.oneOfTypes('string', 'number'),
        }))
      case 'intOrString':
        return add(`${APIMACHINERY}.util.intstr.IntOrString`, () => ({
          description: 'A whole number or a string, such as a port by number or by name.',
          format: 'int-or-string',
          ...dialect.oneOfTypes('integer', 'string'),
        }))
      case 'time':
        return add(`${APIMACHINERY}.apis.meta.v1.Time`, () => ({
          description: 'A point in time in RFC 3339 format, in whole seconds.',
          type: 'string',
          format: 'date-time',
        }))
      case 'microTime':
        return add(`${APIMACHINERY}.apis.meta.v1.MicroTime`, () => ({
          description: 'A point in time in RFC 3339 format, with microseconds.',
          type: 'string',
          format: 'date-time',
        }))
      case 'json':
        return type.encoding === 'fieldsV1'
          ? add(`${APIMACHINERY}.apis.meta.v1.FieldsV1`, () => ({
              description:
                'A set of fields as a tree: "f:" before field names, "k:" before list keys, "v:" before values.',
              type: 'object',
            }))
          : add(`${APIMACHINERY}.runtime.RawExtension`, () => ({ description: 'Any object.', type: 'object' }))
      default:
        return undefined
    }
  }

  const gvkOf = ({ group, version, kind }: Resource): GroupVersionKind => ({ group, version, kind: kind.kind })

  const schemas: Schemas = {
    addKind: (resource) =>
      add(versionedName(resource), () =>
        objectSchema(resource.kind.type, { kinds: [gvkOf(resource)], hasTypeMeta: true }),
      ),
    addList: (resource) =>
      add(`${versionedName(resource)}List`, () => ({
        description: `A list of objects of kind ${resource.kind.kind}.`,
        type: 'object',
        required: ['items'],
        properties: {
          ...TYPE_META,
          items: { description: 'The objects.', type: 'array', items: dialect.ref(schemas.addKind(resource)) },
          metadata: dialect.refWith(addType(listMeta), {
            description: 'Version of the list, and a continue token if it is not complete.',
            ...(dialect.publishesDefaults ? { default: {} } : {}),
          }),
        },
        'x-kubernetes-group-version-kind': [{ ...gvkOf(resource), kind: `${resource.kind.kind}List` }],
      })),
    addType: addType,
    addPatch: () =>
      add(`${APIMACHINERY}.apis.meta.v1.Patch`, () => ({
        description: 'A patch, in the format of its media type.',
        type: 'object',
      })),
    all: () => Object.fromEntries([...schemasByName].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
  return schemas
}

const APIMACHINERY = 'io.k8s.apimachinery.pkg'

const TYPE_META = {
  apiVersion: { type: 'string', description: 'Group and version of the schema of the object.' },
  kind: { type: 'string', description: 'Kind of the object. Cannot be changed.' },
} as const

/**
 * Returns the name of a kind's schema in the version of the resource. The types that it refers to are shared.
 *   io.k8s.api.storage.v1.StorageClass served as v1beta1 → io.k8s.api.storage.v1beta1.StorageClass
 */
function versionedName({ kind, version }: Resource): string {
  const parts = kind.type.name.split('.')
  parts[parts.length - 2] = version
  return parts.join('.')
}

/** Whether the field is published as optional, although it is declared as required. */
const isPublishedAsOptional = (type: ObjectType, field: string): boolean =>
  type.fields[field]?.type === objectMeta || PUBLISHED_AS_OPTIONAL.has(`${type.name}.${field}`)

const PUBLISHED_AS_OPTIONAL: ReadonlySet<string> = new Set([
  'io.k8s.api.core.v1.ContainerImage.names',
  'io.k8s.api.core.v1.Event.reportingComponent',
  'io.k8s.api.core.v1.Event.reportingInstance',
  'io.k8s.api.core.v1.NodeRuntimeHandler.name',
  'io.k8s.api.core.v1.ProjectedVolumeSource.sources',
  'io.k8s.api.storage.v1.CSINodeDriver.topologyKeys',
])

const descriptionOf = (doc: string): Schema => (doc ? { description: doc } : {})

function defaultOf(
  dialect: Dialect,
  { type, default: declaredDefault, required: isRequired, keepsEmpty }: Field,
): Schema {
  if (!dialect.publishesDefaults) return {}
  if (declaredDefault !== undefined) return { default: declaredDefault }
  if (type.is === 'object' && (isRequired || !keepsEmpty)) return { default: {} }
  if (!isRequired || (type.is === 'string' && type.values)) return {}
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

/** Returns the extensions for strategic merge patch. */
function strategicMergePatchExtensions({ merge, retainKeys }: Field): Schema {
  const strategies = [...(merge === undefined ? [] : ['merge']), ...(retainKeys ? ['retainKeys'] : [])]
  return {
    ...(merge ? { 'x-kubernetes-patch-merge-key': merge } : {}),
    ...(strategies.length > 0 ? { 'x-kubernetes-patch-strategy': strategies.join(',') } : {}),
  }
}

/** Returns the extensions for server-side apply. */
function serverSideApplyExtensions({ type, list, keys, atomic }: Field): Schema {
  if (type.is === 'list') {
    return {
      'x-kubernetes-list-type': list ?? 'atomic',
      ...(keys ? { 'x-kubernetes-list-map-keys': keys } : {}),
    }
  }
  return atomic === undefined ? {} : { 'x-kubernetes-map-type': atomic ? 'atomic' : 'granular' }
}
