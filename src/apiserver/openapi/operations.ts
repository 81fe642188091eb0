// The operations on the resources of one group version, as data: paths, parameters, bodies and responses.
// document-v3.ts and document-v2.ts render them.
import { binding } from '../../api/kinds/pod/pod-schema.ts'
import { deleteOptions, eviction } from '../../api/kinds/shared/delete-options-schema.ts'
import type { ObjectType } from '../../api/schema.ts'
import { resourcesOf, type Subresource, subresourcesOf, verbsOf } from '../discovery/index.ts'
import type { Verb } from '../http/route.ts'
import type { Resource, Resources } from '../resources.ts'
import { PATCH_MEDIA } from '../verbs/patch.ts'
import { type GroupVersionKind, status, watchEvent } from './envelope-types.ts'
import {
  DELETE_COLLECTION_PARAMETERS,
  DELETE_PARAMETERS,
  LIST_PARAMETERS,
  NAMESPACE,
  nameParameter,
  PATCH_PARAMETERS,
  type Parameter,
  PRETTY,
  WRITE_PARAMETERS,
} from './parameters.ts'
import type { Schemas } from './schemas.ts'

type Method = 'get' | 'put' | 'post' | 'delete' | 'patch'

export interface PathItem {
  readonly path: string
  /** Common to all operations on the path. */
  readonly parameters: readonly Parameter[]
  readonly operations: Readonly<Partial<Record<Method, Operation>>>
}

export interface Operation {
  readonly id: string
  readonly doc: string
  readonly tag: string
  readonly action: string
  readonly gvk: GroupVersionKind
  readonly parameters: readonly Parameter[]
  readonly body?: { readonly schema: string; readonly required: boolean; readonly media: readonly string[] }
  /** Schema of the response by status code. 401 is possible for every operation. */
  readonly responses: Readonly<Record<number, string>>
  /** The response may also be a stream of watch events. */
  readonly streams: boolean
}

export const RESPONSE_MEDIA = ['application/json', 'application/yaml']
export const STREAM_MEDIA = 'application/json;stream=watch'
export const STATUS_TEXT: Readonly<Record<number, string>> = { 200: 'OK', 201: 'Created', 202: 'Accepted' }

/** Adds all schemas that the operations refer to to `schemas`. */
export function pathItems(resources: Resources, group: string, version: string, schemas: Schemas): readonly PathItem[] {
  return resourcesOf(resources, group, version).flatMap((resource) => resourcePaths(resource, schemas))
}

function resourcePaths(resource: Resource, schemas: Schemas): PathItem[] {
  const { kind, group, version, plural } = resource
  const root = group ? `/apis/${group}/${version}` : `/api/${version}`
  const scope = kind.namespaced ? '/namespaces/{namespace}' : ''
  const namespace = kind.namespaced ? [NAMESPACE] : []
  const collection = `${root}${scope}/${plural}`
  const item = `${collection}/{name}`
  const itemParameters = [nameParameter(kind.kind), ...namespace, PRETTY]
  const verbs = verbsOf(kind)

  const paths: PathItem[] = [
    {
      path: collection,
      parameters: [...namespace, PRETTY],
      operations: collectionOperations(resource, verbs, schemas),
    },
    { path: item, parameters: itemParameters, operations: itemOperations(resource, verbs, schemas) },
    ...subresourcesOf(kind).map((subresource) => ({
      path: `${item}/${subresource.name}`,
      parameters: itemParameters,
      operations: subresourceOperations(resource, subresource, schemas),
    })),
  ]
  if (kind.namespaced && verbs.includes('list')) {
    const list = listOperation(resource, schemas, `list${named(resource, '')}ForAllNamespaces`)
    paths.unshift({ path: `${root}/${plural}`, parameters: [PRETTY], operations: { get: list } })
  }
  return paths.filter(({ operations }) => Object.keys(operations).length > 0)
}

function collectionOperations(resource: Resource, verbs: readonly Verb[], schemas: Schemas): PathItem['operations'] {
  const { kind } = resource.kind
  const name = schemas.kind(resource)
  return {
    ...(verbs.includes('list') ? { get: listOperation(resource, schemas, `list${named(resource)}`) } : {}),
    ...(verbs.includes('create')
      ? {
          post: {
            ...common(resource, 'post'),
            id: `create${named(resource)}`,
            doc: `Create a ${kind}.`,
            parameters: WRITE_PARAMETERS,
            body: bodyOf(name),
            responses: { 200: name, 201: name, 202: name },
          },
        }
      : {}),
    ...(verbs.includes('deletecollection')
      ? {
          delete: {
            ...common(resource, 'deletecollection'),
            id: `delete${groupPart(resource)}Collection${objectPart(resource)}`,
            doc: `Delete all objects of kind ${kind} that match.`,
            parameters: DELETE_COLLECTION_PARAMETERS,
            body: { ...bodyOf(schemas.type(deleteOptions)), required: false },
            responses: { 200: schemas.type(status) },
          },
        }
      : {}),
  }
}

function listOperation(resource: Resource, schemas: Schemas, id: string): Operation {
  schemas.type(watchEvent)
  return {
    ...common(resource, 'list'),
    id,
    doc: `List or watch objects of kind ${resource.kind.kind}.`,
    parameters: LIST_PARAMETERS,
    responses: { 200: schemas.list(resource) },
    streams: true,
  }
}

function itemOperations(resource: Resource, verbs: readonly Verb[], schemas: Schemas): PathItem['operations'] {
  const { kind, deleteReturnsObject } = resource.kind
  const name = schemas.kind(resource)
  const deleted = deleteReturnsObject ? name : schemas.type(status)
  return {
    ...readAndWrite(resource, verbs, schemas, { suffix: '', what: `the ${kind}` }),
    ...(verbs.includes('delete')
      ? {
          delete: {
            ...common(resource, 'delete'),
            id: `delete${named(resource)}`,
            doc: `Delete the ${kind}.`,
            parameters: DELETE_PARAMETERS,
            body: { ...bodyOf(schemas.type(deleteOptions)), required: false },
            responses: { 200: deleted, 202: deleted },
          },
        }
      : {}),
  }
}

function subresourceOperations(
  resource: Resource,
  { name, verbs, body }: Subresource,
  schemas: Schemas,
): PathItem['operations'] {
  const { kind } = resource.kind
  const suffix = capitalized(name)
  if (!body) return readAndWrite(resource, verbs, schemas, { suffix, what: `the ${name} of the ${kind}` })
  const type = BODY_TYPES[body.kind]
  if (!type)
    throw new Error(`subresource ${resource.plural}/${name}: there is no declared type for its body, ${body.kind}`)
  const schema = schemas.type(type)
  return {
    post: {
      ...common(resource, 'post'),
      gvk: body,
      id: `create${named(resource)}${suffix}`,
      doc: `Create a ${body.kind} for the ${kind}.`,
      parameters: WRITE_PARAMETERS,
      body: bodyOf(schema),
      responses: { 200: schema, 201: schema, 202: schema },
    },
  }
}

const BODY_TYPES: Readonly<Record<string, ObjectType>> = { Binding: binding, Eviction: eviction }

/** GET, PUT and PATCH of an object or of a subresource that shows the object. */
function readAndWrite(
  resource: Resource,
  verbs: readonly Verb[],
  schemas: Schemas,
  { suffix, what }: { suffix: string; what: string },
): PathItem['operations'] {
  const name = schemas.kind(resource)
  const responses = { 200: name, 201: name }
  return {
    ...(verbs.includes('get')
      ? {
          get: {
            ...common(resource, 'get'),
            id: `read${named(resource)}${suffix}`,
            doc: `Read ${what}.`,
            parameters: [],
            responses: { 200: name },
          },
        }
      : {}),
    ...(verbs.includes('update')
      ? {
          put: {
            ...common(resource, 'put'),
            id: `replace${named(resource)}${suffix}`,
            doc: `Replace ${what}.`,
            parameters: WRITE_PARAMETERS,
            body: bodyOf(name),
            responses,
          },
        }
      : {}),
    ...(verbs.includes('patch')
      ? {
          patch: {
            ...common(resource, 'patch'),
            id: `patch${named(resource)}${suffix}`,
            doc: `Patch ${what}.`,
            parameters: PATCH_PARAMETERS,
            body: { schema: schemas.patch(), required: true, media: PATCH_MEDIA },
            responses,
          },
        }
      : {}),
  }
}

const common = ({ group, version, kind }: Resource, action: string) => ({
  tag: `${shortGroup(group).replaceAll('.', '_')}_${version}`,
  action,
  gvk: { group, version, kind: kind.kind },
  streams: false,
})

const bodyOf = (schema: string) => ({ schema, required: true, media: ['*/*'] })

/** The middle part of an operation's id: `CoreV1NamespacedPod`, `StorageV1StorageClass`. */
const named = (resource: Resource, scope = scopeOf(resource)): string =>
  `${groupPart(resource)}${scope}${resource.kind.kind}`
const objectPart = (resource: Resource): string => `${scopeOf(resource)}${resource.kind.kind}`
const scopeOf = ({ kind }: Resource): string => (kind.namespaced ? 'Namespaced' : '')
const groupPart = ({ group, version }: Resource): string =>
  shortGroup(group).split('.').map(capitalized).join('') + capitalized(version)

/** `storage.k8s.io` → `storage`, `rbac.authorization.k8s.io` → `rbac.authorization`. */
const shortGroup = (group: string): string => group.replace(/\.k8s\.io$/, '') || 'core'
const capitalized = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
