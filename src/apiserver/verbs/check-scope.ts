// Rejects requests for paths and methods that a resource does not serve: a wrong scope, a subresource that the kind lacks, or
// a verb that it does not support. HTTP requests and the writes of commits and of the in-process client pass this check.
import { methodNotAllowed, noSuchPath, notStored } from '../../api/status-error.ts'
import { findSubresource, verbsOf } from '../discovery/index.ts'
import type { ResourceRequest } from '../http/route.ts'
import type { Resource } from '../resources.ts'

export type Scope = Pick<ResourceRequest, 'verb' | 'namespace' | 'name' | 'subresource'>

/** Throws 404 or 405 if the resource does not serve the request. Only lists and watches may span all namespaces. */
export function checkScope(resource: Resource, { verb, namespace, name, subresource }: Scope): void {
  const { namespaced } = resource.kind
  const isNamespaceKind = resource.group === '' && resource.plural === 'namespaces'
  if (!namespaced && namespace && !isNamespaceKind) throw noSuchPath()
  if (namespaced && !namespace) {
    if (name) throw noSuchPath()
    if (verb === 'create' || verb === 'deletecollection') throw methodNotAllowed()
  }
  const servedVerbs = subresource === '' ? verbsOf(resource.kind) : findSubresource(resource.kind, subresource)?.verbs
  if (!servedVerbs) throw noSuchPath()
  if (!servedVerbs.includes(verb)) throw resource.kind.isForeign ? notStored(resource) : methodNotAllowed()
  if (subresource !== '') return
  if (verb === 'create' && name) throw methodNotAllowed()
  if ((verb === 'update' || verb === 'patch') && !name) throw methodNotAllowed()
}

/** Checks the scope of a write, and also rejects review kinds and streams, which are not stored. */
export function checkStoredScope(resource: Resource, scope: Scope): void {
  checkScope(resource, scope)
  if (resource.kind.isReview) throw methodNotAllowed()
  if (findSubresource(resource.kind, scope.subresource)?.isStream) throw methodNotAllowed()
}
