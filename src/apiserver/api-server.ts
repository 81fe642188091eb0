// The API server without its socket: `handle` takes a request and returns a response. The stages of a request are route →
// authenticate → impersonate → authorize → limit → verb. http/https-listener.ts owns the socket.
import type { FeatureGates } from '../api/feature-gates.ts'
import type { ExpansionQuota, Kind } from '../api/kind.ts'
import { operationKind } from '../api/kinds/operation/operation.ts'
import { operationReportKind } from '../api/kinds/operation/operation-report.ts'
import { timelineReviewKind } from '../api/kinds/timeline/timeline-review.ts'
import {
  ApiError,
  badRequest,
  internalError,
  methodNotAllowed,
  noSuchPath,
  type Status,
  tooManyRequests,
} from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { type Store, WriteRejectedError } from '../store/index.ts'
import { type AdmissionChain, standardAdmission } from './admission/index.ts'
import type { Audit, AuditedRequest } from './audit/index.ts'
import { handleCommit, isCommit, withCommits } from './commit-handler.ts'
import { createDiscovery, findSubresource } from './discovery/index.ts'
import { createBodyTurns } from './flow-control/body-turns.ts'
import { createFlowControl, type FlowControlOptions } from './flow-control/flow-control.ts'
import { createListWidths } from './flow-control/list-width.ts'
import { createHealth, type Health } from './health.ts'
import {
  type ApiRequest,
  type ApiResponse,
  jsonResponse,
  type StreamSink,
  statusResponse,
  textResponse,
} from './http/messages.ts'
import { errorResponse } from './http/object-response.ts'
import { acceptsOpenMetrics, OPEN_METRICS_TYPE, toOpenMetrics } from './http/open-metrics.ts'
import { readMetrics } from './http/read-metrics.ts'
import { parseTimeoutMs, withTimeout } from './http/request-timeout.ts'
import { type PathRequest, parseRoute, type ResourceRequest } from './http/route.ts'
import { type ApiMetrics, createApiMetrics, type RequestLabels } from './metrics.ts'
import type { ObjectDeps } from './objects/object-deps.ts'
import { createStoredObjects } from './objects/stored-object.ts'
import { createOpenStreams } from './open-streams.ts'
import { createOpenApi } from './openapi/index.ts'
import type { OperationBoard } from './operations/operation-board.ts'
import type { NodeConnections } from './pod-streams/node-connection.ts'
import { createPodStreams } from './pod-streams/pod-streams.ts'
import { handleResource } from './resource-handler.ts'
import { createResources, type Resources, type RuntimeConfig } from './resources.ts'
import {
  AUTHENTICATED_GROUP,
  type Authenticator,
  type Authorizer,
  apiErrorOf,
  authorizeRequest,
  MASTERS_GROUP,
  resolveImpersonation,
  type UserInfo,
} from './security/index.ts'
import { type AccountTokens, ISSUER_PATHS } from './service-accounts/index.ts'
import { apiErrorOfStore } from './store-errors.ts'
import type { Journal } from './timeline/journal.ts'
import { registerStepMetrics } from './timeline/step-metrics.ts'
import { checkScope } from './verbs/check-scope.ts'
import type { VersionInfo } from './version.ts'

export interface ApiServerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly kinds: readonly Kind[]
  readonly gates: FeatureGates
  /** The size that quotas charge for an expanded claim. Default: the high-water mark. */
  readonly expansionQuota?: ExpansionQuota
  readonly runtimeConfig?: RuntimeConfig
  readonly authenticator: Authenticator
  readonly authorizer: Authorizer
  readonly admission?: AdmissionChain
  /** Default: requests are not audited. */
  readonly audit?: Audit
  readonly version: VersionInfo
  /** Default: none. The server then serves no pod logs and runs no commands in pods. */
  readonly nodeConnections?: NodeConnections
  /** Default: none. The server then issues no tokens. */
  readonly accountTokens?: AccountTokens
  /** Default: none. The server then serves no operations. */
  readonly operations?: OperationBoard
  /** Default: none. The server then records no changes to volumes, and serves no timelines. */
  readonly journal?: Journal
  readonly limits?: Partial<Limits>
  /** Whether objects record which client set which field. Default: true. An apply always records its fields. */
  readonly trackManagedFields?: boolean
}

interface Limits {
  /** Maximum number of open watches. Further watches get 429, except those of the group system:masters. */
  readonly watchesMax: number
  /** Maximum number of open watches of one user. It does not apply to the group system:masters. */
  readonly userWatchesMax: number
  /** Number of seats of each level; see flow-control.ts. */
  readonly concurrency?: FlowControlOptions['concurrency']
}
const LIMITS: Limits = { watchesMax: 10_000, userWatchesMax: 1_000 }

export interface ApiServer {
  handle(request: ApiRequest): Promise<ApiResponse>
  /** Ends the watches whose credentials no longer authenticate their user. Returns their number. */
  endUnauthenticatedStreams(): number
  readonly resources: Resources
  readonly health: Health
  readonly metrics: ApiMetrics
  /** The dependencies of the verbs, for the in-process client. */
  readonly objects: ObjectDeps
}

export function createApiServer(options: ApiServerOptions): ApiServer {
  const { store, clock, log } = options
  const { operations, journal } = options
  const kinds = [
    ...options.kinds,
    ...(operations ? [operationKind, operationReportKind] : []),
    ...(journal ? [timelineReviewKind] : []),
  ]
  const resources = createResources(kinds, options.runtimeConfig)
  const limits = { ...LIMITS, ...options.limits }
  const metrics = createApiMetrics(store)
  operations?.usage.register(metrics.registry)
  const exemplarOf = journal ? registerStepMetrics(metrics.registry, journal.steps) : () => undefined
  const health = createHealth()
  const discovery = createDiscovery(withCommits(resources))
  const openApi = createOpenApi(resources)
  const deps: ObjectDeps = {
    store,
    ...(operations ? { operations } : {}),
    ...(journal ? { journal } : {}),
    clock,
    random: options.random,
    gates: options.gates,
    expansionQuota: options.expansionQuota ?? 'high-water-mark',
    objects: createStoredObjects(clock),
    resources,
    admission: options.admission ?? standardAdmission(),
    authorizer: options.authorizer,
    trackManagedFields: options.trackManagedFields ?? true,
    accountTokens: options.accountTokens,
  }
  const podStreams = createPodStreams(deps, options.nodeConnections)
  const flowControl = createFlowControl({ clock, concurrency: limits.concurrency })
  health.addCheck('flow-control', async () => flowControl.problem())
  const listWidths = createListWidths()
  const bodyTurns = createBodyTurns(clock)
  let watches = 0
  const watchesByUser = new Map<string, number>()
  const openStreams = createOpenStreams(options.authenticator)
  options.accountTokens?.onRevocation((isAffected) => {
    const endedStreams = openStreams.endUnauthenticated(isAffected)
    if (endedStreams > 0) log.info({ endedStreams }, 'ended the streams of tokens that are no longer valid')
  })

  async function handle(request: ApiRequest): Promise<ApiResponse> {
    const startedMs = clock.monotonicMs()
    const route = parseRoute(request.method, request.path, request.query)
    const labels = labelsOf(request.method, route, resources)
    const auditedRequest = options.audit?.start(request, route)
    let response: ApiResponse
    let status: Status | undefined
    let isPanic = false
    try {
      const timeoutMs = labels.verb === 'WATCH' ? undefined : parseTimeoutMs(request.query)
      const pendingResponse = dispatch(request, route, labels, auditedRequest)
      response = await (timeoutMs === undefined
        ? pendingResponse
        : withTimeout(pendingResponse, timeoutMs, clock, (lateResponse) => lateResponse.seats?.release()))
    } catch (error) {
      isPanic = isUnexpected(error)
      status = toApiError(error, request).toStatus()
      response = route?.is === 'resource' ? errorResponse(request, status) : statusResponse(status)
    }
    metrics.observeRequest(labels, response.status, (clock.monotonicMs() - startedMs) / 1000)
    if (!auditedRequest) return response
    const resource = route?.is === 'resource' ? resources.find(route.group, route.version, route.plural) : undefined
    return auditedRequest.finish(response, { status, isPanic, resource })
  }

  async function dispatch(
    receivedRequest: ApiRequest,
    route: ResourceRequest | PathRequest | undefined,
    labels: RequestLabels,
    auditedRequest: AuditedRequest | undefined,
  ): Promise<ApiResponse> {
    const { user: authenticatedUser, impersonationHeaders } = authenticate(receivedRequest)
    receivedRequest.userName = authenticatedUser.name
    const request = auditedRequest?.setUser(authenticatedUser) ?? receivedRequest
    const user = impersonationHeaders
      ? await impersonate(request, authenticatedUser, impersonationHeaders)
      : authenticatedUser
    if (user !== authenticatedUser) auditedRequest?.setImpersonatedUser(user)
    if (!route) throw noSuchPath()
    const isPodStream = route.is === 'resource' && podStreams.handles(route)
    const authorizedRoute = isPodStream && route.subresource !== 'log' ? { ...route, verb: 'create' as const } : route
    authorize(user, authorizedRoute, { query: request.query, auditedRequest })
    if (route.is === 'path') return handlePath(request, route, user)
    const resource = isCommit(route) ? undefined : resources.find(route.group, route.version, route.plural)
    if (!resource && !isCommit(route)) throw noSuchPath()
    if (resource && isPodStream) {
      checkScope(resource, route)
      // Not subject to flow control, because a stream may last for hours. It has its own limits.
      const track = (stream: Pick<StreamSink, 'end' | 'onClose'>) =>
        openStreams.add(receivedRequest, authenticatedUser, stream)
      return podStreams.handle({ request, route, resource, user, track })
    }

    const { verb } = route
    const isReadOnly = verb === 'get' || verb === 'list' || verb === 'watch'
    if (!isReadOnly) await request.readBody() // before the request gets seats, because a client may send its body slowly
    const isList = verb === 'list' || (verb === 'watch' && startsWithList(request.query))
    const width = isList ? listWidths.widthOf(route, request.query) : 1
    const startResult = flowControl.start({ user, group: route.group, resource: route.plural, width })
    const seats = startResult instanceof Promise ? await startResult : startResult
    if (startResult instanceof Promise && request.isClosed?.()) {
      seats?.release()
      throw badRequest('the client closed the connection before its request was handled')
    }
    const kind = isReadOnly ? 'readOnly' : 'mutating'
    metrics.inFlight[kind]++
    let areSeatsKept = false
    try {
      const authorizeWrite = (write: ResourceRequest) => {
        auditedRequest?.addWrite(write)
        authorize(user, write)
      }
      const parseContext = { user: user.name, turns: bodyTurns }
      if (!resource) return await handleCommit(deps, { request, user, parseContext, authorize: authorizeWrite })
      const authorizeCreate = () => authorize(user, { ...route, verb: 'create' })
      const response = await handleResource(
        deps,
        { request, route, resource, user, parseContext, authorizeCreate },
        options,
      )
      if (verb === 'list') listWidths.recordBytes(route, request.query, bytesOf(response))
      const track = (sink: StreamSink) => openStreams.add(receivedRequest, authenticatedUser, sink)
      const limitedResponse = verb === 'watch' ? limitWatches({ user, labels, response, track }) : response
      if (!isList || !seats || limitedResponse.body) return limitedResponse
      areSeatsKept = true
      return { ...limitedResponse, seats }
    } finally {
      metrics.inFlight[kind]--
      if (!areSeatsKept) seats?.release()
    }
  }

  /** Returns the user who sent the request, and the names of its Impersonate-* headers, if there are any. */
  function authenticate(request: ApiRequest): { user: UserInfo; impersonationHeaders?: readonly string[] } {
    const { authorization } = request.headers
    const { clientCert } = request
    const authentication = options.authenticator.authenticate({ authorization, clientCert })
    if (authentication.is === 'rejected') throw apiErrorOf(authentication.status)
    const { user } = authentication
    const impersonationHeaders = request.headerNames().filter(isImpersonationHeader)
    return impersonationHeaders.length === 0 ? { user } : { user, impersonationHeaders }
  }

  async function impersonate(request: ApiRequest, user: UserInfo, names: readonly string[]): Promise<UserInfo> {
    const headers = Object.fromEntries(names.map((name) => [name, request.headerValues(name)]))
    const impersonation = await resolveImpersonation({ user, headers, authorizer: options.authorizer })
    if (impersonation.is === 'rejected') throw apiErrorOf(impersonation.status)
    return impersonation.user
  }

  /** Throws 403 if the request is not allowed. */
  function authorize(
    user: UserInfo,
    route: ResourceRequest | PathRequest,
    { query, auditedRequest }: { query?: URLSearchParams; auditedRequest?: AuditedRequest | undefined } = {},
  ): void {
    const request = { user, route, fieldSelector: query?.get('fieldSelector') }
    authorizeRequest(
      options.authorizer,
      request,
      auditedRequest && ((decision) => auditedRequest.setDecision(decision)),
    )
  }

  async function handlePath(request: ApiRequest, { path }: PathRequest, user: UserInfo): Promise<ApiResponse> {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed()
    if (path === '/version' || path === '/version/') return jsonResponse(200, options.version)
    if (path === '/metrics') {
      const text = await readMetrics(metrics.registry, request.query)
      if (!acceptsOpenMetrics(request.headers.accept))
        return textResponse(200, text, { 'content-type': metrics.registry.contentType })
      return textResponse(200, toOpenMetrics(text, exemplarOf), { 'content-type': OPEN_METRICS_TYPE })
    }
    const response =
      (await health.handle(path, request.query, { isAuthenticated: user.groups.includes(AUTHENTICATED_GROUP) })) ??
      discovery.handle(path, request.headers) ??
      openApi.handle(path, request.query, request.headers) ??
      options.accountTokens?.handleDiscovery(path)
    if (response) return response
    if (path === '/')
      return jsonResponse(200, { paths: rootPaths(resources, options.accountTokens ? ISSUER_PATHS : []) })
    throw noSuchPath()
  }

  function limitWatches({ user, labels, response, track }: LimitedWatch): ApiResponse {
    const { stream } = response
    if (!stream) return response
    const isLimited = !user.groups.includes(MASTERS_GROUP)
    const userWatches = watchesByUser.get(user.name) ?? 0
    if (isLimited && userWatches >= limits.userWatchesMax) {
      throw tooManyRequests(
        `user ${JSON.stringify(user.name)} has ${userWatches} open watches, the maximum; close some, or try again later`,
      )
    }
    if (isLimited && watches >= limits.watchesMax) {
      throw tooManyRequests(
        `the server has reached its limit of ${limits.watchesMax} open watches; close some, or try again later`,
      )
    }
    return {
      ...response,
      stream: (sink: StreamSink, seats) => {
        countWatch(user, 1)
        track(sink)
        const recordClosed = metrics.recordWatchOpened(labels)
        sink.onClose(() => {
          countWatch(user, -1)
          recordClosed()
        })
        stream(sink, seats)
      },
    }
  }

  function countWatch({ name }: UserInfo, change: 1 | -1): void {
    watches += change
    const userWatches = (watchesByUser.get(name) ?? 0) + change
    if (userWatches === 0) watchesByUser.delete(name)
    else watchesByUser.set(name, userWatches)
  }

  function toApiError(error: unknown, request: ApiRequest): ApiError {
    if (error instanceof ApiError) return error
    if (error instanceof WriteRejectedError) log.error({ err: error, path: request.path }, 'the store rejected a write')
    const storeError = apiErrorOfStore(error)
    if (storeError) return storeError
    log.error({ err: error, method: request.method, path: request.path }, 'request failed unexpectedly')
    return internalError('unexpected failure; the log of the server has the details')
  }

  return {
    handle,
    endUnauthenticatedStreams: () => openStreams.endUnauthenticated(),
    resources,
    health,
    metrics,
    objects: deps,
  }
}

interface LimitedWatch {
  readonly user: UserInfo
  readonly labels: RequestLabels
  readonly response: ApiResponse
  readonly track: (sink: StreamSink) => void
}

const isUnexpected = (error: unknown): boolean => !(error instanceof ApiError) && !apiErrorOfStore(error)

/** Returns whether a watch may send the current objects first. */
const startsWithList = (query: URLSearchParams): boolean => {
  const version = query.get('resourceVersion')
  return !version || version === '0' || query.has('sendInitialEvents')
}

const bytesOf = ({ body, longBody }: ApiResponse): number => longBody?.storedBytes ?? body?.length ?? 0

/**
 * Uses the label `other` for resources and subresources that are not served: arbitrary paths would create an unbounded number
 * of time series.
 */
function labelsOf(
  method: string,
  route: ResourceRequest | PathRequest | undefined,
  resources: Resources,
): RequestLabels {
  const noResource = { group: '', version: '', resource: '', subresource: '' }
  if (!route || route.is === 'path') return { verb: METHOD_LABELS.get(method) ?? 'other', ...noResource }
  const { group, version, plural, subresource } = route
  const verb = VERB_LABELS[route.verb]
  const resource = resources.find(group, version, plural)
  if (!resource) return { verb, ...noResource, resource: 'other' }
  const subresourceLabel = subresource === '' || findSubresource(resource.kind, subresource) ? subresource : 'other'
  return { verb, group, version, resource: plural, subresource: subresourceLabel }
}

const METHOD_LABELS: ReadonlyMap<string, string> = new Map([
  ['HEAD', 'GET'],
  ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [method, method] as const),
])

const VERB_LABELS = {
  get: 'GET',
  list: 'LIST',
  watch: 'WATCH',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETECOLLECTION',
} as const

const rootPaths = ({ groups }: Resources, issuerPaths: readonly string[]): string[] =>
  [
    ...issuerPaths,
    '/api',
    '/apis',
    ...groups.flatMap(({ group, versions }) =>
      group === ''
        ? versions.map((version) => `/api/${version}`)
        : [`/apis/${group}`, ...versions.map((version) => `/apis/${group}/${version}`)],
    ),
    '/healthz',
    '/livez',
    '/metrics',
    '/openapi/v2',
    '/openapi/v3',
    '/readyz',
    '/version',
  ].sort()

const isImpersonationHeader = (name: string): boolean => name.startsWith('impersonate-')
