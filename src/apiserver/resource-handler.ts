// Answers requests for resources: picks the verb, reads its options and body, and writes the answer in the
// form the client accepts. The verbs themselves are the files beside this one.

import type { JsonValue } from '../api/json-value.ts'
import type { KubeObject } from '../api/kind.ts'
import { deleteOptions } from '../api/kinds/shared/delete-options-schema.ts'
import { badRequest, methodNotAllowed, noSuchPath, type StatusDetails } from '../api/status-error.ts'
import type { Entry } from '../store/index.ts'
import { findSubresource, verbsOf } from './discovery/index.ts'
import { checkKind, decodeObjectBody, parseBody } from './http/body.ts'
import { type ApiAnswer, type ApiRequest, bytesAnswer, JSON_TYPE, jsonAnswer, warningHeaders } from './http/exchange.ts'
import { type Accepted, type Form, negotiate } from './http/negotiate.ts'
import {
  checkPatchOptions,
  parseDeleteOptions,
  parseGetVersion,
  parseListOptions,
  parseWriteOptions,
  type WriteOptions,
} from './http/options.ts'
import type { ResourceRequest } from './http/route.ts'
import { type IncludeObject, partialOf, tableOf } from './http/table.ts'
import { answerBytes, listBytes } from './objects/stored-object.ts'
import { faceOf, type ObjectDeps, type WriteTarget, type Written } from './objects/write-deps.ts'
import type { Resource } from './resources.ts'
import { answerReview, type ReviewDeps } from './reviews.ts'
import type { UserInfo } from './security/index.ts'
import { applyOf, isApply, parseApplyBody } from './verbs/apply.ts'
import { CREATE_SUBRESOURCES, mergeFinalize } from './verbs/bind.ts'
import { createObject } from './verbs/create.ts'
import { deleteObject } from './verbs/delete.ts'
import { getObject, type Listed, listObjects } from './verbs/list.ts'
import { parsePatch } from './verbs/patch.ts'
import { updateObject } from './verbs/update.ts'
import { openWatch } from './verbs/watch.ts'

export interface ResourceCall {
  readonly request: ApiRequest
  readonly route: ResourceRequest
  readonly resource: Resource
  readonly user: UserInfo
}

/** `reviews` answers the kinds that are questions. */
export function handleResource(deps: ObjectDeps, call: ResourceCall, reviews: ReviewDeps): Promise<ApiAnswer> {
  checkScope(call)
  if (call.resource.kind.isReview) return handleReview(reviews, call)
  switch (call.route.verb) {
    case 'get':
      return handleGet(deps, call)
    case 'list':
      return handleList(deps, call)
    case 'watch':
      return handleWatch(deps, call)
    case 'create':
      return handleCreate(deps, call)
    case 'update':
      return handleUpdate(deps, call)
    case 'patch':
      return handlePatch(deps, call)
    case 'delete':
      return handleDelete(deps, call)
    case 'deletecollection':
      return handleDeleteCollection(deps, call)
  }
}

/** Namespaced objects live in a namespace; only lists and watches span them all. */
function checkScope({ route, resource }: ResourceCall): void {
  const { namespaced } = resource.kind
  const isNamespaceKind = resource.group === '' && resource.plural === 'namespaces'
  if (!namespaced && route.namespace && !isNamespaceKind) throw noSuchPath()
  if (namespaced && !route.namespace) {
    if (route.name) throw noSuchPath()
    if (route.verb === 'create' || route.verb === 'deletecollection') throw methodNotAllowed()
  }
  const served =
    route.subresource === '' ? verbsOf(resource.kind) : findSubresource(resource.kind, route.subresource)?.verbs
  if (!served) throw noSuchPath()
  if (!served.includes(route.verb)) throw methodNotAllowed()
  if (route.subresource !== '') return
  if (route.verb === 'create' && route.name) throw methodNotAllowed()
  if ((route.verb === 'update' || route.verb === 'patch') && !route.name) throw methodNotAllowed()
}

type TargetOptions = Pick<WriteOptions, 'dryRun'> & Partial<Pick<WriteOptions, 'fieldManager'>>

const targetOf = ({ route, resource, user }: ResourceCall, { dryRun, fieldManager }: TargetOptions): WriteTarget => ({
  resource,
  namespace: resource.kind.namespaced ? route.namespace : '',
  name: route.name,
  subresource: route.subresource,
  user,
  dryRun,
  fieldManager,
})

async function handleGet(deps: ObjectDeps, call: ResourceCall): Promise<ApiAnswer> {
  const { request, route, resource } = call
  const accepted = accept(request, ['table', 'partial'])
  const entry = await getObject(deps, resource, route.namespace, route.name, parseGetVersion(request.query))
  return objectAnswer(deps, call, accepted, 200, entry.value, entry.modRevision, [])
}

async function handleList(deps: ObjectDeps, call: ResourceCall): Promise<ApiAnswer> {
  const { request, route, resource } = call
  const accepted = accept(request, ['table', 'partialList'])
  const namespace = resource.kind.namespaced ? route.namespace : ''
  const listed = await listObjects(deps, resource, namespace, parseListOptions(request.query, false))
  return listAnswer(deps, call, accepted, listed)
}

async function handleWatch(deps: ObjectDeps, call: ResourceCall): Promise<ApiAnswer> {
  const { request, route, resource } = call
  const accepted = accept(request, ['table', 'partial'])
  const options = parseListOptions(request.query, true)
  const stream = await openWatch(deps, {
    resource,
    namespace: resource.kind.namespaced ? route.namespace : '',
    options: route.name
      ? { ...options, fields: [...options.fields, { field: 'metadata.name', operator: '=', value: route.name }] }
      : options,
    accepted,
    include: accepted.form === 'table' ? includeObject(request) : 'Metadata',
  })
  return { status: 200, headers: { 'content-type': JSON_TYPE, 'cache-control': 'no-cache, private' }, stream }
}

async function handleCreate(deps: ObjectDeps, call: ResourceCall): Promise<ApiAnswer> {
  const { request, route, resource } = call
  const accepted = accept(request, ['table', 'partial'])
  const options = parseWriteOptions('CreateOptions', request.query, request.headers['user-agent'])
  const body = await parseBody(await request.readBody(), request.headers['content-type'])
  if (route.subresource !== '') {
    const handler = CREATE_SUBRESOURCES[`${resource.group}/${resource.plural}/${route.subresource}`]!
    return handler(deps, { target: targetOf(call, options), body, options })
  }
  const { object, warnings } = decodeObjectBody(body, resource, options.fieldValidation)
  const written = await createObject(deps, targetOf(call, options), object)
  return writtenAnswer(deps, call, accepted, written, warnings)
}

async function handleReview(deps: ReviewDeps, { request, route, resource, user }: ResourceCall): Promise<ApiAnswer> {
  const options = parseWriteOptions('CreateOptions', request.query, request.headers['user-agent'])
  const body = await parseBody(await request.readBody(), request.headers['content-type'])
  const { object, warnings } = decodeObjectBody(body, resource, options.fieldValidation)
  return jsonAnswer(201, await answerReview(deps, resource, route.namespace, user, object), warningHeaders(warnings))
}

async function handleUpdate(deps: ObjectDeps, call: ResourceCall): Promise<ApiAnswer> {
  const { request, route, resource } = call
  const accepted = accept(request, ['table', 'partial'])
  const options = parseWriteOptions('UpdateOptions', request.query, request.headers['user-agent'])
  const body = await parseBody(await request.readBody(), request.headers['content-type'])
  const { object, warnings } = decodeObjectBody(body, resource, options.fieldValidation)
  checkUpdateName(object, call)
  const written = await updateObject(deps, targetOf(call, options), {
    next: () => object,
    createFrom: object,
    needsVersion: true,
    ...(route.subresource === 'finalize' ? { merge: mergeFinalize } : {}),
  })
  return writtenAnswer(deps, call, accepted, written, warnings)
}

/** A body without a name is refused rather than given the one of the path: it is likely meant for another object. */
function checkUpdateName(object: KubeObject, { route }: ResourceCall): void {
  if (object.metadata.name) return
  throw badRequest(
    `the name of the object is missing from the body; expected metadata.name "${route.name}", as on the URL`,
  )
}

async function handlePatch(deps: ObjectDeps, call: ResourceCall): Promise<ApiAnswer> {
  const { request, route, resource } = call
  const accepted = accept(request, ['table', 'partial'])
  const options = parseWriteOptions('PatchOptions', request.query, request.headers['user-agent'])
  const applies = isApply(request.headers['content-type'])
  checkPatchOptions(request.query, applies)
  const bytes = await request.readBody()
  if (applies) {
    const apply = applyOf(await parseApplyBody(bytes), targetOf(call, options), options)
    const written = await updateObject(deps, targetOf(call, options), apply.update)
    return writtenAnswer(deps, call, accepted, written, apply.warnings)
  }
  const patch = parsePatch(bytes, request.headers['content-type'], resource, route.name, options.fieldValidation)
  const written = await updateObject(deps, targetOf(call, options), { next: patch.apply, needsVersion: false })
  return writtenAnswer(deps, call, accepted, written, patch.warnings())
}

async function handleDelete(deps: ObjectDeps, call: ResourceCall): Promise<ApiAnswer> {
  const { request, resource, route } = call
  const accepted = accept(request, ['table', 'partial'])
  const options = await deleteOptionsOf(request)
  const written = await deleteObject(deps, targetOf(call, options), options)
  if (resource.kind.deleteReturnsObject || !written.deleted) {
    return objectAnswer(deps, call, accepted, 200, written.value, written.revision, [])
  }
  const uid = JSON.parse(Buffer.from(written.value).toString('utf8')).metadata.uid
  const details: StatusDetails = {
    name: route.name,
    ...(resource.group ? { group: resource.group } : {}),
    kind: resource.plural,
    uid,
  }
  return jsonAnswer(200, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
}

async function handleDeleteCollection(deps: ObjectDeps, call: ResourceCall): Promise<ApiAnswer> {
  const { request, route, resource } = call
  const accepted = accept(request, ['table', 'partialList'])
  const options = await deleteOptionsOf(request)
  const listed = await listObjects(deps, resource, route.namespace, parseListOptions(request.query, false))
  const gone: Entry[] = []
  for (const entry of listed.entries) {
    const { namespace = '', name = '' } = deps.objects.decode(entry).metadata
    const target = { ...targetOf(call, options), namespace, name }
    try {
      const written = await deleteObject(deps, target, options)
      gone.push({ ...entry, value: written.value, modRevision: written.revision })
    } catch (error) {
      if ((error as { code?: number }).code !== 404) throw error // someone else was faster
    }
  }
  return listAnswer(deps, call, accepted, { ...listed, entries: gone })
}

async function deleteOptionsOf(request: ApiRequest) {
  const bytes = await request.readBody()
  if (bytes.length === 0) return parseDeleteOptions(undefined, request.query)
  const body = await parseBody(bytes, request.headers['content-type'])
  checkKind(body, 'DeleteOptions')
  return parseDeleteOptions(body.as(deleteOptions).value, request.query)
}

/** How the client wants its answer; everything that can be wrong with that is refused before anything is written. */
function accept(request: ApiRequest, forms: readonly Form[]): Accepted {
  const accepted = negotiate(request.headers.accept, forms)
  if (accepted.form === 'table') includeObject(request)
  return accepted
}

function includeObject({ query }: ApiRequest): IncludeObject {
  const include = query.get('includeObject') ?? ''
  if (include === '') return 'Metadata'
  if (include === 'None' || include === 'Metadata' || include === 'Object') return include
  throw badRequest(`includeObject must be None, Metadata or Object, not "${include.slice(0, 50)}"`)
}

const writtenAnswer = (
  deps: ObjectDeps,
  call: ResourceCall,
  accepted: Accepted,
  written: Written,
  warnings: readonly string[],
): ApiAnswer | Promise<ApiAnswer> =>
  objectAnswer(deps, call, accepted, written.created ? 201 : 200, written.value, written.revision, [
    ...warnings,
    ...written.warnings,
  ])

/** At once, unless the client wants it in a form that is seldom asked for. */
function objectAnswer(
  deps: ObjectDeps,
  { request, resource }: ResourceCall,
  accepted: Accepted,
  status: number,
  value: Uint8Array,
  revision: number,
  warnings: readonly string[],
): ApiAnswer | Promise<ApiAnswer> {
  const headers = warningHeaders(warnings)
  if (accepted.form === 'object' && accepted.media === 'json' && !resource.kind.viewOf) {
    return bytesAnswer(status, answerBytes(resource, value, revision), headers)
  }
  const stored = JSON.parse(Buffer.from(value).toString('utf8'))
  if (revision > 0) stored.metadata.resourceVersion = String(revision)
  const object = faceOf(resource, stored)
  switch (accepted.form) {
    case 'table': {
      const options = { metaVersion: accepted.metaVersion, include: includeObject(request), nowMs: deps.clock.nowMs() }
      const meta = { resourceVersion: String(revision) }
      return jsonAnswer(
        status,
        tableOf(resource, [object], meta, { ...options, isList: false, columns: true }),
        headers,
      )
    }
    case 'partial':
    case 'partialList':
      return jsonAnswer(status, partialOf(object, accepted.metaVersion), headers)
    default:
      return valueAnswer(
        accepted,
        status,
        { kind: resource.kind.kind, apiVersion: resource.apiVersion, ...object },
        headers,
      )
  }
}

async function listAnswer(
  deps: ObjectDeps,
  { request, resource }: ResourceCall,
  accepted: Accepted,
  listed: Listed,
): Promise<ApiAnswer> {
  const meta = {
    resourceVersion: String(listed.revision),
    ...(listed.continueToken ? { continue: listed.continueToken } : {}),
    ...(listed.remaining ? { remainingItemCount: listed.remaining } : {}),
  }
  const head = { kind: `${resource.kind.kind}List`, apiVersion: resource.apiVersion, metadata: meta }
  if (accepted.form === 'object' && accepted.media === 'json' && !resource.kind.viewOf) {
    return bytesAnswer(200, listBytes(head, listed.entries))
  }
  const objects = listed.entries.map((entry) => faceOf(resource, deps.objects.decode(entry)))
  switch (accepted.form) {
    case 'table': {
      const options = { metaVersion: accepted.metaVersion, include: includeObject(request), nowMs: deps.clock.nowMs() }
      return jsonAnswer(200, tableOf(resource, objects, meta, { ...options, isList: true, columns: true }))
    }
    case 'partial':
    case 'partialList': {
      const items = objects.map((object) => partialOf(object, accepted.metaVersion))
      const apiVersion = `meta.k8s.io/${accepted.metaVersion}`
      return jsonAnswer(200, { kind: 'PartialObjectMetadataList', apiVersion, metadata: meta, items })
    }
    default:
      return valueAnswer(accepted, 200, { ...head, items: objects })
  }
}

async function valueAnswer(
  accepted: Accepted,
  status: number,
  value: unknown,
  headers: ApiAnswer['headers'] = {},
): Promise<ApiAnswer> {
  if (accepted.media === 'json') return jsonAnswer(status, value, headers)
  const { printYaml } = await import('../api/yaml-body.ts')
  return bytesAnswer(status, Buffer.from(await printYaml(value as JsonValue)), {
    'content-type': 'application/yaml',
    ...headers,
  })
}
