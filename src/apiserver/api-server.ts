// The API server, free of sockets: `handle` takes a request and gives an answer. A request's life is one
// function, top to bottom: authenticate → limit → route → authorize → answer.
import type { FeatureGates } from '../api/feature-gates.ts'
import type { ExpansionQuota, Kind } from '../api/kind.ts'
import {
  ApiError,
  internalError,
  methodNotAllowed,
  noSuchPath,
  tooManyRequests,
  unavailable,
} from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import {
  type Store,
  StoreBusyError,
  StoreClosedError,
  StoreUnavailableError,
  WriteRefusedError,
} from '../store/index.ts'
import { type AdmissionChain, standardAdmission } from './admission/index.ts'
import { handleCommit, isCommit, withCommits } from './commit-handler.ts'
import { createDiscovery, findSubresource } from './discovery/index.ts'
import { createHealth, type Health } from './health.ts'
import { type ApiAnswer, type ApiRequest, jsonAnswer, statusAnswer, textAnswer } from './http/exchange.ts'
import { type PathRequest, parseRoute, type ResourceRequest } from './http/route.ts'
import { type ApiMetrics, createApiMetrics, type RequestLabels } from './metrics.ts'
import type { ObjectDeps } from './objects/object-deps.ts'
import { createStoredObjects } from './objects/stored-object.ts'
import { createOpenApi } from './openapi/index.ts'
import { handleResource } from './resource-handler.ts'
import { createResources, type Resources, type RuntimeConfig } from './resources.ts'
import {
  type Authenticator,
  type AuthorizationAttributes,
  type Authorizer,
  type Decision,
  forbidden,
  type Refusal,
  type ResourceAttributes,
  resolveImpersonation,
  type UserInfo,
} from './security/index.ts'
import type { StreamSink } from './verbs/watch.ts'
import type { VersionInfo } from './version.ts'

export interface ApiServerOptions {
  readonly store: Store
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly kinds: readonly Kind[]
  readonly gates: FeatureGates
  /** Default: the high-water mark. */
  readonly expansionQuota?: ExpansionQuota
  readonly runtimeConfig?: RuntimeConfig
  readonly authenticator: Authenticator
  readonly authorizer: Authorizer
  readonly admission?: AdmissionChain
  readonly version: VersionInfo
  readonly limits?: Partial<Limits>
  /** Whether objects record which client set which field. Default true; an apply always does. */
  readonly trackManagedFields?: boolean
}

export interface Limits {
  /** Requests other than watches worked on at once; more are told to come back in a second. */
  readonly inFlightMax: number
  readonly watchesMax: number
}
const LIMITS: Limits = { inFlightMax: 2_000, watchesMax: 10_000 }

export interface ApiServer {
  handle(request: ApiRequest): Promise<ApiAnswer>
  readonly resources: Resources
  readonly health: Health
  readonly metrics: ApiMetrics
  /** For components in this process: the same verbs without the wire. */
  readonly objects: ObjectDeps
}

export function createApiServer(options: ApiServerOptions): ApiServer {
  const { store, clock, log } = options
  const resources = createResources(options.kinds, options.runtimeConfig)
  const limits = { ...LIMITS, ...options.limits }
  const metrics = createApiMetrics(store)
  const health = createHealth()
  const discovery = createDiscovery(withCommits(resources))
  const openApi = createOpenApi(resources)
  const deps: ObjectDeps = {
    store,
    clock,
    random: options.random,
    gates: options.gates,
    expansionQuota: options.expansionQuota ?? 'high-water-mark',
    objects: createStoredObjects(),
    resources,
    admission: options.admission ?? standardAdmission(),
    trackManagedFields: options.trackManagedFields ?? true,
  }
  let watches = 0

  async function handle(request: ApiRequest): Promise<ApiAnswer> {
    const startedMs = clock.monotonicMs()
    const route = parseRoute(request.method, request.path, request.query)
    const labels = labelsOf(route, resources)
    let answer: ApiAnswer
    try {
      answer = await answerRequest(request, route, labels)
    } catch (error) {
      answer = statusAnswer(explain(error, request).toStatus())
    }
    metrics.observeRequest(labels, answer.status, (clock.monotonicMs() - startedMs) / 1000)
    return answer
  }

  async function answerRequest(
    request: ApiRequest,
    route: ResourceRequest | PathRequest | undefined,
    labels: RequestLabels,
  ): Promise<ApiAnswer> {
    const { user: asking, impersonated } = authenticate(request)
    const user = impersonated ? await impersonate(request, asking, impersonated) : asking
    if (!route) throw noSuchPath()
    const unsettled = authorize(user, route)
    if (unsettled) await unsettled
    if (route.is === 'path') return answerPath(request, route)
    if (isCommit(route)) {
      const commit = { request, user, authorize: async (write: ResourceRequest) => authorize(user, write) }
      return limited('mutating', () => handleCommit(deps, commit))
    }
    const resource = resources.find(route.group, route.version, route.plural)
    if (!resource) throw noSuchPath()
    const call = { request, route, resource, user }
    if (route.verb === 'watch') return watchLimited(labels, await handleResource(deps, call, options))
    return limited(route.verb === 'get' || route.verb === 'list' ? 'readOnly' : 'mutating', () =>
      handleResource(deps, call, options),
    )
  }

  /** Who sent the request, and the headers by which they want to be somebody else. */
  function authenticate(request: ApiRequest): { user: UserInfo; impersonated?: readonly string[] } {
    const { authorization } = request.headers
    const { clientCert } = request
    const authentication = options.authenticator.authenticate({
      ...(authorization === undefined ? undefined : { authorization }),
      ...(clientCert ? { clientCert } : undefined),
    })
    if (authentication.is === 'refused') throw refused(authentication.refusal)
    const { user } = authentication
    const impersonated = request.headerNames().filter((name) => name.startsWith('impersonate-'))
    return impersonated.length === 0 ? { user } : { user, impersonated }
  }

  async function impersonate(request: ApiRequest, user: UserInfo, names: readonly string[]): Promise<UserInfo> {
    const headers = Object.fromEntries(names.map((name) => [name, request.headerValues(name)]))
    const impersonation = await resolveImpersonation({ user, headers, authorizer: options.authorizer })
    if (impersonation.is === 'refused') throw refused(impersonation.refusal)
    return impersonation.user
  }

  /** Throws, or gives a promise where the authorizer does: most know at once, and every request asks. */
  function authorize(user: UserInfo, route: ResourceRequest | PathRequest): Promise<void> | undefined {
    const attributes = attributesOf(user, route)
    const check = ({ allowed, reason }: Decision) => {
      if (!allowed) throw refused(forbidden(attributes, reason))
    }
    const decision = options.authorizer.authorize(attributes)
    if (decision instanceof Promise) return decision.then(check)
    check(decision)
    return undefined
  }

  async function answerPath(request: ApiRequest, { path }: PathRequest): Promise<ApiAnswer> {
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed()
    if (path === '/version' || path === '/version/') return jsonAnswer(200, options.version)
    if (path === '/metrics') {
      return textAnswer(200, await metrics.registry.metrics(), { 'content-type': metrics.registry.contentType })
    }
    const answer =
      (await health.answer(path, request.query)) ??
      discovery.handle(path, request.headers) ??
      openApi.handle(path, request.query, request.headers)
    if (answer) return answer
    if (path === '/') return jsonAnswer(200, { paths: rootPaths(resources) })
    throw noSuchPath()
  }

  async function limited(kind: 'mutating' | 'readOnly', run: () => Promise<ApiAnswer>): Promise<ApiAnswer> {
    if (metrics.inFlight.mutating + metrics.inFlight.readOnly >= limits.inFlightMax) {
      throw tooManyRequests(`the server is working on ${limits.inFlightMax} requests already; try again in a second`)
    }
    metrics.inFlight[kind]++
    try {
      return await run()
    } finally {
      metrics.inFlight[kind]--
    }
  }

  function watchLimited(labels: RequestLabels, answer: ApiAnswer): ApiAnswer {
    if (watches >= limits.watchesMax) {
      throw tooManyRequests(`${limits.watchesMax} watches are open already; close some, or raise --max-watches`)
    }
    const { stream } = answer
    if (!stream) return answer
    return {
      ...answer,
      stream: (sink: StreamSink) => {
        watches++
        const closed = metrics.watchOpened(labels)
        sink.onClose(() => {
          watches--
          closed()
        })
        stream(sink)
      },
    }
  }

  function explain(error: unknown, request: ApiRequest): ApiError {
    if (error instanceof ApiError) return error
    if (error instanceof StoreClosedError) return unavailable('the server is shutting down; try again')
    if (error instanceof StoreUnavailableError) return unavailable(error.message)
    if (error instanceof StoreBusyError) return tooManyRequests(error.message)
    if (error instanceof WriteRefusedError) {
      log.error({ err: error, path: request.path }, 'the store did not take a write')
      return internalError(`the store did not take the write: ${error.message}`)
    }
    log.error({ err: error, method: request.method, path: request.path }, 'request failed unexpectedly')
    return internalError('the server met a problem of its own; its log has the details')
  }

  return { handle, resources, health, metrics, objects: deps }
}

function attributesOf(user: UserInfo, route: ResourceRequest | PathRequest): AuthorizationAttributes {
  if (route.is === 'path') return { user, verb: route.verb, path: route.path }
  const { verb, group, version, plural, subresource, name, namespace } = route
  const attributes: ResourceAttributes = { user, verb, group, version, resource: plural }
  if (subresource) attributes.subresource = subresource
  if (name) attributes.name = name
  if (namespace) attributes.namespace = namespace
  return attributes
}

const refused = ({ code, reason, message, details }: Refusal): ApiError => new ApiError(code, reason, message, details)

/** Only what is served becomes a label: what strangers invent in paths would fill memory and dashboards. */
function labelsOf(route: ResourceRequest | PathRequest | undefined, resources: Resources): RequestLabels {
  const none = { group: '', version: '', resource: '', subresource: '' }
  if (!route || route.is === 'path') return { verb: 'GET', ...none }
  const { group, version, plural, subresource } = route
  const verb = VERB_LABELS[route.verb]
  const resource = resources.find(group, version, plural)
  if (!resource) return { verb, ...none, resource: 'other' }
  const known = subresource === '' || findSubresource(resource.kind, subresource) ? subresource : 'other'
  return { verb, group, version, resource: plural, subresource: known }
}

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

const rootPaths = ({ groups }: Resources): string[] =>
  [
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
