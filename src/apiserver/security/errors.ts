// Every refusal this folder can utter: what clients are told (401, 403, 400), and what stops a start.
// Refusals are data, so that the server renders them as a Status; failures to start are thrown.
import type { AuthorizationAttributes } from './authorize.ts'

/** The parts of a failure Status that differ from one refusal to the next. */
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
 * The wording clients and people know by heart:
 * `secrets "token" is forbidden: User "ann" cannot get resource "secrets" in API group "" in the namespace "shop"`.
 * An authorizer's `because`, if it has one, follows after a colon.
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
      'Name the host as clients will dial it, without scheme or port.',
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

/** Names come from the request; a browser must never take them for HTML. */
const withoutMarkup = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
