// Caches the decisions on a user's requests. The role index returns the same list of grants until a role or binding
// changes, so that list is the key of the cache. Decisions on paths are not cached, nor are those on named objects if a rule
// names objects.
import type { AuthorizationAttributes, Decision, ResourceAttributes } from '../security/index.ts'
import type { Grant } from './role-index.ts'

export interface DecisionCache {
  /** Returns the cached decision on an equal request with these grants, or makes and caches it. */
  get(grants: readonly Grant[], attributes: AuthorizationAttributes, decide: () => Decision): Decision
}

interface GrantDecisions {
  /** Whether a rule applies only to objects with certain names. */
  readonly hasNames: boolean
  readonly byRequest: Map<string, Decision>
}

/** Maximum number of cached decisions per list of grants. When it is reached, all of them are discarded. */
const DECISIONS_MAX = 500

export function createDecisionCache(): DecisionCache {
  const byGrants = new WeakMap<readonly Grant[], GrantDecisions>()
  return {
    get(grants, attributes, decide) {
      let decisions = byGrants.get(grants)
      if (!decisions) {
        decisions = { hasNames: grants.some(hasNames), byRequest: new Map() }
        byGrants.set(grants, decisions)
      }
      if (attributes.path !== undefined || (decisions.hasNames && attributes.name)) return decide()
      const key = keyOf(attributes)
      let decision = decisions.byRequest.get(key)
      if (!decision) {
        decision = decide()
        if (decisions.byRequest.size >= DECISIONS_MAX) decisions.byRequest.clear()
        decisions.byRequest.set(key, decision)
      }
      return decision
    },
  }
}

/** Begins with lengths, because a client chooses the parts and could otherwise make the keys of two requests equal. */
const keyOf = ({ verb, group, resource, subresource = '' }: ResourceAttributes): string =>
  `${verb.length} ${group.length} ${resource.length} ${verb}${group}${resource}${subresource}`

const hasNames = ({ rules = [] }: Grant): boolean =>
  rules.some(({ resourceNames }) => resourceNames !== undefined && resourceNames.length > 0)
