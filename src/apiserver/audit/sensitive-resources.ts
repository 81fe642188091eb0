// Names the resources and kinds whose bodies never appear in the audit log, at any level.
import type { PathRequest, ResourceRequest } from '../http/route.ts'

const SENSITIVE_RESOURCES = new Set([
  '/secrets',
  '/configmaps',
  '/serviceaccounts/token',
  'authentication.k8s.io/tokenreviews',
  'authentication.k8s.io/tokenrequests',
  'stowage.dev/commits', // its writes may be of any kind
])

/** Kinds that a client may send by mistake to the resource of another kind. */
const SENSITIVE_KINDS = new Set(['Secret', 'SecretList', 'ConfigMap', 'TokenReview', 'TokenRequest', 'List', 'Commit'])

/** Returns whether bodies and error messages of a request may contain credentials. */
export function isSensitive(route: ResourceRequest | PathRequest | undefined): boolean {
  if (route?.is !== 'resource') return false
  const { group, plural, subresource } = route
  const resource = `${group}/${plural}`
  return (
    SENSITIVE_RESOURCES.has(resource) || (subresource !== '' && SENSITIVE_RESOURCES.has(`${resource}/${subresource}`))
  )
}

export const isSensitiveKind = (kind: unknown): boolean => typeof kind === 'string' && SENSITIVE_KINDS.has(kind)
