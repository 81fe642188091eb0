// Answers the questions clients ask about identity and rights: who am I, whose token is this, may they, what may I.
// The body comes back with its status filled in; nothing is stored.
import { FieldErrors } from '../api/field-errors.ts'
import { badRequest, invalid } from '../api/status-error.ts'
import type { Resource } from './resources.ts'
import type { Authenticator, AuthorizationAttributes, Authorizer, UserInfo } from './security/index.ts'

export interface ReviewDeps {
  readonly authenticator: Authenticator
  readonly authorizer: Authorizer
}

export async function answerReview(
  deps: ReviewDeps,
  resource: Resource,
  namespace: string,
  user: UserInfo,
  body: any,
): Promise<unknown> {
  const answer = await ANSWERS[resource.kind.kind]!(deps, { resource, namespace, user, body })
  return { kind: resource.kind.kind, apiVersion: resource.apiVersion, ...body, status: answer }
}

interface Question {
  readonly resource: Resource
  readonly namespace: string
  readonly user: UserInfo
  readonly body: any
}

const ANSWERS: Readonly<Record<string, (deps: ReviewDeps, question: Question) => unknown>> = {
  SelfSubjectReview: (_deps, { user }) => ({ userInfo: shownUser(user) }),

  TokenReview({ authenticator }, { resource, body }) {
    const token = body.spec?.token
    if (!token) throw refused(resource, (errors) => errors.required('spec.token', 'the token to be judged'))
    const user = authenticator.authenticateToken(token)
    if (!user) return { authenticated: false, error: 'the token is not known to this server' }
    return {
      authenticated: true,
      user: shownUser(user),
      ...(body.spec.audiences ? { audiences: body.spec.audiences } : {}),
    }
  },

  SelfSubjectAccessReview: (deps, { resource, user, body }) => decide(deps, resource, user, body.spec),

  SubjectAccessReview: (deps, { resource, body }) => decide(deps, resource, subjectOf(resource, body.spec), body.spec),

  LocalSubjectAccessReview(deps, { resource, namespace, body }) {
    const asked = body.spec?.resourceAttributes?.namespace ?? ''
    if (asked !== namespace) {
      throw badRequest(
        `spec.resourceAttributes.namespace (${JSON.stringify(asked)}) must be the namespace of the request (${namespace})`,
      )
    }
    return decide(deps, resource, subjectOf(resource, body.spec), body.spec)
  },

  SelfSubjectRulesReview: ({ authorizer }, { user, body }) =>
    authorizer.rulesFor?.(user, body.spec?.namespace ?? '') ?? {
      resourceRules: [],
      nonResourceRules: [],
      incomplete: true,
    },
}

async function decide({ authorizer }: ReviewDeps, resource: Resource, user: UserInfo, spec: any) {
  const { allowed, reason } = await authorizer.authorize(attributesOf(resource, user, spec))
  return { allowed, ...(reason ? { reason } : {}) }
}

function attributesOf(resource: Resource, user: UserInfo, spec: any): AuthorizationAttributes {
  const { resourceAttributes: asked, nonResourceAttributes: path } = spec ?? {}
  if (!asked === !path) {
    throw refused(resource, (errors) =>
      errors.invalid(
        'spec.resourceAttributes',
        asked ?? null,
        asked
          ? 'cannot be specified in combination with nonResourceAttributes'
          : 'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ),
    )
  }
  if (path) return { user, verb: path.verb ?? '', path: path.path ?? '' }
  return {
    user,
    verb: asked.verb ?? '',
    group: asked.group ?? '',
    version: asked.version ?? '',
    resource: asked.resource ?? '',
    ...(asked.subresource ? { subresource: asked.subresource } : {}),
    ...(asked.name ? { name: asked.name } : {}),
    ...(asked.namespace ? { namespace: asked.namespace } : {}),
  }
}

function subjectOf(resource: Resource, spec: any): UserInfo {
  if (!spec?.user && !(spec?.groups?.length > 0)) {
    throw refused(resource, (errors) =>
      errors.invalid('spec.user', '', 'at least one of user or group must be specified'),
    )
  }
  return {
    name: spec.user ?? '',
    groups: spec.groups ?? [],
    ...(spec.uid ? { uid: spec.uid } : {}),
    ...(spec.extra ? { extra: spec.extra } : {}),
  }
}

const shownUser = ({ name, uid, groups, extra }: UserInfo) => ({
  username: name,
  ...(uid ? { uid } : {}),
  groups,
  ...(extra ? { extra } : {}),
})

function refused(resource: Resource, add: (errors: FieldErrors) => void) {
  const errors = new FieldErrors()
  add(errors)
  return invalid(resource.kind, '', errors.list)
}
