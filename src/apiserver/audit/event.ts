// Formats audit events (audit.k8s.io/v1 Event) as lines of JSON. Values of query parameters that may hold credentials are
// masked.
import type { Status } from '../../api/status-error.ts'
import { microTimestamp } from '../../base/timestamps.ts'
import type { ApiRequest } from '../http/messages.ts'
import type { PathRequest, ResourceRequest } from '../http/route.ts'
import type { UserInfo } from '../security/index.ts'
import { AUDIT_API_VERSION, type Level, type Stage } from './policy.ts'

export interface AuditEvent {
  readonly level: Level
  readonly auditId: string
  readonly stage: Stage
  readonly request: ApiRequest
  readonly route: ResourceRequest | PathRequest | undefined
  readonly user: UserInfo | undefined
  readonly impersonatedUser: UserInfo | undefined
  /** The name of the object that a create has returned. */
  readonly createdName: string
  /** Undefined before the response. */
  readonly responseStatus: { readonly code: number; readonly status?: Status | undefined } | undefined
  /** JSON text, if it is recorded. */
  readonly requestObject?: string | undefined
  readonly responseObject?: string | undefined
  readonly receivedAtMs: number
  readonly atMs: number
  /** JSON text, or an empty string. */
  readonly annotations: string
}

const USER_AGENT_CHARACTERS_MAX = 1_024

/** Returns the event as one line, with its newline. */
export function formatEvent(event: AuditEvent): string {
  const { request, route, user, impersonatedUser, responseStatus, annotations } = event
  let text = `{"kind":"Event","apiVersion":"${AUDIT_API_VERSION}","level":"${event.level}"`
  text += `,"auditID":${JSON.stringify(event.auditId)},"stage":"${event.stage}"`
  text += `,"requestURI":${JSON.stringify(requestUri(request))}`
  text += `,"verb":${JSON.stringify(route ? route.verb : request.method.toLowerCase())}`
  text += `,"user":${user ? userJson(user) : '{}'}`
  if (impersonatedUser) text += `,"impersonatedUser":${userJson(impersonatedUser)}`
  text += `,"sourceIPs":${JSON.stringify(sourceAddresses(request))}`
  const userAgent = request.headers['user-agent']
  if (userAgent) text += `,"userAgent":${JSON.stringify(truncateUserAgent(userAgent))}`
  if (route?.is === 'resource') text += `,"objectRef":${objectReference(route, event.createdName)}`
  if (responseStatus) text += `,"responseStatus":${responseStatusJson(responseStatus)}`
  if (event.requestObject) text += `,"requestObject":${event.requestObject}`
  if (event.responseObject) text += `,"responseObject":${event.responseObject}`
  text += `,"requestReceivedTimestamp":"${microTimestamp(event.receivedAtMs)}"`
  text += `,"stageTimestamp":"${microTimestamp(event.atMs)}"`
  if (annotations) text += `,"annotations":${annotations}`
  return `${text}}\n`
}

const userJsons = new WeakMap<UserInfo, string>()

function userJson(user: UserInfo): string {
  let json = userJsons.get(user)
  if (json === undefined) {
    const { name, uid, groups, extra } = user
    json = JSON.stringify({ username: name, uid, groups, extra })
    userJsons.set(user, json)
  }
  return json
}

const CREDENTIAL_PARAMETER = /token|password|secret|credential|authorization/i

function requestUri({ path, query }: ApiRequest): string {
  if (query.size === 0) return path
  const parameters = new URLSearchParams(query)
  for (const name of [...parameters.keys()]) {
    if (CREDENTIAL_PARAMETER.test(name)) parameters.set(name, 'REDACTED')
  }
  return `${path}?${parameters}`
}

/** Returns the addresses that the client claims, and the address of its connection last. */
function sourceAddresses({ headers, remoteAddress }: ApiRequest): string[] {
  if (remoteAddress && !headers['x-forwarded-for'] && !headers['x-real-ip']) return [remoteAddress]
  const forwardedFor = headers['x-forwarded-for']?.split(',').map((address) => address.trim()) ?? []
  const realIp = headers['x-real-ip']
  const addresses = [...forwardedFor, ...(realIp ? [realIp.trim()] : []), ...(remoteAddress ? [remoteAddress] : [])]
  return addresses.length > ADDRESSES_MAX ? addresses.slice(-ADDRESSES_MAX) : addresses
}

const ADDRESSES_MAX = 20 // beyond this, the first addresses that the client claims are dropped

const truncateUserAgent = (text: string): string =>
  text.length > USER_AGENT_CHARACTERS_MAX ? `${text.slice(0, USER_AGENT_CHARACTERS_MAX)}...TRUNCATED` : text

function objectReference(route: ResourceRequest, createdName: string): string {
  const { plural, namespace, name, group, version, subresource } = route
  const objectName = name || createdName
  let text = `{"resource":${JSON.stringify(plural)}`
  if (namespace) text += `,"namespace":${JSON.stringify(namespace)}`
  if (objectName) text += `,"name":${JSON.stringify(objectName)}`
  if (group) text += `,"apiGroup":${JSON.stringify(group)}`
  text += `,"apiVersion":${JSON.stringify(version)}`
  if (subresource) text += `,"subresource":${JSON.stringify(subresource)}`
  return `${text}}`
}

function responseStatusJson({ code, status }: NonNullable<AuditEvent['responseStatus']>): string {
  if (!status) return `{"metadata":{},"code":${code}}`
  const { message, reason, details } = status
  return JSON.stringify({ metadata: {}, status: status.status, message, reason, details, code })
}
