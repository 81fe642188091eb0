// Authorizes the requests of a component in tests by its rules (component-rules.ts) alone. Records which rules are used, and
// the requests that no rule grants; test/component-rules/ fails on a denied request and on an unused rule.
import type { Kind } from '../../api/kind.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import type { Client, ObjectRef } from '../../client/client.ts'
import type { Verb } from '../http/route.ts'
import { type AuthorizationAttributes, type Authorizer, authorizeRequest } from '../security/index.ts'
import { IN_PROCESS_COMPONENTS, roleRulesOf, userOf } from './component-roles.ts'
import { type Component, type ComponentRule, rulesOf } from './component-rules.ts'
import { ruleAllows } from './rule-match.ts'
import { ruleUsage } from './rule-usage.fixture.ts'

/** A permission that a rule grants: one verb on one resource in one scope. */
interface Grant {
  /** `COMPONENT: VERB RESOURCE`, followed by the name and the namespace if the rule is limited to one. */
  readonly id: string
  allows(attributes: AuthorizationAttributes): boolean
}

const OWN_NAMESPACE = 'kube-system'

/**
 * Splits the rules of a component into single permissions, because a test that lists pods does not prove that the component
 * needs to watch them.
 */
export const grantsOf = (component: Component): readonly Grant[] =>
  rulesOf(component)
    .flatMap(splitRule)
    .map((permission) => grantOf(component, permission))

/** Returns a rule for each combination of verb, resource and name. */
const splitRule = ({ verbs, resources, names, namespace, paths = [] }: ComponentRule): ComponentRule[] =>
  verbs.flatMap((verb) => [
    ...paths.map((path) => ({ verbs: [verb], resources: [], paths: [path] })),
    ...resources.flatMap((resource) => {
      const permission = { verbs: [verb], resources: [resource], namespace }
      return names ? names.map((name) => ({ ...permission, names: [name] })) : [permission]
    }),
  ])

function grantOf(component: Component, permission: ComponentRule): Grant {
  const [role] = roleRulesOf([permission], OWN_NAMESPACE)
  const { namespace, rules } = role!
  const { verbs, resources, names, paths = [], namespace: scope } = permission
  const words = [...verbs, ...resources, ...paths, ...(names ?? []), ...(scope ? ['in', scope] : [])]
  return {
    id: `${component}: ${words.join(' ')}`,
    allows: (attributes) =>
      (namespace === undefined || (attributes.path === undefined && attributes.namespace === namespace)) &&
      rules.some((policyRule) => ruleAllows(policyRule, attributes)),
  }
}

/** Allows a request that the rules of every component grant. */
export function componentAuthorizer(...components: readonly Component[]): Authorizer {
  const grantsByComponent = components.map((component) => ({ component, grants: grantsOf(component) }))
  return {
    authorize(attributes) {
      let isAllowed = true
      for (const { component, grants } of grantsByComponent) {
        const usedGrants = grants.filter((grant) => grant.allows(attributes))
        for (const { id } of usedGrants) ruleUsage.used.add(id)
        if (usedGrants.length > 0) continue
        ruleUsage.denied.add(`${component}: ${describeRequest(attributes)}`)
        isAllowed = false
      }
      return { allowed: isAllowed }
    },
  }
}

/** Returns an authorizer that records which rules of the components of the server process are used. */
export function recordRuleUse(authorizer: Authorizer): Authorizer {
  const authorizersByUser = new Map(
    IN_PROCESS_COMPONENTS.map((component) => [userOf(component).name, componentAuthorizer(component)]),
  )
  return {
    authorize(attributes) {
      authorizersByUser.get(attributes.user.name)?.authorize(attributes)
      return authorizer.authorize(attributes)
    },
  }
}

function describeRequest(attributes: AuthorizationAttributes): string {
  if (attributes.path !== undefined) return `${attributes.verb} ${attributes.path}`
  const { verb, group, resource, subresource, namespace } = attributes
  const id = `${resource}${group ? `.${group}` : ''}${subresource ? `/${subresource}` : ''}`
  return `${verb} ${id}${namespace ? ` in ${namespace}` : ''}`
}

/**
 * Returns a client that also authorizes requests for kinds that the server does not have, such as snapshots. Tests handle
 * these requests in a client that wraps the server's client.
 */
export function authorizeUnservedKinds(client: Client, component: Component): Client {
  const authorizer = componentAuthorizer(component)
  const authorize = (verb: Verb, kind: Kind, { namespace = '', name = '' }: Partial<ObjectRef> = {}): void => {
    const { group, plural, versions } = kind
    if (ALL_KINDS.some((served) => !served.isForeign && served.group === group && served.plural === plural)) return
    const address = { group, version: versions[0]!, plural, namespace, name, subresource: '' }
    authorizeRequest(authorizer, {
      user: { name: component, groups: [] },
      route: { is: 'resource', verb, ...address },
    })
  }
  return {
    ...client,
    async get(kind, ref, options) {
      authorize('get', kind, ref)
      return client.get(kind, ref, options)
    },
    async list(kind, request) {
      authorize('list', kind, request)
      return client.list(kind, request)
    },
    async *watch(kind, request) {
      authorize('watch', kind, request)
      yield* client.watch(kind, request)
    },
    async patch(kind, ref, patch, options) {
      authorize('patch', kind, ref)
      return client.patch(kind, ref, patch, options)
    },
  }
}
