// Records requests in the audit log, at the level and stages of the policy. The API server reports the progress of a request
// to an AuditedRequest; audit-log.ts writes the events.
import { randomUUID } from 'node:crypto'
import type { Status } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { type BodyTurns, createBodyTurns } from '../flow-control/body-turns.ts'
import type { ApiRequest, ApiResponse, StreamSink } from '../http/messages.ts'
import type { PathRequest, ResourceRequest } from '../http/route.ts'
import type { Resource } from '../resources.ts'
import type { Decision, UserInfo } from '../security/index.ts'
import { BODIES_WAITING_MAX, BODY_BYTES_MAX, bodyJson, createdNameOf } from './bodies.ts'
import { formatEvent } from './event.ts'
import { createRuleFinder, type FindRule } from './match-rule.ts'
import { type AuditPolicy, type AuditRule, LEVELS, type Level, type Stage } from './policy.ts'
import { isSensitive } from './sensitive-resources.ts'

export interface AuditOptions {
  readonly policy: AuditPolicy
  /** Receives one line per event. */
  readonly write: (line: string) => void
  readonly clock: Clock
}

type Route = ResourceRequest | PathRequest | undefined

export interface Audit {
  start(request: ApiRequest, route: Route): AuditedRequest
}

export interface AuditedRequest {
  /** Sets the authenticated user and selects the rule. Returns the request to process, which records its body if required. */
  setUser(user: UserInfo): ApiRequest
  setImpersonatedUser(user: UserInfo): void
  /** Sets the decision of the authorizer. Later calls have no effect. */
  setDecision(decision: Decision): void
  /** Adds a write of a commit. If its rule has a higher level than that of the commit, the rule applies to the commit. */
  addWrite(write: ResourceRequest): void
  /** Records the response and returns it with the header Audit-Id. */
  finish(response: ApiResponse, outcome: AuditOutcome): ApiResponse
}

export interface AuditOutcome {
  /** A failed request's status. */
  readonly status?: Status | undefined
  /** Whether the request failed unexpectedly. */
  readonly isPanic?: boolean
  readonly resource?: Resource | undefined
}

export function createAudit(options: AuditOptions): Audit {
  const deps: RecordDeps = {
    ...options,
    turns: createBodyTurns(options.clock),
    findRule: createRuleFinder(options.policy),
  }
  return { start: (request, route) => new RequestRecord(deps, request, route) }
}

const DECISION_ANNOTATION = 'authorization.k8s.io/decision'
const REASON_ANNOTATION = 'authorization.k8s.io/reason'
const TRUNCATED_ANNOTATION = 'audit.k8s.io/truncated'
const WRITES_ANNOTATION = 'audit.stowage.dev/writes'
/** Further writes of a commit are counted, but not listed. */
const LISTED_WRITES_MAX = 100
/** A client can choose the ID of its request, to find the request in the log. Values that do not match are replaced. */
const CLIENT_AUDIT_ID = /^[\x21-\x7e]{1,128}$/

interface RecordDeps extends AuditOptions {
  readonly turns: BodyTurns
  readonly findRule: FindRule
}

class RequestRecord implements AuditedRequest {
  readonly #deps: RecordDeps
  readonly #request: ApiRequest
  readonly #route: Route
  readonly #auditId: string
  readonly #receivedAtMs: number
  readonly #isSensitive: boolean
  #rule: AuditRule | undefined
  #level: Level = 'None'
  #hasRule = false
  #user: UserInfo | undefined
  #impersonatedUser: UserInfo | undefined
  #decision: Decision | undefined
  #writes: string[] | undefined
  #writeCount = 0
  #requestBody: Uint8Array | undefined

  constructor(deps: RecordDeps, request: ApiRequest, route: Route) {
    this.#deps = deps
    this.#request = request
    this.#route = route
    const clientId = request.headers['audit-id']
    this.#auditId = clientId && CLIENT_AUDIT_ID.test(clientId) ? clientId : randomUUID()
    this.#receivedAtMs = deps.clock.nowMs()
    this.#isSensitive = isSensitive(route)
  }

  setUser(user: UserInfo): ApiRequest {
    this.#user = user
    this.#findRule()
    if (this.#shouldRecord('RequestReceived')) this.#write('RequestReceived', undefined)
    if (this.#level === 'None' || this.#level === 'Metadata') return this.#request
    const request = this.#request
    return {
      ...request,
      readBody: async () => {
        this.#requestBody = await request.readBody()
        return this.#requestBody
      },
    }
  }

  setImpersonatedUser(user: UserInfo): void {
    this.#impersonatedUser = user
  }

  setDecision(decision: Decision): void {
    this.#decision ??= decision
  }

  addWrite(write: ResourceRequest): void {
    const rule = this.#deps.findRule({ user: this.#user, route: write })
    if (rule && LEVELS.indexOf(rule.level) > LEVELS.indexOf(this.#level)) this.#setRule(rule)
    this.#writes ??= []
    this.#writeCount++
    if (this.#writes.length >= LISTED_WRITES_MAX) return
    const { verb, plural, subresource, group, namespace, name } = write
    const resource = `${plural}${group ? `.${group}` : ''}${subresource ? `/${subresource}` : ''}`
    this.#writes.push(`${verb} ${resource} ${namespace && plural !== 'namespaces' ? `${namespace}/` : ''}${name}`)
  }

  finish(response: ApiResponse, outcome: AuditOutcome): ApiResponse {
    if (!this.#hasRule) this.#findRule() // the credentials were rejected
    const headers = { ...response.headers, 'audit-id': this.#auditId }
    const { stream, tunnel } = response
    if (!stream && !tunnel) {
      this.#complete(response, outcome)
      return { ...response, headers }
    }
    if (this.#shouldRecord('ResponseStarted')) this.#write('ResponseStarted', { code: response.status })
    if (!this.#shouldRecord('ResponseComplete')) return { ...response, headers }
    return {
      ...response,
      headers,
      ...(stream && {
        stream: (sink: StreamSink, seats) => {
          sink.onClose(() => this.#write('ResponseComplete', { code: response.status }))
          stream(sink, seats)
        },
      }),
      ...(tunnel && {
        tunnel: (client, head) => {
          client.once('close', () => this.#write('ResponseComplete', { code: response.status }))
          tunnel(client, head)
        },
      }),
    }
  }

  #complete(response: ApiResponse, { status, isPanic, resource }: AuditOutcome): void {
    const stage = isPanic ? 'Panic' : 'ResponseComplete'
    if (!this.#shouldRecord(stage)) return
    const responseStatus = { code: response.status, status: this.#isSensitive ? withoutDetails(status) : status }
    const createdName = this.#route?.verb === 'create' ? createdNameOf(response) : ''
    if (this.#level === 'Metadata') this.#write(stage, responseStatus, { createdName })
    else void this.#completeWithBodies(stage, responseStatus, { response, resource, createdName })
  }

  async #completeWithBodies(
    stage: Stage,
    responseStatus: { code: number; status: Status | undefined },
    { response, resource, createdName }: { response: ApiResponse; resource: Resource | undefined; createdName: string },
  ): Promise<void> {
    const omitManagedFields = this.#rule?.omitManagedFields ?? false
    const responseBody = this.#level === 'RequestResponse' ? response.body : undefined
    const isTruncated =
      (this.#level === 'RequestResponse' && response.longBody !== undefined) ||
      this.#deps.turns.waitingCount > BODIES_WAITING_MAX ||
      [this.#requestBody, responseBody].some((body) => body && body.length > BODY_BYTES_MAX)
    const parseContext = { user: this.#user?.name ?? '', turns: this.#deps.turns }
    const jsonOf = async (body: Uint8Array | undefined, contentType: string | undefined) =>
      body && !isTruncated ? bodyJson(body, { contentType, resource, omitManagedFields, parseContext }) : undefined
    const requestObject = await jsonOf(this.#requestBody, this.#request.headers['content-type'])
    const responseObject = await jsonOf(responseBody, String(response.headers['content-type'] ?? ''))
    this.#write(stage, responseStatus, { createdName, requestObject, responseObject, isTruncated })
  }

  #findRule(): void {
    this.#hasRule = true
    this.#setRule(this.#deps.findRule({ user: this.#user, route: this.#route }))
  }

  /** The level is that of the rule, but at most Metadata if bodies may contain credentials. */
  #setRule(rule: AuditRule | undefined): void {
    this.#rule = rule
    const level = rule?.level ?? 'None'
    this.#level = level === 'None' || !this.#isSensitive ? level : 'Metadata'
  }

  #shouldRecord(stage: Stage): boolean {
    return this.#level !== 'None' && !this.#rule!.omitStages.includes(stage)
  }

  #write(
    stage: Stage,
    responseStatus: { code: number; status?: Status | undefined } | undefined,
    details: { createdName?: string; requestObject?: string; responseObject?: string; isTruncated?: boolean } = {},
  ): void {
    const { createdName = '', requestObject, responseObject, isTruncated = false } = details
    this.#deps.write(
      formatEvent({
        level: this.#level,
        auditId: this.#auditId,
        stage,
        request: this.#request,
        route: this.#route,
        user: this.#user,
        impersonatedUser: this.#impersonatedUser,
        createdName,
        responseStatus,
        requestObject,
        responseObject,
        receivedAtMs: this.#receivedAtMs,
        atMs: this.#deps.clock.nowMs(),
        annotations: this.#annotations(isTruncated),
      }),
    )
  }

  /** Returns JSON text, or an empty string if there are no annotations. */
  #annotations(isTruncated: boolean): string {
    if (!isTruncated && !this.#writes) return this.#decision ? decisionJson(this.#decision) : ''
    const annotations = this.#decision ? decisionAnnotations(this.#decision) : {}
    if (isTruncated) annotations[TRUNCATED_ANNOTATION] = 'true'
    if (this.#writes) {
      const unlistedWrites = this.#writeCount - this.#writes.length
      annotations[WRITES_ANNOTATION] = [
        ...this.#writes,
        ...(unlistedWrites > 0 ? [`and ${unlistedWrites} more`] : []),
      ].join(', ')
    }
    return JSON.stringify(annotations)
  }
}

const decisionAnnotations = ({ allowed, reason = '' }: Decision): Record<string, string> => ({
  [DECISION_ANNOTATION]: allowed ? 'allow' : 'forbid',
  [REASON_ANNOTATION]: reason,
})

/** Caches the JSON of decisions: the authorizer returns the same decision object for most requests of a user. */
const decisionJsons = new WeakMap<Decision, string>()

function decisionJson(decision: Decision): string {
  let json = decisionJsons.get(decision)
  if (json === undefined) {
    json = JSON.stringify(decisionAnnotations(decision))
    decisionJsons.set(decision, json)
  }
  return json
}

/** Removes the fields that may quote values of the object. */
const withoutDetails = (status: Status | undefined): Status | undefined =>
  status && { ...status, message: undefined, details: undefined }
