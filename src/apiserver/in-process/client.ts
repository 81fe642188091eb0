// The client for components in the API server process. It calls the verbs without HTTP: reads return the server's frozen
// objects, and a commit is one transaction of the store. Requests are sent as `user`. With an authorizer they need the same
// permissions as over HTTP; without an authorizer, as in the client of the server itself, all requests are allowed.
import type { Kind, KubeObject } from '../../api/kind.ts'
import { operationReportKind } from '../../api/kinds/operation/operation-report.ts'
import type { OperationReport } from '../../api/kinds/operation/operation-schema.ts'
import { noSuchPath } from '../../api/status-error.ts'
import { deepFreeze } from '../../base/freeze.ts'
import {
  type Client,
  type CommitOptions,
  type CommitWrite,
  commitWriteFailed,
  type DeleteRequest,
  type ListRequest,
  type WriteOptions,
} from '../../client/client.ts'
import { COMMIT_ROUTE } from '../commit-handler.ts'
import { bodyOfValue } from '../http/body.ts'
import { parseListOptions } from '../http/options.ts'
import type { ResourceRequest, Verb } from '../http/route.ts'
import { objectKey } from '../keys.ts'
import { type AnyObject, type ObjectDeps, viewOf } from '../objects/object-deps.ts'
import { decodeStored } from '../objects/stored-object.ts'
import type { WriteResult, WriteTarget, WriteVerb } from '../objects/write-verb.ts'
import type { Resource } from '../resources.ts'
import { type Authorizer, authorizeRequest, type UserInfo } from '../security/index.ts'
import { checkStoredScope } from '../verbs/check-scope.ts'
import { executeCommit } from '../verbs/commit.ts'
import { createVerb } from '../verbs/create.ts'
import { createToken, isTokenRequest } from '../verbs/create-token.ts'
import { deleteVerb } from '../verbs/delete.ts'
import { executeWrite } from '../verbs/execute.ts'
import { getObject } from '../verbs/get.ts'
import { listObjects } from '../verbs/list.ts'
import { patchOfValue, patchVerb } from '../verbs/patch.ts'
import { updateVerb } from '../verbs/update.ts'
import { toApiError } from './errors.ts'
import { watchInProcess } from './watch.ts'

export function inProcessClient(deps: ObjectDeps, user: UserInfo, authorizer?: Authorizer): Client {
  const authorize = (route: ResourceRequest, fieldSelector?: string): void => {
    if (authorizer) authorizeRequest(authorizer, { user, route, fieldSelector })
  }
  const resourceOf = (kind: Kind): Resource => {
    const resource = deps.resources.findPreferred(kind.group, kind.plural)
    if (!resource) throw noSuchPath()
    return resource
  }
  const targetOf = (write: CommitWrite, options: WriteOptions): WriteTarget => {
    const { kind, do: verb } = write
    const { namespace: objectNamespace = '', name = '' } = 'object' in write ? write.object.metadata : write.ref
    const resource = resourceOf(kind)
    const namespace = kind.namespaced ? objectNamespace : ''
    const { subresource = '' } = options
    // The path of a create has no name, except that of a subresource such as pods/binding.
    const hasNameInPath = verb !== 'create' || subresource !== ''
    const route = routeOf(resource, verb, { namespace, name: hasNameInPath ? name : '', subresource })
    authorize(route)
    checkStoredScope(resource, route)
    return {
      resource,
      namespace,
      subresource,
      name,
      user,
      dryRun: options.dryRun ?? false,
      fieldManager: options.fieldManager || undefined,
      fences: options.fences,
      authorizeCreate: () => authorize({ ...route, verb: 'create' }),
    }
  }
  const verbOf = (write: CommitWrite, options: WriteOptions): WriteVerb => {
    const target = targetOf(write, options)
    switch (write.do) {
      case 'create':
        return createVerb(target, bodyOfValue(write.object), 'Strict')
      case 'update':
        return updateVerb(target, bodyOfValue(write.object), 'Strict', Number.POSITIVE_INFINITY)
      case 'patch': {
        const { type, body } = write.patch
        const force = write.patch.type === 'apply' && write.patch.force === true
        return patchVerb(target, patchOfValue(type, body, target.resource), { force, fieldValidation: 'Strict' })
      }
      case 'delete':
        return deleteVerb(target, deleteOptionsOf(write))
    }
  }
  const verbsOf = (writes: readonly CommitWrite[], { fieldManager, fences }: CommitOptions = {}): WriteVerb[] => {
    const verbs: WriteVerb[] = []
    for (const write of writes) {
      const subresource = write.do === 'delete' ? undefined : write.subresource
      try {
        verbs.push(verbOf(write, { subresource, fieldManager, fences }))
      } catch (error) {
        throw commitWriteFailed(error, verbs.length)
      }
    }
    return verbs
  }
  const applyReport = (kind: Kind, object: OperationReport): OperationReport => {
    const resource = resourceOf(kind)
    authorize(routeOf(resource, 'create', {}))
    return { ...object, status: deps.operations!.applyReport(user.name, object.spec) }
  }
  const executeVerb = async (verb: WriteVerb): Promise<AnyObject> =>
    resultObject(deps, verb, await executeWrite(deps, verb))

  return {
    get: async (kind, ref, options) => {
      try {
        const resource = resourceOf(kind)
        authorize(routeOf(resource, 'get', ref))
        const minimumRevision = Number(options?.resourceVersion ?? 0)
        const entry = await getObject(deps, resource, ref.namespace ?? '', ref.name, minimumRevision)
        return frozenViewOf(resource, deps.objects.decode(entry))
      } catch (error) {
        throw toApiError(error)
      }
    },

    list: (kind, request = {}) =>
      withApiErrors(async () => {
        const resource = resourceOf(kind)
        const namespace = kind.namespaced ? (request.namespace ?? '') : ''
        authorize(routeOf(resource, 'list', { namespace }), request.fieldSelector)
        const options = parseListOptions(listQuery(request), false)
        const list = await listObjects(deps, resource, namespace, options)
        return {
          items: list.entries.map((entry) => frozenViewOf(resource, deps.objects.decode(entry))),
          resourceVersion: String(list.revision),
          ...(list.continueToken ? { continueToken: list.continueToken } : {}),
        }
      }),

    create: (kind, object, options = {}) =>
      withApiErrors(async () => {
        if (kind.plural === operationReportKind.plural && kind.group === operationReportKind.group)
          return applyReport(kind, object as unknown as OperationReport) as AnyObject
        const target = targetOf({ do: 'create', kind, object }, options)
        if (isTokenRequest(target)) {
          return deepFreeze((await createToken(deps, target, bodyOfValue(object), 'Strict')).object) as AnyObject
        }
        const createdObject = await executeVerb(createVerb(target, bodyOfValue(object), 'Strict'))
        return options.subresource ? object : createdObject
      }),

    update: (kind, object, options = {}) =>
      withApiErrors(() => executeVerb(verbOf({ do: 'update', kind, object }, options))),

    patch: (kind, ref, patch, options = {}) =>
      withApiErrors(() => executeVerb(verbOf({ do: 'patch', kind, ref, patch }, options))),

    delete: (kind, ref, request = {}) =>
      withApiErrors(() =>
        executeVerb(
          verbOf({ do: 'delete', kind, ref, ...request }, { dryRun: request.dryRun, fences: request.fences }),
        ),
      ),

    watch: (kind, request) => {
      const openResource = () => {
        const resource = resourceOf(kind)
        const namespace = kind.namespaced ? request.namespace : ''
        authorize(routeOf(resource, 'watch', { namespace }), request.fieldSelector)
        return resource
      }
      return watchInProcess(deps, openResource, request)
    },

    commit: async (writes, options) => {
      try {
        if (writes.length > 1) authorize(COMMIT_ROUTE) // a single write is an ordinary request
        const verbs = verbsOf(writes, options)
        const results = await executeCommit(deps, verbs)
        return options?.omitsObjects ? [] : resultObjects(deps, verbs, results)
      } catch (error) {
        throw toApiError(error)
      }
    },

    commitsAtomically: async () => true,
    serves: async (kind) => deps.resources.findPreferred(kind.group, kind.plural) !== undefined,
  }
}

/** Returns the route that the request would have over HTTP. */
const routeOf = (
  { group, version, plural }: Resource,
  verb: Verb,
  { namespace = '', name = '', subresource = '' }: { namespace?: string; name?: string; subresource?: string },
): ResourceRequest => ({ is: 'resource', verb, group, version, plural, namespace, name, subresource })

const deleteOptionsOf = ({ propagation, gracePeriodSeconds, uid, resourceVersion, dryRun = false }: DeleteRequest) => ({
  propagationPolicy: propagation,
  gracePeriodSeconds,
  uid,
  resourceVersion,
  dryRun,
})

function listQuery({ labelSelector, fieldSelector, limit, continueToken, resourceVersion }: ListRequest) {
  const query = new URLSearchParams()
  if (labelSelector) query.set('labelSelector', labelSelector)
  if (fieldSelector) query.set('fieldSelector', fieldSelector)
  if (limit) query.set('limit', String(limit))
  if (continueToken) query.set('continue', continueToken)
  if (resourceVersion) query.set('resourceVersion', resourceVersion)
  return query
}

/**
 * Returns the object after the write, or undefined if it was removed. The result of a dry run is not cached, because it is
 * not in the store.
 */
function resultObject(deps: ObjectDeps, { target }: WriteVerb, { value, revision, deleted }: WriteResult): AnyObject {
  if (deleted) return undefined
  const { resource, namespace, dryRun } = target
  if (dryRun) return frozenViewOf(resource, decodeStored({ value, modRevision: revision }))
  const name = target.name || decodeStored({ value, modRevision: revision }).metadata.name! // a generated name is only in the result
  const key = objectKey(resource.storedKind, namespace, name)
  return frozenViewOf(resource, deps.objects.decode({ key, value, modRevision: revision, createRevision: revision }))
}

function resultObjects(deps: ObjectDeps, verbs: readonly WriteVerb[], results: readonly WriteResult[]): AnyObject[] {
  const objects: AnyObject[] = []
  for (let index = 0; index < results.length; index++) {
    objects.push(resultObject(deps, verbs[index]!, results[index]!))
  }
  return objects
}

const frozenViewOf = (resource: Resource, storedObject: Readonly<KubeObject>): AnyObject =>
  deepFreeze(viewOf(resource, storedObject))

async function withApiErrors<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw toApiError(error)
  }
}
