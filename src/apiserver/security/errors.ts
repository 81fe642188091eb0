// The errors of this folder: statuses of rejected requests (400, 401, 403), which the server sends to the client, and
// errors that prevent the server from starting, which are thrown.
import type { AuthorizationAttributes } from './authorizer.ts'

/** The fields of a Status for a rejected request. */
export interface RejectionStatus {
  code: 400 | 401 | 403
  reason: 'BadRequest' | 'Unauthorized' | 'Forbidden'
  message: string
  details?: { name?: string; group?: string; kind?: string }
}

export const unauthorized = (detail: string): RejectionStatus => ({
  code: 401,
  reason: 'Unauthorized',
  message: `Unauthorized: ${detail}`,
})

export const missingImpersonatedUser = (headers: readonly string[]): RejectionStatus => ({
  code: 400,
  reason: 'BadRequest',
  message: `requested ${headers.join(', ')} without impersonating a user: set Impersonate-User as well`,
})

/**
 * Returns a 403 with the Kubernetes message, which clients match:
 * `secrets "token" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace "shop"`.
 * The authorizer's `detail` follows after a colon.
 */
export function forbidden(attributes: AuthorizationAttributes, detail = ''): RejectionStatus {
  const denial = escapeHtml(describeDenial(attributes)) + (detail ? `: ${detail}` : '')
  if (attributes.path !== undefined)
    return { code: 403, reason: 'Forbidden', message: `forbidden: ${denial}`, details: {} }

  const { group, resource, name } = attributes
  const resourceText = group ? `${resource}.${group}` : resource
  return {
    code: 403,
    reason: 'Forbidden',
    message: `${resourceText}${name ? ` ${quote(name)}` : ''} is forbidden: ${denial}`,
    details: { ...(name && { name }), ...(group && { group }), kind: resource },
  }
}

export const unusableFileError = ({ file, reason, remedy }: { file: string; reason: string; remedy: string }) =>
  new Error(`Cannot use ${file}: ${reason}. ${remedy}`)

export const invalidHostError = (host: string) =>
  new Error(
    `Cannot issue a serving certificate for ${quote(host)}: it is neither a DNS name nor an IP address. ` +
      'Set the host that clients use, without scheme or port.',
  )

function describeDenial(attributes: AuthorizationAttributes): string {
  const userCannot = `User ${quote(attributes.user.name)} cannot ${attributes.verb}`
  if (attributes.path !== undefined) return `${userCannot} path ${quote(attributes.path)}`

  const { group, resource, subresource, namespace } = attributes
  const resourceText = quote(subresource ? `${resource}/${subresource}` : resource)
  const scope = namespace ? `in the namespace ${quote(namespace)}` : 'at the cluster scope'
  return `${userCannot} resource ${resourceText} in API group ${quote(group)} ${scope}`
}

const quote = (text: string) => JSON.stringify(text)

/** Escapes names from the request, which a browser must not interpret as HTML. */
const escapeHtml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
