// The errors of this folder: refusals of requests (400, 401, 403), and errors that stop the server from starting.
// Refusals are data, which the server sends as a Status; the others are thrown.
import type { AuthorizationAttributes } from './authorize.ts'

/** The parts of a Status that differ between refusals. */
export interface Refusal {
  code: 400 | 401 | 403
  reason: 'BadRequest' | 'Unauthorized' | 'Forbidden'
  message: string
  details?: { name?: string; group?: string; kind?: string }
}

export const unauthorized = (because: string): Refusal => ({
  code: 401,
  reason: 'Unauthorized',
  message: `Unauthorized: ${because}`,
})

export const impersonationWithoutUser = (headers: readonly string[]): Refusal => ({
  code: 400,
  reason: 'BadRequest',
  message: `requested ${headers.join(', ')} without impersonating a user: set Impersonate-User as well`,
})

/**
 * The wording of Kubernetes, which clients match:
 * `secrets "token" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace "shop"`.
 * The authorizer's `because`, if any, follows after a colon.
 */
export function forbidden(attributes: AuthorizationAttributes, because = ''): Refusal {
  const sentence = withoutMarkup(cannot(attributes)) + (because ? `: ${because}` : '')
  if (attributes.path !== undefined)
    return { code: 403, reason: 'Forbidden', message: `forbidden: ${sentence}`, details: {} }

  const { group, resource, name } = attributes
  const what = group ? `${resource}.${group}` : resource
  return {
    code: 403,
    reason: 'Forbidden',
    message: `${what}${name ? ` ${quoted(name)}` : ''} is forbidden: ${sentence}`,
    details: { ...(name && { name }), ...(group && { group }), kind: resource },
  }
}

export const unusableFile = ({ file, why, remedy }: { file: string; why: string; remedy: string }) =>
  new Error(`Cannot use ${file}: ${why}. ${remedy}`)

export const unusableHost = (host: string) =>
  new Error(
    `Cannot issue a serving certificate for ${quoted(host)}: it is neither a DNS name nor an IP address. ` +
      'Give the host as clients use it, without scheme and port.',
  )

function cannot(attributes: AuthorizationAttributes): string {
  const who = `User ${quoted(attributes.user.name)} cannot ${attributes.verb}`
  if (attributes.path !== undefined) return `${who} path ${quoted(attributes.path)}`

  const { group, resource, subresource, namespace } = attributes
  const what = quoted(subresource ? `${resource}/${subresource}` : resource)
  const where = namespace ? `in the namespace ${quoted(namespace)}` : 'at the cluster scope'
  return `${who} resource ${what} in API group ${quoted(group)} ${where}`
}

const quoted = (text: string) => JSON.stringify(text)

/** Names come from the request, and a browser must not interpret them as HTML. */
const withoutMarkup = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
