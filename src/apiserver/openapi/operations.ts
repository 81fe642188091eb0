// Describes the operations on the resources of one group version: paths, parameters, bodies and responses.
// document-v3.ts and document-v2.ts convert the descriptions to their formats.
import { binding } from '../../api/kinds/pod/pod-schema.ts'
import { tokenRequest } from '../../api/kinds/service-account/token-request-schema.ts'
import { deleteOptions, eviction } from '../../api/kinds/shared/delete-options-schema.ts'
import { scale } from '../../api/kinds/stateful-set/scale.ts'
import { PROTOBUF_MEDIA } from '../../api/protobuf/envelope.ts'
import type { ObjectType } from '../../api/schema.ts'
import { resourcesOf, type Subresource, subresourcesOf, verbsOf } from '../discovery/index.ts'
import type { Verb } from '../http/route.ts'
import type { Resource, Resources } from '../resources.ts'
import { PATCH_MEDIA, SCALE_PATCH_MEDIA } from '../verbs/patch.ts'
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
  /** Parameters that are common to all operations on the path. */
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
  /** Schemas of the responses by status code, without 401, which all operations have. */
  readonly responses: Readonly<Record<number, string>>
  /** Whether the response may be a stream of watch events. */
  readonly streams: boolean
}

export const RESPONSE_MEDIA = ['application/json', 'application/yaml', PROTOBUF_MEDIA]
export const STREAM_MEDIA = 'application/json;stream=watch'
export const STATUS_TEXT: Readonly<Record<number, string>> = { 200: 'OK', 201: 'Created', 202: 'Accepted' }

/** Returns the paths of a group version, and adds the schemas of their operations to `schemas`. */
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
  const verbs = kind.isForeign ? FOREIGN_VERBS : verbsOf(kind)

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
    const list = listOperation(resource, schemas, `list${resourceId(resource, '')}ForAllNamespaces`)
    paths.unshift({ path: `${root}/${plural}`, parameters: [PRETTY], operations: { get: list } })
  }
  return paths.filter(({ operations }) => Object.keys(operations).length > 0)
}

/**
 * Includes verbs that the server rejects: if PATCH has fieldValidation, kubectl lets the server validate a manifest, and
 * prints that the kind is not stored. Otherwise it reports each field as unknown.
 */
const FOREIGN_VERBS: readonly Verb[] = ['create', 'get', 'list', 'patch', 'watch']

function collectionOperations(resource: Resource, verbs: readonly Verb[], schemas: Schemas): PathItem['operations'] {
  const { kind } = resource.kind
  const name = schemas.addKind(resource)
  return {
    ...(verbs.includes('list') ? { get: listOperation(resource, schemas, `list${resourceId(resource)}`) } : {}),
    ...(verbs.includes('create')
      ? {
          post: {
            ...commonFields(resource, 'post'),
            id: `create${resourceId(resource)}`,
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
            ...commonFields(resource, 'deletecollection'),
            id: `delete${groupId(resource)}Collection${objectId(resource)}`,
            doc: `Delete all objects of kind ${kind} that match.`,
            parameters: DELETE_COLLECTION_PARAMETERS,
            body: { ...bodyOf(schemas.addType(deleteOptions)), required: false },
            responses: { 200: schemas.addType(status) },
          },
        }
      : {}),
  }
}

function listOperation(resource: Resource, schemas: Schemas, id: string): Operation {
  schemas.addType(watchEvent)
  return {
    ...commonFields(resource, 'list'),
    id,
    doc: `List or watch objects of kind ${resource.kind.kind}.`,
    parameters: LIST_PARAMETERS,
    responses: { 200: schemas.addList(resource) },
    streams: true,
  }
}

function itemOperations(resource: Resource, verbs: readonly Verb[], schemas: Schemas): PathItem['operations'] {
  const { kind, deleteReturnsObject } = resource.kind
  const name = schemas.addKind(resource)
  const deleteResponse = deleteReturnsObject ? name : schemas.addType(status)
  return {
    ...objectOperations(resource, verbs, schemas, { suffix: '', subject: `the ${kind}` }),
    ...(verbs.includes('delete')
      ? {
          delete: {
            ...commonFields(resource, 'delete'),
            id: `delete${resourceId(resource)}`,
            doc: `Delete the ${kind}.`,
            parameters: DELETE_PARAMETERS,
            body: { ...bodyOf(schemas.addType(deleteOptions)), required: false },
            responses: { 200: deleteResponse, 202: deleteResponse },
          },
        }
      : {}),
  }
}

function subresourceOperations(
  resource: Resource,
  { name, verbs, body, isStream }: Subresource,
  schemas: Schemas,
): PathItem['operations'] {
  const { kind } = resource.kind
  const suffix = capitalize(name)
  if (isStream) return {}
  if (!body) return objectOperations(resource, verbs, schemas, { suffix, subject: `the ${name} of the ${kind}` })
  const type = BODY_TYPES[body.kind]
  if (!type)
    throw new Error(`subresource ${resource.plural}/${name}: there is no declared type for its body, ${body.kind}`)
  const schema = schemas.addType(type)
  const subject = `the ${name} of the ${kind}`
  if (verbs.includes('get'))
    return objectOperations(resource, verbs, schemas, { suffix, subject, body: { schema, gvk: body } })
  return {
    post: {
      ...commonFields(resource, 'post'),
      gvk: body,
      id: `create${resourceId(resource)}${suffix}`,
      doc: `Create a ${body.kind} for the ${kind}.`,
      parameters: WRITE_PARAMETERS,
      body: bodyOf(schema),
      responses: { 200: schema, 201: schema, 202: schema },
    },
  }
}

const BODY_TYPES: Readonly<Record<string, ObjectType>> = {
  Binding: binding,
  Eviction: eviction,
  Scale: scale,
  TokenRequest: tokenRequest,
}

/** Returns GET, PUT and PATCH of an object or of a subresource, whose body is the object unless `body` is set. */
function objectOperations(
  resource: Resource,
  verbs: readonly Verb[],
  schemas: Schemas,
  {
    suffix,
    subject,
    body,
  }: { suffix: string; subject: string; body?: { readonly schema: string; readonly gvk: GroupVersionKind } },
): PathItem['operations'] {
  const name = body?.schema ?? schemas.addKind(resource)
  const gvk = body ? { gvk: body.gvk } : {}
  const patchMedia = body ? SCALE_PATCH_MEDIA : PATCH_MEDIA
  const responses = { 200: name, 201: name }
  return {
    ...(verbs.includes('get')
      ? {
          get: {
            ...commonFields(resource, 'get'),
            ...gvk,
            id: `read${resourceId(resource)}${suffix}`,
            doc: `Read ${subject}.`,
            parameters: [],
            responses: { 200: name },
          },
        }
      : {}),
    ...(verbs.includes('update')
      ? {
          put: {
            ...commonFields(resource, 'put'),
            ...gvk,
            id: `replace${resourceId(resource)}${suffix}`,
            doc: `Replace ${subject}.`,
            parameters: WRITE_PARAMETERS,
            body: bodyOf(name),
            responses,
          },
        }
      : {}),
    ...(verbs.includes('patch')
      ? {
          patch: {
            ...commonFields(resource, 'patch'),
            ...gvk,
            id: `patch${resourceId(resource)}${suffix}`,
            doc: `Patch ${subject}.`,
            parameters: PATCH_PARAMETERS,
            body: { schema: schemas.addPatch(), required: true, media: patchMedia },
            responses,
          },
        }
      : {}),
  }
}

const commonFields = ({ group, version, kind }: Resource, action: string) => ({
  tag: `${shortGroup(group).replaceAll('.', '_')}_${version}`,
  action,
  gvk: { group, version, kind: kind.kind },
  streams: false,
})

const bodyOf = (schema: string) => ({ schema, required: true, media: ['*/*'] })

/** Returns the part of an operation ID that identifies the resource: `CoreV1NamespacedPod`, `StorageV1StorageClass`. */
const resourceId = (resource: Resource, scope = scopeOf(resource)): string =>
  `${groupId(resource)}${scope}${resource.kind.kind}`
const objectId = (resource: Resource): string => `${scopeOf(resource)}${resource.kind.kind}`
const scopeOf = ({ kind }: Resource): string => (kind.namespaced ? 'Namespaced' : '')
const groupId = ({ group, version }: Resource): string =>
  shortGroup(group).split('.').map(capitalize).join('') + capitalize(version)

/** `storage.k8s.io` → `storage`, `rbac.authorization.k8s.io` → `rbac.authorization`. */
const shortGroup = (group: string): string => group.replace(/\.k8s\.io$/, '') || 'core'
const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
