// Handles requests for resources: parses the options and the body, runs the verb, and returns the result in the form that
// the client accepts.
import { tokenRequest } from '../api/kinds/service-account/token-request-schema.ts'
import { deleteOptions } from '../api/kinds/shared/delete-options-schema.ts'
import { readScale, SCALE_TYPE, scale } from '../api/kinds/stateful-set/scale.ts'
import type { StatefulSet } from '../api/kinds/stateful-set/stateful-set-schema.ts'
import { PROTOBUF_MEDIA } from '../api/protobuf/envelope.ts'
import { checkKind, decodeObjectBody, type ParseContext, parseBody, pauseAfter } from './http/body.ts'
import { type ApiRequest, type ApiResponse, JSON_TYPE, warningHeaders } from './http/messages.ts'
import type { AcceptedForm, Form } from './http/negotiate.ts'
import {
  listResponse,
  negotiateForm,
  objectResponse,
  parseIncludeObject,
  successResponse,
  valueResponse,
  writeResponse,
} from './http/object-response.ts'
import {
  checkPatchOptions,
  parseDeleteOptions,
  parseGetVersion,
  parseListOptions,
  parseWriteOptions,
  type WriteOptions,
} from './http/options.ts'
import type { ResourceRequest } from './http/route.ts'
import { fencesOf } from './objects/check-fences.ts'
import type { ObjectDeps } from './objects/object-deps.ts'
import { decodeStored } from './objects/stored-object.ts'
import { updateLimits } from './objects/update-values.ts'
import type { WriteResult, WriteTarget } from './objects/write-verb.ts'
import type { Resource, Resources } from './resources.ts'
import { performReview, type ReviewDeps } from './reviews.ts'
import type { UserInfo } from './security/index.ts'
import { checkScope } from './verbs/check-scope.ts'
import { createVerb } from './verbs/create.ts'
import { createToken, isTokenRequest, TOKEN_REQUEST_TYPE } from './verbs/create-token.ts'
import { deleteVerb } from './verbs/delete.ts'
import { deleteCollection } from './verbs/delete-collection.ts'
import { executeWrite } from './verbs/execute.ts'
import { getObject } from './verbs/get.ts'
import { listObjects } from './verbs/list.ts'
import { isApply, parsePatch, patchVerb } from './verbs/patch.ts'
import { isScale } from './verbs/scale.ts'
import { updateVerb } from './verbs/update.ts'
import { openWatch } from './verbs/watch.ts'

export interface ResourceCall {
  readonly request: ApiRequest
  readonly route: ResourceRequest
  readonly resource: Resource
  readonly user: UserInfo
  readonly parseContext: ParseContext
  /** Throws 403 if the user is not allowed to create the object of an update or a patch. */
  authorizeCreate(): void
}

/** Handles a request. `reviews` are the dependencies of the review kinds, such as SubjectAccessReview. */
export function handleResource(deps: ObjectDeps, call: ResourceCall, reviews: ReviewDeps): Promise<ApiResponse> {
  checkScope(call.resource, call.route)
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

type TargetOptions = Pick<WriteOptions, 'dryRun'> & Partial<Pick<WriteOptions, 'fieldManager'>>

const targetOf = (
  { request, route, resource, user, authorizeCreate }: ResourceCall,
  { dryRun, fieldManager }: TargetOptions,
): WriteTarget => ({
  resource,
  namespace: resource.kind.namespaced ? route.namespace : '',
  name: route.name,
  subresource: route.subresource,
  user,
  dryRun,
  fieldManager,
  fences: fencesOf(request),
  authorizeCreate,
})

async function handleGet(deps: ObjectDeps, call: ResourceCall): Promise<ApiResponse> {
  const { request, route, resource } = call
  const acceptedForm = negotiateForm(request, formsOf(call))
  const entry = await getObject(deps, resource, route.namespace, route.name, parseGetVersion(request.query))
  if (isScale(route)) return scaleResponse(deps, acceptedForm, { value: entry.value, revision: entry.modRevision }, [])
  return objectResponse(deps, call, acceptedForm, 200, entry.value, entry.modRevision, [])
}

/** The forms of a response with one object. A Scale is returned only in its own form, because it has no columns. */
const formsOf = ({ route }: ResourceCall): readonly Form[] => (isScale(route) ? [] : ['table', 'partial'])

function scaleResponse(
  deps: ObjectDeps,
  acceptedForm: AcceptedForm,
  { value, revision }: Pick<WriteResult, 'value' | 'revision'>,
  warnings: readonly string[],
): Promise<ApiResponse> {
  const set = decodeStored({ value, modRevision: revision }) as StatefulSet
  return valueResponse(deps, acceptedForm, 200, { ...SCALE_TYPE, ...readScale(set) }, scale, warningHeaders(warnings))
}

async function handleList(deps: ObjectDeps, call: ResourceCall): Promise<ApiResponse> {
  const { request, route, resource } = call
  const acceptedForm = negotiateForm(request, ['table', 'partialList'])
  const namespace = resource.kind.namespaced ? route.namespace : ''
  const list = await listObjects(deps, resource, namespace, parseListOptions(request.query, false))
  return withWarnings(
    await listResponse(deps, call, acceptedForm, list),
    isDefinitionList(resource) ? apiVersionWarnings(deps.resources) : [],
  )
}

const withWarnings = (response: ApiResponse, warnings: readonly string[]): ApiResponse =>
  warnings.length === 0 ? response : { ...response, headers: { ...response.headers, ...warningHeaders(warnings) } }

const isDefinitionList = ({ group, plural }: Resource): boolean =>
  group === 'apiextensions.k8s.io' && plural === 'customresourcedefinitions'

/**
 * Returns warnings that name apiVersions and their kinds. kubectl lists the definitions of custom resources, and prints the
 * warnings, if discovery does not have the apiVersion of a manifest.
 */
function apiVersionWarnings(resources: Resources): string[] {
  const kinds = new Map<string, string[]>()
  for (const { kind, group, plural, apiVersion } of resources.all) {
    if (kind.isReview || kind.isForeign || resources.findPreferred(group, plural)?.apiVersion !== apiVersion) continue
    kinds.set(apiVersion, [...(kinds.get(apiVersion) ?? []), kind.kind])
  }
  return [
    'this server has no custom resources; check the apiVersion and kind of the manifest',
    ...[...kinds].map(([apiVersion, names]) => `apiVersion ${apiVersion} is for ${names.join(', ')}`),
  ]
}

async function handleWatch(deps: ObjectDeps, call: ResourceCall): Promise<ApiResponse> {
  const { request, route, resource } = call
  const acceptedForm = withoutYaml(negotiateForm(request, ['table', 'partial']))
  const options = parseListOptions(request.query, true)
  const stream = await openWatch(deps, {
    resource,
    namespace: resource.kind.namespaced ? route.namespace : '',
    options: route.name
      ? {
          ...options,
          fieldSelector: [...options.fieldSelector, { field: 'metadata.name', operator: '=', value: route.name }],
        }
      : options,
    acceptedForm,
    include: acceptedForm.form === 'table' ? parseIncludeObject(request) : 'Metadata',
  })
  const contentType = acceptedForm.media === 'protobuf' ? `${PROTOBUF_MEDIA};stream=watch` : JSON_TYPE
  return { status: 200, headers: { 'content-type': contentType, 'cache-control': 'no-cache, private' }, stream }
}

/** A watch that accepts only YAML receives its events in JSON, which is valid YAML. */
const withoutYaml = (acceptedForm: AcceptedForm): AcceptedForm =>
  acceptedForm.media === 'yaml' ? { ...acceptedForm, media: 'json' } : acceptedForm

async function handleCreate(deps: ObjectDeps, call: ResourceCall): Promise<ApiResponse> {
  const { request, route, parseContext } = call
  const acceptedForm = negotiateForm(request, ['table', 'partial'])
  const options = parseWriteOptions('CreateOptions', request.query, request.headers['user-agent'])
  const bytes = await request.readBody()
  const body = await parseBody(bytes, request.headers['content-type'], parseContext)
  const target = targetOf(call, options)
  if (isTokenRequest(target)) {
    const { object, warnings } = await createToken(deps, target, body, options.fieldValidation)
    const value = { ...TOKEN_REQUEST_TYPE, ...object }
    return valueResponse(deps, acceptedForm, 201, value, tokenRequest, warningHeaders(warnings))
  }
  const verb = createVerb(target, body, options.fieldValidation)
  await pauseAfter(bytes, parseContext)
  const result = await executeWrite(deps, verb)
  if (route.subresource !== '') return successResponse(deps, acceptedForm, 201, { code: 201 })
  return writeResponse(deps, call, acceptedForm, verb.warnings, result)
}

/** A review is returned only in its own form, because it has no metadata and no columns. */
async function handleReview(deps: ReviewDeps, call: ResourceCall): Promise<ApiResponse> {
  const { request, route, resource, user, parseContext } = call
  const acceptedForm = negotiateForm(request, [])
  const options = parseWriteOptions('CreateOptions', request.query, request.headers['user-agent'])
  const body = await parseBody(await request.readBody(), request.headers['content-type'], parseContext)
  const { object, warnings } = decodeObjectBody(body, resource, options.fieldValidation)
  const reviewedObject = await performReview(deps, resource, route.namespace, user, object)
  return valueResponse(deps, acceptedForm, 201, reviewedObject, resource.kind.type, warningHeaders(warnings))
}

async function handleUpdate(deps: ObjectDeps, call: ResourceCall): Promise<ApiResponse> {
  const { request, parseContext } = call
  const acceptedForm = negotiateForm(request, formsOf(call))
  const options = parseWriteOptions('UpdateOptions', request.query, request.headers['user-agent'])
  const target = targetOf(call, options)
  const bytes = await request.readBody()
  const { keysMax, valuesMax } = await updateLimits(deps, target, bytes.length)
  const body = await parseBody(bytes, request.headers['content-type'], parseContext, keysMax)
  const verb = updateVerb(target, body, options.fieldValidation, valuesMax)
  await pauseAfter(bytes, parseContext)
  const result = await executeWrite(deps, verb)
  if (isScale(call.route)) return scaleResponse(deps, acceptedForm, result, [...verb.warnings, ...result.warnings])
  return writeResponse(deps, call, acceptedForm, verb.warnings, result)
}

async function handlePatch(deps: ObjectDeps, call: ResourceCall): Promise<ApiResponse> {
  const { request, parseContext } = call
  const acceptedForm = negotiateForm(request, formsOf(call))
  const options = parseWriteOptions('PatchOptions', request.query, request.headers['user-agent'])
  const contentType = request.headers['content-type']
  checkPatchOptions(request.query, isApply(contentType))
  const bytes = await request.readBody()
  const patch = await parsePatch(bytes, contentType, parseContext)
  const verb = patchVerb(targetOf(call, options), patch, options)
  await pauseAfter(bytes, parseContext)
  const result = await executeWrite(deps, verb)
  if (isScale(call.route)) return scaleResponse(deps, acceptedForm, result, [...verb.warnings, ...result.warnings])
  return writeResponse(deps, call, acceptedForm, verb.warnings, result)
}

async function handleDelete(deps: ObjectDeps, call: ResourceCall): Promise<ApiResponse> {
  const { request, resource, route } = call
  const acceptedForm = negotiateForm(request, ['table', 'partial'])
  const options = await readDeleteOptions(call)
  const result = await executeWrite(deps, deleteVerb(targetOf(call, options), options))
  if (resource.kind.deleteReturnsObject || !result.deleted) {
    return objectResponse(deps, call, acceptedForm, 200, result.value, result.revision, [])
  }
  const { uid } = decodeStored({ value: result.value, modRevision: 0 }).metadata
  const details = { name: route.name, group: resource.group || undefined, kind: resource.plural, uid } // JSON omits undefined
  return successResponse(deps, acceptedForm, 200, { details })
}

async function handleDeleteCollection(deps: ObjectDeps, call: ResourceCall): Promise<ApiResponse> {
  const { request } = call
  const acceptedForm = negotiateForm(request, ['table', 'partialList'])
  const options = await readDeleteOptions(call)
  const selection = parseListOptions(request.query, false)
  return listResponse(
    deps,
    call,
    acceptedForm,
    await deleteCollection(deps, targetOf(call, options), { selection, options }),
  )
}

async function readDeleteOptions({ request, parseContext }: ResourceCall) {
  const bytes = await request.readBody()
  if (bytes.length === 0) return parseDeleteOptions(undefined, request.query)
  const body = await parseBody(bytes, request.headers['content-type'], parseContext)
  checkKind(body, 'DeleteOptions')
  return parseDeleteOptions(body.readAs(deleteOptions).value, request.query)
}
