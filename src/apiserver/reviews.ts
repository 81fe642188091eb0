// Handles the review kinds of authentication.k8s.io and authorization.k8s.io, reports of operations and requests for
// timelines. The response is the body with its status. A review writes nothing to the durable store; the journal writes reported
// activities later.
import { FieldErrors } from '../api/field-errors.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { TIMELINE_KINDS, type TimelineRequest } from '../api/kinds/timeline/timeline-schema.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import { type FieldRequirement, parseFieldSelector } from '../api/selectors.ts'
import { badRequest, invalid } from '../api/status-error.ts'
import type { Clock } from '../base/clock.ts'
import type { Store } from '../store/index.ts'
import type { TypedValue } from './http/protobuf-response.ts'
import type { AnyObject } from './objects/object-deps.ts'
import type { OperationBoard } from './operations/operation-board.ts'
import type { Resource } from './resources.ts'
import {
  type Authenticator,
  type AuthorizationAttributes,
  type Authorizer,
  authorizeRequest,
  type UserInfo,
} from './security/index.ts'
import type { Journal } from './timeline/journal.ts'
import { readTimeline } from './timeline/read-timeline.ts'

export interface ReviewDeps {
  readonly store: Store
  readonly clock: Clock
  readonly authenticator: Authenticator
  readonly authorizer: Authorizer
  /** Absent on a server without operations, which serves no reports of them. */
  readonly operations?: Pick<OperationBoard, 'applyReport'>
  /** Absent on a server without a journal, which serves no timelines. */
  readonly journal?: Journal
}

/** Returns the body with its status. */
export async function performReview(
  deps: ReviewDeps,
  resource: Resource,
  namespace: string,
  user: UserInfo,
  body: AnyObject,
): Promise<TypedValue> {
  const status = await REVIEWS[resource.kind.kind]!(deps, { resource, namespace, user, body })
  return { kind: resource.kind.kind, apiVersion: resource.apiVersion, ...body, status }
}

interface ReviewRequest {
  readonly resource: Resource
  readonly namespace: string
  readonly user: UserInfo
  readonly body: AnyObject
}

const REVIEWS: Readonly<Record<string, (deps: ReviewDeps, request: ReviewRequest) => unknown>> = {
  SelfSubjectReview: (_deps, { user }) => ({ userInfo: userInfoOf(user) }),

  TokenReview({ authenticator }, { resource, body }) {
    const token = body.spec?.token
    if (!token) throw invalidReview(resource, (errors) => errors.required('spec.token', 'the token to authenticate'))
    const audiences: string[] | undefined = body.spec.audiences?.length > 0 ? body.spec.audiences : undefined
    const authentication = authenticator.authenticateToken(token, audiences)
    if (!authentication) return { authenticated: false, error: 'the token is not known to this server' }
    if ('rejection' in authentication) return { authenticated: false, error: authentication.rejection }
    return { authenticated: true, user: userInfoOf(authentication.user), audiences: authentication.audiences }
  },

  SelfSubjectAccessReview: (deps, { resource, user, body }) => reviewAccess(deps, resource, user, body.spec),

  SubjectAccessReview: (deps, { resource, body }) =>
    reviewAccess(deps, resource, subjectOf(resource, body.spec), body.spec),

  LocalSubjectAccessReview(deps, { resource, namespace, body }) {
    const requestedNamespace = body.spec?.resourceAttributes?.namespace ?? ''
    if (requestedNamespace !== namespace) {
      throw badRequest(
        `spec.resourceAttributes.namespace (${JSON.stringify(requestedNamespace)}) must be the namespace of the request (${namespace})`,
      )
    }
    return reviewAccess(deps, resource, subjectOf(resource, body.spec), body.spec)
  },

  OperationReport: ({ operations }, { user, body }) => operations!.applyReport(user.name, body.spec),

  TimelineReview({ store, authorizer, journal }, { resource, user, body }) {
    checkTimelineRequest(resource, body.spec)
    const { kind, namespace = '', name } = body.spec
    const { group, versions, plural } =
      kind === persistentVolumeKind.kind ? persistentVolumeKind : persistentVolumeClaimKind
    const target = { group, version: versions[0]!, plural, namespace, name, subresource: '' }
    authorizeRequest(authorizer, { user, route: { is: 'resource', verb: 'get', ...target } })
    return readTimeline({ store, journal: journal! }, body.spec)
  },

  SelfSubjectRulesReview({ authorizer }, { user, body }) {
    const namespace = body.spec?.namespace
    if (!namespace) throw badRequest('no namespace on request')
    return authorizer.rulesFor?.(user, namespace) ?? { resourceRules: [], nonResourceRules: [], incomplete: true }
  },
}

function checkTimelineRequest(resource: Resource, { kind, name, namespace }: TimelineRequest): void {
  const isClaim = kind === persistentVolumeClaimKind.kind
  const errors = new FieldErrors()
  if (!TIMELINE_KINDS.includes(kind)) errors.notSupported('spec.kind', kind, TIMELINE_KINDS)
  if (!name) errors.required('spec.name', 'the name of the claim or volume')
  if (isClaim && !namespace) errors.required('spec.namespace', 'the namespace of the claim')
  if (kind === persistentVolumeKind.kind && namespace)
    errors.invalid('spec.namespace', namespace, 'volumes have no namespace')
  if (errors.hasErrors) throw invalid(resource.kind, '', errors.list)
}

async function reviewAccess({ authorizer }: ReviewDeps, resource: Resource, user: UserInfo, spec: AnyObject) {
  const { allowed, reason } = await authorizer.authorize(attributesOf(resource, user, spec))
  return { allowed, reason: reason || undefined }
}

function attributesOf(resource: Resource, user: UserInfo, spec: AnyObject): AuthorizationAttributes {
  const { resourceAttributes, nonResourceAttributes } = spec ?? {}
  if (!resourceAttributes === !nonResourceAttributes) {
    throw invalidReview(resource, (errors) =>
      errors.invalid(
        'spec.resourceAttributes',
        resourceAttributes ?? null,
        resourceAttributes
          ? 'cannot be specified in combination with nonResourceAttributes'
          : 'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ),
    )
  }
  if (nonResourceAttributes) {
    return { user, verb: nonResourceAttributes.verb ?? '', path: nonResourceAttributes.path ?? '' }
  }
  return {
    user,
    verb: resourceAttributes.verb ?? '',
    group: resourceAttributes.group ?? '',
    version: resourceAttributes.version ?? '',
    resource: resourceAttributes.resource ?? '',
    subresource: resourceAttributes.subresource || undefined,
    name: resourceAttributes.name || undefined,
    namespace: resourceAttributes.namespace || undefined,
    fieldSelector: fieldSelectorOf(resourceAttributes.fieldSelector),
  }
}

/** Ignores requirements other than `In` with one value, and an invalid rawSelector: this can only deny more. */
function fieldSelectorOf(selector: AnyObject): readonly FieldRequirement[] | undefined {
  if (!selector) return undefined
  const requirements: FieldRequirement[] = (selector.requirements ?? []).flatMap(
    ({ key, operator, values = [] }: { key: string; operator: string; values?: string[] }) =>
      operator === 'In' && values.length === 1 ? [{ field: key, operator: '=', value: values[0] }] : [],
  )
  try {
    return [...requirements, ...parseFieldSelector(selector.rawSelector ?? '')]
  } catch {
    return requirements
  }
}

function subjectOf(resource: Resource, spec: AnyObject): UserInfo {
  if (!spec?.user && !(spec?.groups?.length > 0)) {
    throw invalidReview(resource, (errors) =>
      errors.invalid('spec.user', '', 'at least one of user or group must be specified'),
    )
  }
  return {
    name: spec.user ?? '',
    groups: spec.groups ?? [],
    uid: spec.uid || undefined,
    extra: spec.extra,
  }
}

const userInfoOf = ({ name, uid, groups, extra }: UserInfo) => ({ username: name, uid, groups, extra })

function invalidReview(resource: Resource, addErrors: (errors: FieldErrors) => void) {
  const errors = new FieldErrors()
  addErrors(errors)
  return invalid(resource.kind, '', errors.list)
}
